//! Topology spread, pod affinity and anti-affinity: how many pods of which kind are in which domain, and what that leaves
//! for the next one.
//!
//! A counter counts the pods that one term selects (or the holders of one anti-affinity term) by domain; equal terms
//! share a counter. A claim decides on a domain no sooner than a pod needs it to: until then its pods wait to be counted.

use std::collections::BTreeMap;

mod allow;
mod census;
mod counter;
mod demand;
mod explain;
mod reach;
mod register;
mod running;
#[cfg(test)]
mod tests;

pub(crate) use allow::{AxisRule, Verdict};
pub(crate) use counter::{Axis, Counter, Site};
pub(crate) use demand::{Constraint, Demand, Rule};
pub(crate) use reach::Around;
pub(crate) use register::{Filter, selector_keys};
pub(crate) use running::Running;

use super::existing::ExistingNodes;
use super::pool::Pool;
use crate::pod::PodShape;
use crate::snapshot::Snapshot;
use crate::symbol::{Bits, KeyId, SymbolSet, Symbols, ValueSet, id_of};
use register::{EVERY_NODE, Index, Register};

/// Where the nodes are on one topology key.
#[derive(Clone, Debug)]
pub(crate) struct KeyAxis {
    pub(crate) key: KeyId,
    /// Existing nodes by value.
    nodes: Vec<Bits>,
    /// Existing nodes that have no such label.
    nodes_without: Bits,
    /// Existing nodes that have not decided, with the values that they may get.
    nodes_open: BTreeMap<u32, Bits>,
    /// Claims by value that they may get, and by value that they have decided on.
    claims: Vec<Bits>,
    claims_decided: Vec<Bits>,
}

/// A claim's part in counting.
#[derive(Clone, Debug, Default)]
struct ClaimState {
    /// By key axis: the value decided on.
    decided: Vec<Option<u32>>,
    /// Pods that wait for a decision: counter and number.
    waiting: Vec<(u32, u32)>,
}

/// Everything about domains in one round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology<'a> {
    pub(crate) axes: Vec<KeyAxis>,
    pub(crate) counters: Vec<Counter>,
    /// Counters as the running pods left them.
    running: Vec<Counter>,
    filters: Vec<Filter<'a>>,
    /// Requirement sets of each filter, one of which must be met, and the existing nodes that pass.
    filter_sets: Vec<Vec<SymbolSet>>,
    filter_nodes: Vec<Bits>,
    claims: Vec<ClaimState>,
    /// Existing nodes with a Node object: only they make their labels' values domains.
    real_nodes: Bits,
    /// NodePools at their limits: no node comes from them now, but their domains are there to be spread over.
    at_limit: Vec<Pool<'a>>,
    /// Domains compared by a spread, worked out once for each key, filter and requirement set.
    universes: BTreeMap<(u32, u32, u32), Bits>,
}

/// Terms collected before nodes and counters exist.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    register: Register<'a>,
    /// By shape of the running pods: counters of the holders of its anti-affinity.
    running_held: Vec<Vec<u32>>,
}

impl<'a> Terms<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, symbols: &mut Symbols) -> Self {
        Self { register: Register::new(snapshot, symbols), running_held: Vec::new() }
    }

    /// What a shape asks for; [`Terms::finish`] completes it.
    pub(crate) fn demand(&mut self, shape: &'a PodShape, ignore_preferences: bool, symbols: &mut Symbols) -> Demand {
        self.register.demand(shape, ignore_preferences, symbols)
    }

    /// Adds the anti-affinity of running pods and tells every group by whom it is counted and held off.
    pub(crate) fn finish<'d>(
        &mut self,
        groups: impl Iterator<Item = (&'a PodShape, &'d mut Demand)>,
        running: &Running<'a>,
        symbols: &mut Symbols,
    ) {
        for shape in &running.shapes {
            let held = shape.pod_anti_affinity.iter().map(|term| self.register.holders(shape, term, symbols));
            self.running_held.push(held.collect());
        }
        if self.register.identities.is_empty() {
            return;
        }
        let index = Index::new(&self.register.identities);
        for (shape, demand) in groups {
            let (counted, held_off) = index.selecting(shape);
            demand.counted = counted;
            let held_off = held_off.into_iter().map(|counter| Constraint { counter, rule: Rule::Apart { own: false } });
            let own = std::mem::take(&mut demand.constraints);
            demand.constraints = held_off.collect();
            demand.hard += demand.constraints.len();
            demand.constraints.extend(own);
        }
    }

    /// Nobody looks at other pods.
    pub(crate) fn is_empty(&self) -> bool {
        self.register.identities.is_empty()
    }

    /// Label keys that nodes are asked for: topology keys and the keys of node filters.
    pub(crate) fn keys(&self, symbols: &mut Symbols) -> Bits {
        let mut keys: Bits = self.register.keys.iter().copied().collect();
        for filter in &self.register.filters {
            for set in census::filter_sets(filter, symbols) {
                keys.or(&set.iter().map(|(key, _)| key).collect());
            }
        }
        keys
    }
}

impl<'a> Topology<'a> {
    /// Counts what runs.
    pub(crate) fn new(
        terms: Terms<'a>,
        running: &Running<'a>,
        nodes: &ExistingNodes<'a>,
        at_limit: Vec<Pool<'a>>,
        symbols: &mut Symbols,
    ) -> Self {
        let register = terms.register;
        if register.identities.is_empty() {
            return Self::default();
        }
        let filter_sets: Vec<Vec<SymbolSet>> =
            register.filters.iter().map(|filter| census::filter_sets(filter, symbols)).collect();
        let axes = register.keys.iter().map(|key| census::axis(*key, nodes, symbols)).collect();
        let mut topology = Self {
            axes,
            counters: register.identities.iter().map(|one| Counter::new(one.axis, one.filter)).collect(),
            filters: register.filters.clone(),
            filter_nodes: Vec::new(),
            filter_sets,
            at_limit,
            ..Self::default()
        };
        for (at, filter) in topology.filters.iter().enumerate() {
            let sets = topology.filter_sets.get(at).map_or(&[][..], Vec::as_slice);
            topology.filter_nodes.push(census::passing(filter, sets, nodes, symbols));
        }
        let real = nodes.nodes.iter().enumerate().filter(|(_, node)| node.source.node_name.is_some());
        topology.real_nodes = real.map(|(at, _)| id_of(at)).collect();
        census::count(&mut topology, (&register, &terms.running_held), running, nodes, symbols);
        topology.running.clone_from(&topology.counters);
        topology
    }

    /// Nothing in the round spreads, attracts or repels.
    pub(crate) fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    pub(crate) fn counter(&self, at: u32) -> Option<&Counter> {
        self.counters.get(at as usize)
    }

    /// Forgets this round's claims and pods.
    pub(crate) fn reset(&mut self) {
        // Versions go on growing: what was remembered about them is void.
        let versions: Vec<u64> = self.counters.iter().map(|counter| counter.version).collect();
        self.counters.clone_from(&self.running);
        for (counter, version) in self.counters.iter_mut().zip(versions) {
            counter.version += version + 1;
        }
        self.claims.clear();
        for axis in &mut self.axes {
            axis.claims.clear();
            axis.claims_decided.clear();
        }
    }

    /// A claim was opened, or decided something: its pods that waited for that are counted.
    pub(crate) fn narrowed(&mut self, claim: u32, requirements: &SymbolSet, around: Around<'_, '_>) {
        if self.is_empty() {
            return;
        }
        let at = claim as usize;
        if self.claims.len() <= at {
            self.claims.resize(at + 1, ClaimState::default());
        }
        let Some(state) = self.claims.get_mut(at) else { return };
        state.decided.resize(self.axes.len(), None);
        for (axis_at, axis) in self.axes.iter_mut().enumerate() {
            let Some(decided) = state.decided.get_mut(axis_at) else { continue };
            if decided.is_some() {
                continue;
            }
            let values = around.symbols.values(axis.key).len();
            axis.claims.resize(values, Bits::default());
            axis.claims_decided.resize(values, Bits::default());
            let own = requirements.get(axis.key);
            let may_have = |value: u32| own.is_none_or(|own| own.has(value, around.symbols.integers(axis.key)));
            for (value, bits) in axis.claims.iter_mut().enumerate() {
                if may_have(id_of(value)) { bits.insert(claim) } else { bits.remove(claim) }
            }
            *decided = own.and_then(single);
            let Some(value) = *decided else { continue };
            if let Some(bits) = axis.claims_decided.get_mut(value as usize) {
                bits.insert(claim);
            }
            let counters = &mut self.counters;
            state.waiting.retain(|(counter, pods)| {
                let Some(counter) = counters.get_mut(*counter as usize) else { return false };
                if counter.axis != Axis::Key(id_of(axis_at)) {
                    return true;
                }
                counter.decided(Some(value), *pods);
                false
            });
        }
    }

    /// Counts pods of a group that were placed.
    pub(crate) fn record(
        &mut self,
        demand: &Demand,
        site: Site,
        pods: u32,
        passes: impl Fn(&[SymbolSet], &Filter<'_>) -> bool,
    ) {
        for at in demand.counted.iter().chain(&demand.held) {
            let Some(counter) = self.counters.get_mut(*at as usize) else { continue };
            let filter = counter.filter as usize;
            let counts = counter.filter == EVERY_NODE
                || match site {
                    Site::Node(node) => self.filter_nodes.get(filter).is_some_and(|nodes| nodes.contains(node)),
                    Site::Claim(_) => match (self.filter_sets.get(filter), self.filters.get(filter)) {
                        (Some(sets), Some(filter)) => passes(sets, filter),
                        _ => false,
                    },
                };
            if !counts {
                continue;
            }
            match (counter.axis, site) {
                (Axis::Host, Site::Node(node)) => counter.add(node, pods),
                (Axis::Host, Site::Claim(claim)) => counter.add_on_claim(claim, pods),
                (Axis::Key(axis), Site::Node(node)) => {
                    if let Some(axis) = self.axes.get(axis as usize) {
                        axis.count(counter, node, pods);
                    }
                }
                (Axis::Key(axis), Site::Claim(claim)) => {
                    let Some(state) = self.claims.get_mut(claim as usize) else { continue };
                    if let Some(value) = state.decided.get(axis as usize).copied().flatten() {
                        counter.add(value, pods);
                        continue;
                    }
                    counter.wait(pods);
                    match state.waiting.iter_mut().find(|(known, _)| known == at) {
                        Some((_, waiting)) => *waiting += pods,
                        None => state.waiting.push((*at, pods)),
                    }
                }
            }
        }
    }

    /// Claims with pods of a counter that wait for a decision, oldest first.
    pub(crate) fn waiting(&self, counter: u32) -> Vec<u32> {
        let has = |state: &ClaimState| state.waiting.iter().any(|(known, _)| *known == counter);
        self.claims.iter().enumerate().filter(|(_, state)| has(state)).map(|(at, _)| id_of(at)).collect()
    }

    /// Pods of a counter that wait on one claim.
    fn waiting_on(&self, claim: u32, counter: u32) -> u32 {
        let waiting = self.claims.get(claim as usize).map_or(&[][..], |state| state.waiting.as_slice());
        waiting.iter().find(|(known, _)| *known == counter).map_or(0, |(_, pods)| *pods)
    }

    /// Changes whenever counts that these constraints look at do.
    pub(crate) fn version(&self, constraints: &[Constraint]) -> u64 {
        constraints.iter().filter_map(|one| self.counter(one.counter)).map(|counter| counter.version).sum()
    }
}

impl KeyAxis {
    /// Counts pods on an existing node.
    fn count(&self, counter: &mut Counter, node: u32, pods: u32) {
        if let Some(open) = self.nodes_open.get(&node) {
            return counter.add_somewhere(open, pods);
        }
        match self.nodes.iter().position(|nodes| nodes.contains(node)) {
            Some(value) => counter.add(id_of(value), pods),
            None => counter.add_nowhere(),
        }
    }
}

/// The one value that a requirement leaves.
pub(crate) fn single(values: &ValueSet) -> Option<u32> {
    if values.complement {
        return None;
    }
    let mut bits = values.bits.iter();
    let first = bits.next()?;
    bits.next().is_none().then_some(first)
}
