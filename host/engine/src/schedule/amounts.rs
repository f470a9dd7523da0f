//! Resources as dense rows: one number per resource that anything in the round asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::quantity::Resources;

/// The resources of a round, in a fixed order: cpu, memory, ephemeral-storage, pods, then the others by name.
#[derive(Clone, Debug)]
pub(crate) struct ResourceNames {
    names: Vec<Arc<str>>,
}

impl ResourceNames {
    /// Those that some of these rows ask for.
    pub(crate) fn new<'a>(rows: impl IntoIterator<Item = &'a Resources>) -> Self {
        let extended: BTreeSet<&Arc<str>> = rows.into_iter().flat_map(|row| row.extended.keys()).collect();
        let basic = ["cpu", "memory", "ephemeral-storage", "pods"].into_iter().map(Arc::from);
        Self { names: basic.chain(extended.into_iter().cloned()).collect() }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.names.iter()
    }

    pub(crate) fn name(&self, at: usize) -> Option<&Arc<str>> {
        self.names.get(at)
    }

    pub(crate) fn dense(&self, resources: &Resources) -> Vec<i64> {
        self.names.iter().map(|name| resources.get(name)).collect()
    }

    pub(crate) fn sparse(&self, dense: &[i64]) -> Resources {
        let mut resources = Resources::default();
        for (name, amount) in self.names.iter().zip(dense) {
            resources.set(name, *amount);
        }
        resources
    }
}

/// What is asked for, without the zeros: index of the resource and amount.
pub(crate) fn asked(dense: &[i64]) -> Vec<(usize, i64)> {
    dense.iter().copied().enumerate().filter(|(_, amount)| *amount != 0).collect()
}

/// How often `asked` fits between `used` and `room`, at most `most`.
pub(crate) fn times_fitting(
    asked: &[(usize, i64)],
    used: impl Fn(usize) -> i64,
    room: impl Fn(usize) -> i64,
    most: u32,
) -> u32 {
    let mut times = i64::from(most);
    for (resource, amount) in asked {
        let left = room(*resource).saturating_sub(used(*resource));
        if left < *amount {
            return 0;
        }
        // Negative requests do not exist; guard the division all the same.
        if *amount > 0 {
            times = times.min(left / amount);
        }
    }
    u32::try_from(times).unwrap_or(0)
}
