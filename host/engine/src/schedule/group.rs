//! A group of pods with equal needs, prepared for placing, and what is remembered about it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::amounts::{ResourceNames, asked};
use super::relax::{every_requirement, ladder};
use crate::explain::Blocker;
use crate::pod::PodShape;
use crate::requirement::{Operator, Values, key};
use crate::symbol::{Bits, SymbolSet, Symbols, id_of};

/// Pods with equal needs.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) shape: &'a Arc<PodShape>,
    /// Requests by resource, and the same without zeros.
    pub(crate) requests: Vec<i64>,
    pub(crate) asked: Vec<(usize, i64)>,
    /// Relaxation steps, strictest first.
    pub(crate) levels: Vec<Level>,
    /// Never placed, for this reason.
    pub(crate) refused: Option<Blocker>,
    /// Offerings that a filter took from it, by view.
    pub(crate) dropped: Vec<Bits>,
    /// What filters said about most of them.
    pub(crate) dropped_because: Option<Arc<str>>,
    pub(crate) count: u32,
}

/// One relaxation step and what failed in it. Nodes and claims only fill up and narrow within a round, so what failed
/// once fails for good.
#[derive(Debug)]
pub(crate) struct Level {
    /// Requirement sets (interned), one per volume alternative.
    pub(crate) alternatives: Vec<u32>,
    pub(crate) ignore_preferred_taints: bool,
    /// Nodes before this one cannot take a further pod.
    pub(crate) node: usize,
    /// Claims that may still take one: number of pods when last looked at, and index.
    pub(crate) claims: BinaryHeap<Reverse<(u32, u32)>>,
    /// Claims known to `claims`.
    pub(crate) claims_seen: u32,
    /// NodePools that cannot open a claim for it.
    pub(crate) dead_pools: Bits,
}

/// Distinct requirement sets of a round.
#[derive(Debug, Default)]
pub(crate) struct RequirementSets {
    pub(crate) sets: Vec<SymbolSet>,
    index: BTreeMap<SymbolSet, u32>,
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
        (shape, count): (&'a Arc<PodShape>, u32),
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
            ignore_preferred_taints: step.ignore_preferred_taints,
            node: 0,
            claims: BinaryHeap::new(),
            claims_seen: 0,
            dead_pools: Bits::default(),
        };
        Self {
            shape,
            asked: asked(&requests),
            requests,
            levels: steps.into_iter().map(level).collect(),
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
