//! Built-in policy `cost`: the cheapest whole plan for a batch of pods.
//!
//! ```text
//! columns ─► model: parts of groups, kinds of node, dominated slots out
//!              ─► prices: what one pod of each part is worth (linear program by columns)
//!              ─► greedy: nodes with the most worth for their cost ─► search: ruin and rebuild ─► answer: columns
//! ```
//!
//! Pure: the same columns and step budget give the same answer, natively and as a component. Feasibility is arithmetic on
//! integers; worth is `f64` with additions, multiplications and divisions in a fixed order only, which every target
//! rounds alike.

#![no_std]

extern crate alloc;

use alloc::vec::Vec;

use mortise_plugin_sdk::{Candidates, Rows};

mod answer;
mod draw;
mod fill;
mod greedy;
mod kinds;
mod model;
mod parts;
mod prices;
mod search;
mod simplex;

/// A named column of a further resource.
pub type Extra<'a> = (&'a str, &'a [u64]);

/// What a new node can be: columns of the contract's `slots`, with what the catalogue says of each slot's offering.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Slots<'a> {
    pub nodepool: &'a [u32],
    pub cost: &'a [i64],
    pub cpu_milli: &'a [u64],
    pub memory_mib: &'a [u64],
    pub gpu: &'a [u32],
    pub pods: &'a [u32],
    pub extra: Vec<Extra<'a>>,
    /// Zone symbol of each slot's offering.
    pub zone: Vec<u32>,
    /// CPU that a node of the slot is charged against its pool's limit.
    pub cpu_charged_milli: Vec<u64>,
    /// Memory that a node of the slot is charged against its pool's limit.
    pub memory_charged_mib: Vec<u64>,
    /// Nodes that the slot allows: what is left of a reservation, else `u32::MAX`.
    pub nodes: Vec<u32>,
}

/// Pods to place, one row a group.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Pods<'a> {
    pub count: &'a [u32],
    pub cpu_milli: &'a [u64],
    pub memory_mib: &'a [u64],
    pub gpu: &'a [u32],
    pub extra: Vec<Extra<'a>>,
}

/// NodePools: precedence and what is left of their limits.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Pools<'a> {
    pub weight: &'a [u32],
    pub cpu_left_milli: &'a [u64],
    pub memory_left_mib: &'a [u64],
    pub nodes_left: &'a [u32],
}

/// Everything that a plan depends on.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Problem<'a> {
    pub slots: Slots<'a>,
    pub pods: Pods<'a>,
    pub pools: Pools<'a>,
    pub candidates: Candidates<'a>,
    pub max_per_node: &'a [u32],
    pub zone_skew: &'a [u32],
    pub conflicts: Rows<'a>,
    /// Added to every node's cost, micro-USD per hour: the higher, the fewer and bigger the nodes.
    pub node_cost_micro_usd: i64,
    /// Work that may be done, in steps: one is a look at one part of pods for one node.
    pub steps: u64,
}

/// Nodes to open: row `i` is any of the slots of row `i`, with `count[k]` pods of group `group.member[k]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// End of each row of slots.
    pub slot_end: Vec<u32>,
    /// Slots of all rows, cheapest first.
    pub slot: Vec<u32>,
    /// End of each row of groups.
    pub group_end: Vec<u32>,
    /// Groups of all rows.
    pub group: Vec<u32>,
    /// Pods of each group.
    pub count: Vec<u32>,
}

/// The cheapest plan found within `problem.steps`. Pods that no node can hold, or that the limits leave no node for, are
/// not in it.
///
/// NodePools of lower weight get only what those of higher weight cannot hold.
#[must_use]
pub fn propose(problem: &Problem<'_>) -> Proposal {
    let mut left = model::Left::new(problem);
    let mut proposal = Proposal::default();
    let mut budget = model::Budget::new(problem.steps);
    while let Some(model) = model::Model::next_tier(problem, &mut left) {
        let nodes = search::plan(&model, &mut budget);
        answer::write(problem, &model, &nodes, &mut left, &mut proposal);
    }
    proposal
}

#[cfg(test)]
mod tests;
