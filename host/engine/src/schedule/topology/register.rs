//! Which counters a round needs: equal terms of different pods share one, and a look-up by label finds those that select
//! a pod without asking each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::counter::Axis;
use super::demand::{Constraint, Demand, Rule};
use crate::pod::{PodShape, PodTerm, Spread, Term};
use crate::requirement::{Operator, key};
use crate::schedule::relax::{Soft, softest_last};
use crate::selector::LabelSelector;
use crate::snapshot::Snapshot;
use crate::symbol::{KeyId, Symbols, id_of};
use crate::taint::Toleration;

/// The filter that every node passes.
pub(super) const EVERY_NODE: u32 = 0;

/// Namespaces by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Namespaces {
    All,
    These(Vec<Arc<str>>),
}

impl Namespaces {
    fn contain(&self, namespace: &Arc<str>) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.binary_search(namespace).is_ok(),
        }
    }
}

/// What makes two terms count the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity<'a> {
    pub(super) axis: Axis,
    namespaces: Namespaces,
    selector: Option<&'a LabelSelector>,
    pub(super) filter: u32,
    /// Counts the pods that hold the term, not those that it selects.
    holders: bool,
}

impl Identity<'_> {
    fn selects(&self, shape: &PodShape) -> bool {
        self.selector
            .is_some_and(|selector| self.namespaces.contain(&shape.namespace) && selector.matches(&shape.labels))
    }
}

/// Nodes whose pods count for a spread: they meet one of the terms and, when taints are honoured, are tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Filter<'a> {
    pub(crate) selector: Option<&'a BTreeMap<Arc<str>, Arc<str>>>,
    pub(crate) terms: &'a [Term],
    pub(crate) tolerations: Option<&'a [Toleration]>,
}

/// Counters being collected.
#[derive(Debug)]
pub(super) struct Register<'a> {
    snapshot: &'a Snapshot,
    pub(super) hostname: KeyId,
    /// Label keys that are topology keys, `kubernetes.io/hostname` aside.
    pub(super) keys: Vec<KeyId>,
    pub(super) identities: Vec<Identity<'a>>,
    known: BTreeMap<Identity<'a>, u32>,
    pub(super) filters: Vec<Filter<'a>>,
    known_filters: BTreeMap<Filter<'a>, u32>,
}

impl<'a> Register<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, symbols: &mut Symbols) -> Self {
        let mut register = Self {
            snapshot,
            hostname: symbols.key(&Arc::from(key::HOSTNAME)),
            keys: Vec::new(),
            identities: Vec::new(),
            known: BTreeMap::new(),
            filters: Vec::new(),
            known_filters: BTreeMap::new(),
        };
        register.filter(Filter { selector: None, terms: &[], tolerations: None });
        register
    }

    /// The demand of a shape, but for the terms of other pods, which are not all known yet.
    pub(super) fn demand(&mut self, shape: &'a PodShape, ignore_preferences: bool, symbols: &mut Symbols) -> Demand {
        let mut demand = Demand::default();
        for spread in shape.spread.iter().filter(|spread| !spread.schedule_anyway) {
            demand.constraints.push(self.spread(shape, spread, symbols));
        }
        for term in &shape.pod_affinity {
            demand.constraints.push(self.together(shape, term, symbols));
        }
        for term in &shape.pod_anti_affinity {
            demand.constraints.push(self.apart(shape, term, symbols));
            demand.held.push(self.holders(shape, term, symbols));
        }
        // A repeated constraint says nothing new.
        demand.constraints.sort_unstable();
        demand.constraints.dedup();
        demand.held.sort_unstable();
        demand.held.dedup();
        demand.hard = demand.constraints.len();
        if !ignore_preferences {
            for soft in softest_last(shape) {
                demand.constraints.push(match soft {
                    Soft::Together(term) => self.together(shape, term, symbols),
                    Soft::Apart(term) => self.apart(shape, term, symbols),
                    Soft::Spread(spread) => self.spread(shape, spread, symbols),
                });
            }
        }
        demand
    }

    fn spread(&mut self, shape: &'a PodShape, spread: &'a Spread, symbols: &mut Symbols) -> Constraint {
        let honors = !spread.ignore_node_affinity;
        let terms = if honors { shape.required_affinity.as_slice() } else { &[] };
        let filter = Filter {
            selector: (honors && !shape.node_selector.is_empty()).then_some(&shape.node_selector),
            terms,
            tolerations: spread.honor_node_taints.then_some(&shape.tolerations),
        };
        let identity = Identity {
            axis: self.axis(&spread.topology_key, symbols),
            namespaces: Namespaces::These(vec![Arc::clone(&shape.namespace)]),
            selector: spread.selector.as_ref(),
            filter: self.filter(filter),
            holders: false,
        };
        let rule = Rule::Spread {
            max_skew: spread.max_skew.max(1),
            min_domains: spread.min_domains.unwrap_or(0),
            counts_itself: identity.selects(shape),
            honors_affinity: honors,
        };
        Constraint { counter: self.counter(identity), rule }
    }

    fn together(&mut self, shape: &'a PodShape, term: &'a PodTerm, symbols: &mut Symbols) -> Constraint {
        let identity = self.term(shape, term, false, symbols);
        let rule = Rule::Together { counts_itself: identity.selects(shape) };
        Constraint { counter: self.counter(identity), rule }
    }

    fn apart(&mut self, shape: &'a PodShape, term: &'a PodTerm, symbols: &mut Symbols) -> Constraint {
        let identity = self.term(shape, term, false, symbols);
        Constraint { counter: self.counter(identity), rule: Rule::Apart { own: true } }
    }

    /// The counter of the pods that hold an anti-affinity term.
    pub(super) fn holders(&mut self, shape: &'a PodShape, term: &'a PodTerm, symbols: &mut Symbols) -> u32 {
        let identity = self.term(shape, term, true, symbols);
        self.counter(identity)
    }

    fn term(&mut self, shape: &PodShape, term: &'a PodTerm, holders: bool, symbols: &mut Symbols) -> Identity<'a> {
        Identity {
            axis: self.axis(&term.topology_key, symbols),
            namespaces: self.namespaces(shape, term),
            selector: term.selector.as_ref(),
            filter: EVERY_NODE,
            holders,
        }
    }

    fn namespaces(&self, shape: &PodShape, term: &PodTerm) -> Namespaces {
        let mut names = term.namespaces.clone();
        match &term.namespace_selector {
            Some(selector) if selector.requirements.is_empty() => return Namespaces::All,
            Some(selector) => {
                let known = self.snapshot.namespaces.iter();
                names.extend(known.filter(|(_, labels)| selector.matches(labels)).map(|(name, _)| Arc::clone(name)));
            }
            None if names.is_empty() => names.push(Arc::clone(&shape.namespace)),
            None => {}
        }
        names.sort();
        names.dedup();
        Namespaces::These(names)
    }

    fn axis(&mut self, name: &Arc<str>, symbols: &mut Symbols) -> Axis {
        let key = symbols.key(name);
        if key == self.hostname {
            return Axis::Host;
        }
        let at = self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.keys.len() - 1
        });
        Axis::Key(id_of(at))
    }

    fn filter(&mut self, filter: Filter<'a>) -> u32 {
        let next = id_of(self.filters.len());
        *self.known_filters.entry(filter).or_insert_with(|| {
            self.filters.push(filter);
            next
        })
    }

    fn counter(&mut self, identity: Identity<'a>) -> u32 {
        if let Some(id) = self.known.get(&identity) {
            return *id;
        }
        let id = id_of(self.identities.len());
        self.identities.push(identity.clone());
        self.known.insert(identity, id);
        id
    }
}

/// Finds the counters that select a pod: each is filed under one label that its pods must have, the rarest among the
/// counters, so that few are looked at.
#[derive(Debug)]
pub(super) struct Index<'r, 'a> {
    identities: &'r [Identity<'a>],
    by_label: HashMap<(&'a str, &'a str), Vec<u32>>,
    /// Those that ask for no label value.
    others: Vec<u32>,
}

impl<'r, 'a> Index<'r, 'a> {
    pub(super) fn new(identities: &'r [Identity<'a>]) -> Self {
        let pinned = |identity: &Identity<'a>| {
            let requirements = identity.selector.map_or(&[][..], |selector| selector.requirements.as_slice());
            requirements.iter().filter(|one| one.operator == Operator::In)
        };
        let mut popularity: HashMap<(&str, &str), u32> = HashMap::new();
        for requirement in identities.iter().flat_map(pinned) {
            for value in &requirement.values {
                *popularity.entry((&*requirement.key, &**value)).or_default() += 1;
            }
        }
        let mut index = Self { identities, by_label: HashMap::new(), others: Vec::new() };
        for (at, identity) in identities.iter().enumerate() {
            if identity.selector.is_none() {
                continue;
            }
            let uses = |key: &str, value: &str| popularity.get(&(key, value)).copied().unwrap_or(0);
            let rarest =
                pinned(identity).min_by_key(|one| one.values.iter().map(|value| uses(&one.key, value)).sum::<u32>());
            match rarest {
                Some(requirement) => {
                    for value in &requirement.values {
                        index.by_label.entry((&*requirement.key, &**value)).or_default().push(id_of(at));
                    }
                }
                None => index.others.push(id_of(at)),
            }
        }
        index
    }

    /// Counters of pods that select the shape, and counters of holders whose term does, each in order.
    pub(super) fn selecting(&self, shape: &PodShape) -> (Vec<u32>, Vec<u32>) {
        let (mut counted, mut held_off) = (Vec::new(), Vec::new());
        let by_label = shape.labels.iter().filter_map(|(key, value)| self.by_label.get(&(&**key, &**value)));
        for at in by_label.flatten().chain(&self.others) {
            let Some(identity) = self.identities.get(*at as usize) else { continue };
            if identity.selects(shape) {
                if identity.holders { held_off.push(*at) } else { counted.push(*at) }
            }
        }
        for list in [&mut counted, &mut held_off] {
            list.sort_unstable();
            list.dedup();
        }
        (counted, held_off)
    }
}

/// Label keys that the selectors of a shape name, with the namespace the only thing that they look at in a pod.
pub(crate) fn selector_keys(shape: &PodShape) -> impl Iterator<Item = &Arc<str>> {
    let terms = shape.pod_affinity.iter().chain(&shape.pod_anti_affinity);
    let preferred = shape.preferred_pod_affinity.iter().chain(&shape.preferred_pod_anti_affinity);
    let selectors = terms.chain(preferred.map(|(_, term)| term)).map(|term| &term.selector);
    let selectors = selectors.chain(shape.spread.iter().map(|spread| &spread.selector)).flatten();
    selectors.flat_map(|selector| selector.requirements.iter().map(|requirement| &requirement.key))
}
