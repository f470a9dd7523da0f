//! A NodePool made ready for a round: its template as symbols, the types and offerings left, and room per type.

use std::sync::Arc;

use super::amounts::ResourceNames;
use super::limits::Remaining;
use super::reservations::full_reservations;
use crate::catalog::View;
use crate::explain::{Blocker, PoolReason};
use crate::nodepool::NodePool;
use crate::pod::{HostPort, PodShape};
use crate::requirement::{Operator, Requirement, key};
use crate::snapshot::Options;
use crate::symbol::{Bits, SymbolSet, Symbols};
use crate::taint::untolerated;

/// A NodePool that new nodes may come from.
#[derive(Clone, Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) source: &'a Arc<NodePool>,
    /// Index of its catalogue's view.
    pub(crate) view: usize,
    /// Requirements of a new node before any pod.
    pub(crate) template: SymbolSet,
    /// Keys that pods may ask for although the template says nothing: instance types and offerings define them.
    pub(crate) allow_undefined: Bits,
    /// Types and offerings that the template leaves.
    pub(crate) types: Bits,
    pub(crate) offerings: Bits,
    /// Of them, types that hold their DaemonSets.
    pub(crate) holds_daemons: Bits,
    /// By resource: allocatable less DaemonSets, per type.
    pub(crate) room: Vec<Vec<i64>>,
    /// By resource: what DaemonSets take, per type; empty when they take nothing.
    pub(crate) overhead: Vec<Vec<i64>>,
    pub(crate) limits: Remaining,
    /// Host ports of DaemonSets, and the types on which they are taken.
    daemon_ports: Vec<(Vec<HostPort>, Bits)>,
}

/// Requirements of a new node of the pool: the spec's, its labels, and what the simulation adds.
pub(crate) fn template(pool: &NodePool, symbols: &mut Symbols) -> SymbolSet {
    let mut set = SymbolSet::new(&pool.requirements, symbols);
    for (key, value) in &pool.labels {
        set.add_label(key, value, symbols);
    }
    set.add_label(&Arc::from(key::NODEPOOL), &pool.name, symbols);
    set.add_label(&node_class_label(pool), &pool.node_class.2, symbols);
    // DaemonSets that wait for these labels run on the node sooner or later; the claim does not carry them.
    for label in [key::REGISTERED, key::INITIALIZED] {
        set.add_label(&Arc::from(label), &Arc::from("true"), symbols);
    }
    set
}

/// `<group>/<kind in lower case>`: the label that names a node's class.
pub(crate) fn node_class_label(pool: &NodePool) -> Arc<str> {
    Arc::from(format!("{}/{}", pool.node_class.0, pool.node_class.1.to_lowercase()))
}

impl<'a> Pool<'a> {
    /// Prepares a pool that is stated to be usable.
    ///
    /// # Errors
    /// Why nothing can come from it.
    pub(crate) fn new(
        source: &'a Arc<NodePool>,
        (at, view): (usize, &View<'_>),
        daemons: &[Arc<PodShape>],
        resources: &ResourceNames,
        limits: Remaining,
        options: &Options,
        symbols: &mut Symbols,
    ) -> Result<Self, PoolReason> {
        let template = template(source, symbols);
        let mut allow_undefined = view.known_keys.clone();
        for name in key::WELL_KNOWN {
            allow_undefined.insert(symbols.key(&Arc::from(name)));
        }
        if let Some(key) = template.contradiction() {
            let problem = "the NodePool's own requirements and labels on it exclude one another".into();
            let blocker = Blocker::Refused { key: symbols.key_name(key), problem };
            return Err(PoolReason::NoInstanceTypes(blocker));
        }
        let (mut types, mut offerings) = view.matching(&template);
        if let Some(ids) = full_reservations(view, &template) {
            return Err(PoolReason::ReservationsFull(ids));
        }
        if types.is_empty() {
            return Err(PoolReason::NoInstanceTypes(Self::last_straw(source, view, &template, symbols)));
        }
        types.and(&view.columns.sound);
        view.settle(&mut types, &mut offerings);
        if types.is_empty() {
            return Err(PoolReason::NoInstanceTypes(Self::last_straw(source, view, &template, symbols)));
        }
        if !options.min_values_best_effort
            && let Some((key, _)) = template.iter().find(|(key, values)| {
                values.min_values.is_some_and(|wanted| view.distinct_values(*key, values, &types) < wanted)
            })
        {
            return Err(PoolReason::NoInstanceTypes(Blocker::MinValues(symbols.key_name(key))));
        }
        let mut within = types.clone();
        if let Some(limit) = limits.restrict(&view.columns.capacity, &mut within)
            && within.is_empty()
        {
            return Err(PoolReason::Limit(limit));
        }
        if limits.no_nodes_left() {
            return Err(PoolReason::Limit(Arc::from("nodes")));
        }
        let mut pool = Self {
            source,
            view: at,
            template,
            allow_undefined,
            holds_daemons: types.clone(),
            types,
            offerings,
            room: resources
                .iter()
                .map(|name| {
                    let column = view.columns.allocatable.get(name);
                    column.map_or_else(|| vec![0; view.columns.types()], <[i64]>::to_vec)
                })
                .collect(),
            overhead: vec![Vec::new(); resources.iter().len()],
            limits,
            daemon_ports: Vec::new(),
        };
        for daemon in daemons {
            pool.add_daemon(daemon, view, resources, symbols);
        }
        let room = std::mem::take(&mut pool.room);
        pool.holds_daemons.retain(|of_type| {
            room.iter().all(|column| column.get(of_type as usize).is_some_and(|amount| *amount >= 0))
        });
        pool.room = room;
        Ok(pool)
    }

    /// Takes a DaemonSet's pod off the room of every type of the template that it would run on.
    fn add_daemon(&mut self, daemon: &PodShape, view: &View<'_>, resources: &ResourceNames, symbols: &mut Symbols) {
        if untolerated(&self.source.taints, &daemon.tolerations, true).is_some() {
            return;
        }
        let mut runs_on = Bits::none(view.columns.types());
        let terms = daemon.required_affinity.len().max(1);
        for term in 0..terms {
            let asked = daemon_requirements(daemon, term, symbols);
            if self.template.compatible(&asked, &self.allow_undefined, symbols).is_err() {
                continue;
            }
            let mut whole = self.template.clone();
            whole.extend(&asked, symbols);
            let mut agreeing = Bits::all(view.columns.types());
            for (key, _) in asked.iter() {
                if let Some(values) = whole.get(key) {
                    agreeing.and(&view.types_agreeing(key, values));
                }
            }
            runs_on.or(&agreeing);
        }
        if !daemon.host_ports.is_empty() {
            self.daemon_ports.push((daemon.host_ports.clone(), runs_on.clone()));
        }
        for (resource, amount) in resources.dense(&daemon.requests).into_iter().enumerate() {
            if amount == 0 {
                continue;
            }
            let (Some(room), Some(overhead)) = (self.room.get_mut(resource), self.overhead.get_mut(resource)) else {
                continue;
            };
            overhead.resize(room.len(), 0);
            for of_type in runs_on.iter() {
                if let (Some(room), Some(taken)) = (room.get_mut(of_type as usize), overhead.get_mut(of_type as usize))
                {
                    *room = room.saturating_sub(amount);
                    *taken = taken.saturating_add(amount);
                }
            }
        }
    }

    /// Types on which DaemonSets have taken a host port that the pod wants.
    pub(crate) fn ports_taken(&self, shape: &PodShape) -> Bits {
        let mut taken = Bits::default();
        for (ports, types) in &self.daemon_ports {
            if super::holdings::conflict(ports, &shape.host_ports) {
                taken.or(types);
            }
        }
        taken
    }

    /// The least that DaemonSets take on any of these types, by resource.
    pub(crate) fn least_overhead(&self, types: &Bits) -> Vec<i64> {
        let least = |column: &Vec<i64>| {
            types.iter().map(|of_type| column.get(of_type as usize).copied().unwrap_or(0)).min().unwrap_or(0)
        };
        self.overhead.iter().map(least).collect()
    }

    /// The requirement that leaves no type or offering, applied in the order of keys.
    fn last_straw(source: &NodePool, view: &View<'_>, template: &SymbolSet, symbols: &Symbols) -> Blocker {
        let considered = view.columns.types();
        let mut types = Bits::all(considered);
        let mut offerings = view.columns.launchable.clone();
        for (key, values) in template.iter() {
            let mut next = types.clone();
            next.and(&view.types_agreeing(key, values));
            if let Some(agreeing) = view.offerings_agreeing(key, values) {
                offerings.and(&agreeing);
            }
            let has_offering = !view.columns.available.is_empty();
            let mut left = next.clone();
            let mut left_offerings = offerings.clone();
            view.settle(&mut left, &mut left_offerings);
            if next.is_empty() || (left.is_empty() && has_offering) {
                return super::reason::requirement(key, values, None, view, &source.name, symbols);
            }
            types = next;
        }
        let left = types.len();
        Blocker::NoInstanceType {
            considered: crate::symbol::id_of(considered),
            by_requirements: crate::symbol::id_of(considered - left),
            by_resources: 0,
            by_offerings: crate::symbol::id_of(left),
            by_policy: 0,
            short_of: None,
        }
    }
}

/// What a DaemonSet's pod requires with the given one of its affinity terms; preferences do not count.
pub(crate) fn daemon_requirements(daemon: &PodShape, term: usize, symbols: &mut Symbols) -> SymbolSet {
    let mut set = SymbolSet::default();
    for (key, value) in &daemon.node_selector {
        set.add_label(key, value, symbols);
    }
    for requirement in daemon.required_affinity.get(term).into_iter().flatten() {
        set.add_requirement(requirement, symbols);
    }
    set
}

/// A claim's or NodePool's `In` requirement on one value.
pub(crate) fn exactly(key: &Arc<str>, values: Vec<Arc<str>>, min_values: Option<u32>) -> Requirement {
    Requirement { key: Arc::clone(key), operator: Operator::In, values, min_values }
}
