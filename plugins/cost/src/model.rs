//! The problem in the shape that planning works on: parts of pod groups and kinds of node.

use alloc::vec;
use alloc::vec::Vec;

use crate::{Problem, kinds, parts};

/// Steps that may still be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    left: u64,
    of: u64,
}

impl Budget {
    pub(crate) fn new(steps: u64) -> Self {
        Self { left: steps, of: steps }
    }

    /// Takes `steps`; false when they are used up.
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        self.left = self.left.saturating_sub(steps as u64);
        self.left > 0
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Share that is left, from 1 down to 0.
    pub(crate) fn share_left(&self) -> f64 {
        self.left as f64 / self.of.max(1) as f64
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }
}

/// A pod group, or its share of one zone when it must spread over zones.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) group: usize,
    pub(crate) zone: Option<u32>,
    pub(crate) count: u32,
    /// Most on one node.
    pub(crate) most: u32,
    /// Zonal skew allowed, and the parts of the same group.
    pub(crate) skew: u32,
    pub(crate) siblings: (usize, usize),
    /// Parts that it cannot share a node with.
    pub(crate) conflicts: Vec<u32>,
}

/// Slots that are the same to planning, less those that another is at least as good as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) slot: usize,
    pub(crate) pool: usize,
    pub(crate) class: usize,
    /// With the cost of a node added, micro-USD per hour, at least 1.
    pub(crate) cost: f64,
    pub(crate) cpu_charged: u64,
    pub(crate) memory_charged: u64,
    pub(crate) nodes: u32,
}

/// What is left to place and of the limits.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    /// Pods of each group.
    pub(crate) pods: Vec<u32>,
    pub(crate) pools: Vec<PoolLeft>,
    /// Weights still to be planned, highest first.
    tiers: Vec<u32>,
}

/// What is left of a NodePool's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolLeft {
    pub(crate) cpu: u64,
    pub(crate) memory: u64,
    pub(crate) nodes: u32,
}

impl PoolLeft {
    /// May a further node of the kind be opened?
    pub(crate) fn allows(&self, kind: &Kind) -> bool {
        self.nodes > 0
            && (self.cpu == u64::MAX || kind.cpu_charged <= self.cpu)
            && (self.memory == u64::MAX || kind.memory_charged <= self.memory)
    }

    /// Charges a node (unlimited stays unlimited).
    pub(crate) fn charge(&mut self, kind: &Kind) {
        if self.cpu != u64::MAX {
            self.cpu = self.cpu.saturating_sub(kind.cpu_charged);
        }
        if self.memory != u64::MAX {
            self.memory = self.memory.saturating_sub(kind.memory_charged);
        }
        if self.nodes != u32::MAX {
            self.nodes = self.nodes.saturating_sub(1);
        }
    }

    /// Takes a charge back.
    pub(crate) fn refund(&mut self, kind: &Kind) {
        if self.cpu != u64::MAX {
            self.cpu = self.cpu.saturating_add(kind.cpu_charged);
        }
        if self.memory != u64::MAX {
            self.memory = self.memory.saturating_add(kind.memory_charged);
        }
        if self.nodes != u32::MAX {
            self.nodes = self.nodes.saturating_add(1);
        }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.cpu != u64::MAX || self.memory != u64::MAX || self.nodes != u32::MAX
    }
}

impl Left {
    pub(crate) fn new(problem: &Problem<'_>) -> Self {
        let pools = &problem.pools;
        let pool = |at: usize| PoolLeft {
            cpu: pools.cpu_left_milli.get(at).copied().unwrap_or(u64::MAX),
            memory: pools.memory_left_mib.get(at).copied().unwrap_or(u64::MAX),
            nodes: pools.nodes_left.get(at).copied().unwrap_or(u32::MAX),
        };
        let mut tiers: Vec<u32> = problem.slots.nodepool.iter().map(|pool| weight(problem, *pool)).collect();
        tiers.sort_unstable_by(|a, b| b.cmp(a));
        tiers.dedup();
        Self { pods: problem.pods.count.to_vec(), pools: (0..pools.weight.len()).map(pool).collect(), tiers }
    }
}

pub(crate) fn weight(problem: &Problem<'_>, pool: u32) -> u32 {
    problem.pools.weight.get(pool as usize).copied().unwrap_or(0)
}

/// One tier of NodePools with the pods it can hold.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Resources that some pod asks for, the number of pods first.
    pub(crate) dims: usize,
    pub(crate) parts: Vec<Part>,
    /// Requests of one pod: `part * dims ..`.
    pub(crate) need: Vec<u32>,
    /// Cheapest first.
    pub(crate) kinds: Vec<Kind>,
    /// What a node holds: `kind * dims ..`.
    pub(crate) room: Vec<u32>,
    /// One over the room, 0 where there is none.
    pub(crate) inverse: Vec<f64>,
    /// Parts that kinds of the class may hold, ascending.
    pub(crate) classes: Vec<Vec<u32>>,
    pub(crate) has_conflicts: bool,
    pub(crate) pools: Vec<PoolLeft>,
    /// Some pool or kind of it is limited.
    pub(crate) limited: bool,
}

impl Model {
    /// The highest tier not planned yet that can hold some pod that is left; `None` after the last.
    pub(crate) fn next_tier(problem: &Problem<'_>, left: &mut Left) -> Option<Self> {
        while !left.tiers.is_empty() {
            let tier = left.tiers.remove(0);
            let columns = kinds::Columns::new(problem);
            let slots = kinds::slots_of_tier(problem, left, tier);
            let (parts, need) = parts::parts(problem, left, &columns, &slots);
            if parts.is_empty() {
                continue;
            }
            let (mut kinds, room, classes) = kinds::kinds(problem, &columns, &slots, (&parts, &need));
            kinds.iter_mut().for_each(|kind| kind.cost = kind.cost.max(1.0));
            let inverse = room.iter().map(|room| if *room == 0 { 0.0 } else { 1.0 / f64::from(*room) }).collect();
            let limited = kinds
                .iter()
                .any(|kind| kind.nodes != u32::MAX || left.pools.get(kind.pool).is_some_and(PoolLeft::is_limited));
            return Some(Self {
                dims: columns.dims(),
                has_conflicts: parts.iter().any(|part| !part.conflicts.is_empty()),
                parts,
                need,
                kinds,
                room,
                inverse,
                classes,
                pools: left.pools.clone(),
                limited,
            });
        }
        None
    }

    pub(crate) fn need(&self, part: usize) -> &[u32] {
        self.need.get(part * self.dims..(part + 1) * self.dims).unwrap_or(&[])
    }

    pub(crate) fn room(&self, kind: usize) -> &[u32] {
        self.room.get(kind * self.dims..(kind + 1) * self.dims).unwrap_or(&[])
    }

    pub(crate) fn inverse(&self, kind: usize) -> &[f64] {
        self.inverse.get(kind * self.dims..(kind + 1) * self.dims).unwrap_or(&[])
    }

    /// Parts that the kind may hold.
    pub(crate) fn class(&self, kind: usize) -> &[u32] {
        self.kinds.get(kind).and_then(|kind| self.classes.get(kind.class)).map_or(&[], Vec::as_slice)
    }

    /// Pods of each part.
    pub(crate) fn counts(&self) -> Vec<u32> {
        self.parts.iter().map(|part| part.count).collect()
    }

    /// How many pods of a part alone one node of a kind holds.
    pub(crate) fn alone(&self, kind: usize, part: usize) -> u32 {
        let of = |(room, need): (&u32, &u32)| if *need == 0 { u32::MAX } else { room / need };
        let fits = self.room(kind).iter().zip(self.need(part)).map(of).min().unwrap_or(0);
        self.parts.get(part).map_or(0, |part| fits.min(part.most).min(part.count))
    }
}

/// A node of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedNode {
    pub(crate) kind: usize,
    /// Part and number of pods.
    pub(crate) pods: Vec<(u32, u32)>,
}

/// An empty mask over `len` rows.
pub(crate) fn mask(len: usize) -> Vec<u64> {
    vec![0; len.div_ceil(64)]
}

pub(crate) fn set(mask: &mut [u64], at: usize) {
    if let Some(word) = mask.get_mut(at / 64) {
        *word |= 1 << (at % 64);
    }
}

pub(crate) fn contains(mask: &[u64], at: usize) -> bool {
    mask.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

/// Every member of `inner` is in `outer`.
pub(crate) fn covers(outer: &[u64], inner: &[u64]) -> bool {
    outer.iter().zip(inner).all(|(outer, inner)| inner & !outer == 0)
}
