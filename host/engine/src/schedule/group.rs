//! A group of pods with equal needs, prepared for placing, and what is remembered about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::amounts::{ResourceNames, asked};
use super::relax::{every_requirement, ladder};
use super::topology::Demand;
use crate::explain::Blocker;
use crate::pod::PodShape;
use crate::requirement::{Operator, Values, key};
use crate::symbol::{Bits, SymbolSet, Symbols, id_of};

/// Pods with equal needs.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) shape: &'a Arc<PodShape>,
    /// Requests by resource, and the same without zeros.
    pub(crate) requests: Vec<i64>,
    pub(crate) asked: Vec<(usize, i64)>,
    /// Relaxation steps, strictest first.
    pub(crate) levels: Vec<Level>,
    /// What it asks about other pods.
    pub(crate) demand: Demand,
    /// Never placed, for this reason.
    pub(crate) refused: Option<Blocker>,
    /// Offerings that a filter took from it, by view.
    pub(crate) dropped: Vec<Bits>,
    /// What filters said about most of them.
    pub(crate) dropped_because: Option<Arc<str>>,
    pub(crate) count: u32,
}

/// One relaxation step and what failed in it. Nodes and claims only fill up and narrow within a round, so what failed
/// once fails for good; only what failed for the counts of the moment is looked at again.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// Requirement sets (interned), one per volume alternative.
    pub(crate) alternatives: Vec<u32>,
    /// The same without preferences.
    pub(crate) strict: Vec<u32>,
    /// How many of the group's constraints about other pods hold.
    pub(crate) constraints: usize,
    pub(crate) ignore_preferred_taints: bool,
    /// Nodes before this one cannot take a further pod (groups placed in bulk).
    pub(crate) node: usize,
    /// Nodes that cannot take a further pod (the others).
    pub(crate) refused_nodes: Bits,
    /// Claims that cannot take a further pod.
    pub(crate) refused_claims: Bits,
    /// NodePools that cannot open a claim for it.
    pub(crate) dead_pools: Bits,
    /// State of counts and claims in which it failed.
    pub(crate) failed_at: Option<(u64, u32)>,
}

impl Level {
    /// Claims were taken back.
    pub(crate) fn forget_claims(&mut self) {
        self.refused_claims = Bits::default();
        self.dead_pools = Bits::default();
        self.failed_at = None;
    }
}

/// Distinct requirement sets of a round.
#[derive(Debug)]
pub(crate) struct RequirementSets {
    /// The set that asks for nothing.
    pub(crate) nothing: u32,
    pub(crate) sets: Vec<SymbolSet>,
    index: BTreeMap<SymbolSet, u32>,
}

impl Default for RequirementSets {
    fn default() -> Self {
        let mut sets = Self { nothing: 0, sets: Vec::new(), index: BTreeMap::new() };
        sets.nothing = sets.intern(SymbolSet::default());
        sets
    }
}

impl RequirementSets {
    pub(crate) fn intern(&mut self, set: SymbolSet) -> u32 {
        if let Some(id) = self.index.get(&set) {
            return *id;
        }
        let id = id_of(self.sets.len());
        self.sets.push(set.clone());
        self.index.insert(set, id);
        id
    }

    /// Every key that some set names.
    pub(crate) fn keys(&self) -> Bits {
        self.sets.iter().flat_map(|set| set.iter().map(|(key, _)| key)).collect()
    }
}

impl<'a> Group<'a> {
    pub(crate) fn new(
        (shape, count, demand): (&'a Arc<PodShape>, u32, Demand),
        (ignore_preferences, preferred_taints): (bool, bool),
        resources: &ResourceNames,
        sets: &mut RequirementSets,
        symbols: &mut Symbols,
    ) -> Self {
        let requests = resources.dense(&shape.requests);
        let refused = refusal(shape);
        let steps =
            if refused.is_some() { Vec::new() } else { ladder(shape, ignore_preferences, preferred_taints, symbols) };
        let level = |step: super::relax::Step| Level {
            alternatives: step.alternatives.into_iter().map(|set| sets.intern(set)).collect(),
            strict: step.strict.into_iter().map(|set| sets.intern(set)).collect(),
            constraints: demand.hard + step.soft,
            ignore_preferred_taints: step.ignore_preferred_taints,
            node: 0,
            refused_nodes: Bits::default(),
            refused_claims: Bits::default(),
            dead_pools: Bits::default(),
            failed_at: None,
        };
        Self {
            shape,
            asked: asked(&requests),
            requests,
            levels: steps.into_iter().map(level).collect(),
            demand,
            refused,
            dropped: Vec::new(),
            dropped_because: None,
            count,
        }
    }

    /// Takes further offerings of a view from it.
    pub(crate) fn drop_offerings(&mut self, view: usize, removed: &Bits) {
        if self.dropped.len() <= view {
            self.dropped.resize(view + 1, Bits::default());
        }
        if let Some(dropped) = self.dropped.get_mut(view) {
            dropped.or(removed);
        }
    }

    /// Offerings of a view that filters took from it.
    pub(crate) fn dropped_of(&self, view: usize) -> Option<&Bits> {
        self.dropped.get(view).filter(|bits| !bits.is_empty())
    }
}

/// Why a pod is not placed whatever the nodes are.
fn refusal(shape: &PodShape) -> Option<Blocker> {
    if !shape.unsupported.is_empty() {
        return Some(Blocker::Unsupported(shape.unsupported.join("; ").into()));
    }
    every_requirement(shape).find_map(|requirement| {
        let refused =
            |problem: &str| Some(Blocker::Refused { key: Arc::clone(&requirement.key), problem: problem.into() });
        if &*requirement.key == key::NODEPOOL && requirement.operator == Operator::DoesNotExist {
            return refused("the pod refuses nodes of every NodePool");
        }
        if &*requirement.key == key::HOSTNAME {
            return refused("a pod that names its host cannot be given a new node");
        }
        if is_restricted(&requirement.key) {
            return refused("labels of this domain are set by the provisioner and cannot be asked for");
        }
        let compares = matches!(requirement.operator, Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte);
        if compares && crate::requirement::is_impossible(&requirement) {
            let found = requirement.values.first().map_or("nothing", |value| value);
            return refused(&format!("{:?} needs one integer, found {found:?}", requirement.operator));
        }
        if requirement.operator == Operator::In && Values::new(&requirement).is_nothing() {
            return refused("In needs at least one value");
        }
        None
    })
}

/// Keys of the provisioner's own domain that are no labels of new nodes to choose by.
pub(crate) fn is_restricted(name: &str) -> bool {
    let domain = name.split_once('/').map_or("", |(domain, _)| domain);
    (domain == "karpenter.sh" || domain.ends_with(".karpenter.sh")) && !key::WELL_KNOWN.contains(&name)
}
