//! Counting what runs when a round begins.

use std::collections::{BTreeMap, HashMap};

use super::counter::Axis;
use super::register::{EVERY_NODE, Filter, Index, Register};
use super::running::Running;
use super::{KeyAxis, Topology};
use crate::node::Node;
use crate::schedule::existing::{ExistingNodes, Label};
use crate::symbol::{Bits, KeyId, SymbolSet, Symbols, id_of};
use crate::taint::untolerated;

/// The requirement sets of a filter, one of which a node must meet; none = every node does.
pub(super) fn filter_sets(filter: &Filter<'_>, symbols: &mut Symbols) -> Vec<SymbolSet> {
    let mut base = SymbolSet::default();
    for (key, value) in filter.selector.into_iter().flatten() {
        base.add_label(key, value, symbols);
    }
    if filter.terms.is_empty() {
        return if filter.selector.is_some() { vec![base] } else { Vec::new() };
    }
    let with = |term: &crate::pod::Term| {
        let mut set = base.clone();
        for requirement in term {
            set.add_requirement(requirement, symbols);
        }
        set
    };
    filter.terms.iter().map(with).collect()
}

/// Existing nodes that pass a filter.
pub(super) fn passing(filter: &Filter<'_>, sets: &[SymbolSet], nodes: &ExistingNodes<'_>, symbols: &Symbols) -> Bits {
    let passes = |at: &usize| {
        let meets = sets.is_empty() || sets.iter().any(|set| nodes.meets(*at, set, symbols));
        meets && filter.tolerations.is_none_or(|tolerations| nodes.tolerated(*at, tolerations, true))
    };
    (0..nodes.nodes.len()).filter(passes).map(id_of).collect()
}

/// Where the existing nodes are on a key.
pub(super) fn axis(key: KeyId, nodes: &ExistingNodes<'_>, symbols: &Symbols) -> KeyAxis {
    let mut axis = KeyAxis {
        key,
        nodes: vec![Bits::default(); symbols.values(key).len()],
        nodes_without: Bits::default(),
        nodes_open: BTreeMap::new(),
        claims: Vec::new(),
        claims_decided: Vec::new(),
    };
    for at in 0..nodes.nodes.len() {
        let node = id_of(at);
        match nodes.label(at, key) {
            Label::Absent => axis.nodes_without.insert(node),
            Label::Is(value) => {
                if let Some(bits) = axis.nodes.get_mut(value as usize) {
                    bits.insert(node);
                }
            }
            Label::Open(own) => {
                let values =
                    (0..id_of(symbols.values(key).len())).filter(|value| own.has(*value, symbols.integers(key)));
                axis.nodes_open.insert(node, values.collect());
            }
        }
    }
    axis
}

/// Counts the running pods.
pub(super) fn count(
    topology: &mut Topology<'_>,
    (register, held): (&Register<'_>, &[Vec<u32>]),
    running: &Running<'_>,
    nodes: &ExistingNodes<'_>,
    symbols: &Symbols,
) {
    let index = Index::new(&register.identities);
    let counted: Vec<Vec<u32>> = running
        .shapes
        .iter()
        .enumerate()
        .map(|(at, shape)| {
            let (mut counted, _) = index.selecting(shape);
            counted.extend(held.get(at).into_iter().flatten());
            counted
        })
        .collect();
    if counted.iter().all(Vec::is_empty) {
        return;
    }
    let places: HashMap<*const Node, u32> =
        nodes.nodes.iter().enumerate().map(|(at, node)| (std::ptr::from_ref(node.source), id_of(at))).collect();
    for (node, pods) in &running.on {
        for (shape, pods) in pods {
            for counter in counted.get(*shape as usize).into_iter().flatten() {
                match places.get(&std::ptr::from_ref(*node)) {
                    Some(at) => topology.count_running(*counter, *at, *pods),
                    None => topology.count_leaving(*counter, node, *pods, symbols),
                }
            }
        }
    }
}

impl Topology<'_> {
    fn count_running(&mut self, counter: u32, node: u32, pods: u32) {
        let Some(counter) = self.counters.get_mut(counter as usize) else { return };
        if !self.filter_nodes.get(counter.filter as usize).is_some_and(|nodes| nodes.contains(node)) {
            return;
        }
        match counter.axis {
            Axis::Host => counter.add(node, pods),
            Axis::Key(axis) => {
                if let Some(axis) = self.axes.get(axis as usize) {
                    axis.count(counter, node, pods);
                }
            }
        }
    }

    /// Pods that stay on a node which is going away: no pod can join them there, but they count in their other domains.
    fn count_leaving(&mut self, counter: u32, node: &Node, pods: u32, symbols: &Symbols) {
        let Some(counter) = self.counters.get_mut(counter as usize) else { return };
        let (filter, sets) = (self.filters.get(counter.filter as usize), self.filter_sets.get(counter.filter as usize));
        let (Some(filter), Some(sets)) = (filter, sets) else { return };
        let label = |key: KeyId| {
            let value = node.labels.get(&symbols.key_name(key))?;
            symbols.find_value(key, value)
        };
        let meets = |set: &SymbolSet| {
            set.iter().all(|(key, asked)| match label(key) {
                Some(value) => asked.has(value, symbols.integers(key)),
                // A value that nothing else in the round has is told from every value that is asked for.
                None if node.labels.contains_key(&symbols.key_name(key)) => asked.complement && !asked.is_bounded(),
                None => asked.allows_absence(),
            })
        };
        let passes = counter.filter == EVERY_NODE
            || ((sets.is_empty() || sets.iter().any(meets))
                && filter.tolerations.is_none_or(|ours| untolerated(&node.taints, ours, true).is_none()));
        if !passes {
            return;
        }
        match counter.axis {
            Axis::Key(axis) => match self.axes.get(axis as usize).and_then(|axis| label(axis.key)) {
                Some(value) => counter.add(value, pods),
                None => counter.add_somewhere(&Bits::default(), pods),
            },
            Axis::Host => counter.add_somewhere(&Bits::default(), pods),
        }
    }
}
