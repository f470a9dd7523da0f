//! Built-in policy `karpenter`: which running nodes should go. In this version only empty ones.
//!
//! Every empty node is a set of its own, so that a budget cuts the list anywhere. Dearest first.

#![no_std]

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;

use mortise_plugin_sdk::types::Groups;
use mortise_plugin_sdk::{PRICE_UNKNOWN, Rows};

#[cfg(target_arch = "wasm32")]
mod component;

const EMPTY: u32 = 1;
const CONSOLIDATABLE: u32 = 1 << 2;
const STATIC_POOL: u32 = 1 << 5;
const BUFFER_PODS: u32 = 1 << 6;
/// `consolidateAfter: Never`.
const NEVER: u64 = u64::MAX;

/// Columns of the nodes, and `consolidate-after-s` of the nodepools.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Nodes<'a> {
    pub state: &'a [u32],
    pub nodepool: &'a [u32],
    pub price_micro_usd: &'a [u64],
    pub consolidate_after_s: &'a [u64],
}

impl Nodes<'_> {
    /// May it go as empty? Empty and consolidatable, of a pool that is neither static nor set to never, holding no buffer.
    fn is_disposable(&self, node: usize) -> bool {
        let state = self.state.get(node).copied().unwrap_or(0);
        let pool = self.nodepool.get(node).map_or(usize::MAX, |pool| *pool as usize);
        let never = self.consolidate_after_s.get(pool).is_none_or(|after| *after == NEVER);
        state & (EMPTY | CONSOLIDATABLE) == EMPTY | CONSOLIDATABLE && state & (STATIC_POOL | BUFFER_PODS) == 0 && !never
    }

    /// Unknown counts as cheapest: nothing is known to be gained.
    fn price(&self, node: usize) -> u64 {
        self.price_micro_usd.get(node).copied().filter(|price| *price != PRICE_UNKNOWN).unwrap_or(0)
    }
}

/// Empty nodes not tried yet, one per set, dearest first, at most `max_sets`.
#[must_use]
pub fn propose(nodes: Nodes<'_>, tried: Rows<'_>, max_sets: u32) -> Groups {
    let mut seen = vec![false; nodes.state.len()];
    for node in tried.member {
        if let Some(seen) = seen.get_mut(*node as usize) {
            *seen = true;
        }
    }
    let open = |(node, seen): (usize, bool)| (!seen && nodes.is_disposable(node)).then_some(node);
    let mut empty: Vec<usize> = seen.into_iter().enumerate().filter_map(open).collect();
    empty.sort_by_key(|node| (core::cmp::Reverse(nodes.price(*node)), *node));
    empty.truncate(max_sets as usize);
    let member: Vec<u32> = empty.into_iter().filter_map(|node| u32::try_from(node).ok()).collect();
    Groups { end: (1..).take(member.len()).collect(), member }
}

/// Takes every feasible set of one empty node, dearest first; rejects the rest.
#[must_use]
pub fn decide(nodes: Nodes<'_>, tried: Rows<'_>, feasible: &[u8]) -> Vec<i64> {
    let decide = |(row, set): (usize, &[u32])| match set {
        [node] if feasible.get(row) == Some(&1) && nodes.is_disposable(*node as usize) => {
            i64::try_from(nodes.price(*node as usize)).unwrap_or(i64::MAX).saturating_add(1)
        }
        _ => 0,
    };
    tried.iter().enumerate().map(decide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: u32 = EMPTY | CONSOLIDATABLE;

    fn nodes() -> Nodes<'static> {
        Nodes {
            state: &[READY, EMPTY, READY | STATIC_POOL, READY | BUFFER_PODS, READY, READY, CONSOLIDATABLE],
            nodepool: &[0, 0, 0, 0, 0, 1, 0],
            price_micro_usd: &[100, 100, 100, 100, PRICE_UNKNOWN, 100, 100],
            consolidate_after_s: &[30, NEVER],
        }
    }

    #[test]
    fn proposes_empty_consolidatable_nodes_once() {
        let sets = propose(nodes(), Rows::default(), 10);
        assert_eq!((sets.end.as_slice(), sets.member.as_slice()), (&[1, 2][..], &[0, 4][..]));
        let more = propose(nodes(), (&sets).into(), 10);
        assert!(more.end.is_empty() && more.member.is_empty());
        assert_eq!(propose(nodes(), Rows::default(), 1).member, [0]);
    }

    #[test]
    fn decides_dearest_first_and_rejects_the_rest() {
        let tried = Rows { end: &[1, 2, 3, 5, 6], member: &[0, 4, 1, 0, 4, 0] };
        assert_eq!(decide(nodes(), tried, &[1, 1, 1, 1, 0]), [101, 1, 0, 0, 0]);
    }
}
