//! NodePool limits, charged while NodeClaims are opened.

use std::sync::Arc;

use crate::catalog::ResourceColumns;
use crate::nodepool::Limits;
use crate::quantity::Resources;
use crate::symbol::Bits;

/// What is left of a NodePool's limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remaining {
    resources: Vec<(Arc<str>, i64)>,
    nodes: Option<i64>,
}

impl Remaining {
    /// Limits less the capacity of the nodes that count.
    pub(crate) fn new<'a>(limits: &Limits, nodes: impl Iterator<Item = &'a Resources>) -> Self {
        let mut left = Self {
            resources: limits.resources.iter().map(|(name, limit)| (Arc::clone(name), *limit)).collect(),
            nodes: limits.nodes,
        };
        for capacity in nodes {
            for (name, amount) in &mut left.resources {
                *amount = amount.saturating_sub(capacity.get(name));
            }
            left.nodes = left.nodes.map(|nodes| nodes - 1);
        }
        left
    }

    /// No further node may be opened.
    pub(crate) fn no_nodes_left(&self) -> bool {
        self.nodes.is_some_and(|nodes| nodes <= 0)
    }

    /// Removes types whose capacity exceeds what is left of some limit; returns the limit that removed most.
    pub(crate) fn restrict(&self, capacity: &ResourceColumns, types: &mut Bits) -> Option<Arc<str>> {
        let mut worst: Option<(usize, &Arc<str>)> = None;
        for (name, left) in &self.resources {
            let before = types.len();
            match capacity.get(name) {
                Some(column) => {
                    types.retain(|of_type| column.get(of_type as usize).is_some_and(|amount| amount <= left))
                }
                None if *left < 0 => *types = Bits::default(),
                None => {}
            }
            let removed = before - types.len();
            if removed > 0 && worst.is_none_or(|(most, _)| removed > most) {
                worst = Some((removed, name));
            }
        }
        worst.map(|(_, name)| Arc::clone(name))
    }

    /// Charges a new node that may be any of these types: for each resource the largest, so that whatever is launched
    /// the limit holds. Returns what was charged, for [`Self::refund`].
    pub(crate) fn charge(&mut self, capacity: &ResourceColumns, types: &Bits) -> Vec<i64> {
        self.nodes = self.nodes.map(|nodes| nodes - 1);
        let largest = |name: &str| {
            let column = capacity.get(name)?;
            types.iter().filter_map(|of_type| column.get(of_type as usize)).max().copied()
        };
        self.resources
            .iter_mut()
            .map(|(name, left)| {
                let charged = largest(name).unwrap_or(0);
                *left = left.saturating_sub(charged);
                charged
            })
            .collect()
    }

    /// Takes back one charge.
    pub(crate) fn refund(&mut self, charged: &[i64]) {
        self.nodes = self.nodes.map(|nodes| nodes + 1);
        for ((_, left), charged) in self.resources.iter_mut().zip(charged) {
            *left = left.saturating_add(*charged);
        }
    }
}
