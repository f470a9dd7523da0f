//! NodePool limits, charged while NodeClaims are opened and filled.
//!
//! A claim that is still being filled may become any of its types. Charging the largest would refuse pods that fit, and
//! shrinking the types early would pack pods differently than without a limit. So a claim is charged the *least* that it can
//! become, and only when all claims are filled are the types of each narrowed to its share of what is left: whatever
//! is launched, the limit holds, and a larger limit changes nothing for the pods placed before the first one that the
//! smaller one refused.
//!
//! What is least depends on the resource, so there is one order of types per limited resource; a set of claims is within
//! the limits if by one of these orders it is. The orders know nothing of the limits' amounts, so what is within a limit is
//! within every larger one.

use std::sync::Arc;

use super::claim::OpenClaim;
use crate::catalog::ResourceColumns;
use crate::nodepool::Limits;
use crate::quantity::Resources;
use crate::symbol::Bits;

/// What is left of a NodePool's limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remaining {
    /// Left before the claims of this round.
    resources: Vec<(Arc<str>, i64)>,
    nodes: Option<i64>,
    /// By order: what the claims of this round take at least, by resource.
    charged: Vec<Vec<i64>>,
}

/// What one claim is charged: by order, then resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge(Vec<Vec<i64>>);

impl Remaining {
    /// Limits less the capacity of the nodes that count.
    pub(crate) fn new<'a>(limits: &Limits, nodes: impl Iterator<Item = &'a Resources>) -> Self {
        let mut left = Self {
            resources: limits.resources.iter().map(|(name, limit)| (Arc::clone(name), *limit)).collect(),
            nodes: limits.nodes,
            charged: Vec::new(),
        };
        for capacity in nodes {
            for (name, amount) in &mut left.resources {
                *amount = amount.saturating_sub(capacity.get(name));
            }
            left.nodes = left.nodes.map(|nodes| nodes - 1);
        }
        left.charged = vec![vec![0; left.resources.len()]; left.resources.len()];
        left
    }

    /// No further node may be opened.
    pub(crate) fn no_nodes_left(&self) -> bool {
        self.nodes.is_some_and(|nodes| nodes <= 0)
    }

    /// No resource is limited.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.resources.is_empty()
    }

    /// Removes types whose capacity exceeds what is left of some limit; returns the limit that removed most.
    pub(crate) fn restrict(&self, capacity: &ResourceColumns, types: &mut Bits) -> Option<Arc<str>> {
        let charged = self.charged.get(self.order_within().unwrap_or(0));
        let mut worst: Option<(usize, &Arc<str>)> = None;
        for (at, (name, left)) in self.resources.iter().enumerate() {
            let left = left.saturating_sub(charged.and_then(|charged| charged.get(at)).copied().unwrap_or(0));
            let before = types.len();
            match capacity.get(name) {
                Some(column) => {
                    types.retain(|of_type| column.get(of_type as usize).is_some_and(|amount| *amount <= left))
                }
                None if left < 0 => *types = Bits::default(),
                None => {}
            }
            let removed = before - types.len();
            if removed > 0 && worst.is_none_or(|(most, _)| removed > most) {
                worst = Some((removed, name));
            }
        }
        worst.map(|(_, name)| Arc::clone(name))
    }

    /// The least that a claim open to these types can be: by each order the first types that are `enough` (one, unless
    /// minValues ask for more).
    pub(crate) fn least(&self, capacity: &ResourceColumns, types: &Bits, enough: impl Fn(&Bits) -> bool) -> Charge {
        let columns: Vec<Option<&[i64]>> = self.resources.iter().map(|(name, _)| capacity.get(name)).collect();
        let amount = |resource: usize, of_type: u32| {
            columns
                .get(resource)
                .copied()
                .flatten()
                .and_then(|column| column.get(of_type as usize))
                .copied()
                .unwrap_or(0)
        };
        let resources = self.resources.len();
        let order = |first: usize| {
            let mut sorted: Vec<u32> = types.iter().collect();
            let key = |of_type: &u32| {
                let others = (0..resources).map(|resource| amount(resource, *of_type)).collect::<Vec<_>>();
                (amount(first, *of_type), others, *of_type)
            };
            if let Some(smallest) = sorted.iter().copied().min_by_key(key)
                && enough(&[smallest].into_iter().collect())
            {
                sorted = vec![smallest];
            } else {
                sorted.sort_by_cached_key(key);
                let holds = |count: usize| enough(&sorted.iter().take(count).copied().collect());
                let (mut few, mut many) = (0, sorted.len());
                while many - few > 1 {
                    let middle = few + (many - few) / 2;
                    if holds(middle) { many = middle } else { few = middle }
                }
                sorted.truncate(many);
            }
            (0..resources)
                .map(|resource| sorted.iter().map(|of_type| amount(resource, *of_type)).max().unwrap_or(0))
                .collect()
        };
        Charge((0..resources).map(order).collect())
    }

    /// Whether a claim that was charged `old` may be charged `new`.
    pub(crate) fn admits(&self, old: &Charge, new: &Charge) -> bool {
        self.is_unlimited()
            || self.charged.iter().enumerate().any(|(order, charged)| {
                self.resources.iter().enumerate().all(|(at, (_, left))| {
                    let total = charged.get(at).copied().unwrap_or(0);
                    total.saturating_sub(old.of(order, at)).saturating_add(new.of(order, at)) <= *left
                })
            })
    }

    /// Charges a claim anew.
    pub(crate) fn recharge(&mut self, held: &mut Charge, new: Charge) {
        for (order, charged) in self.charged.iter_mut().enumerate() {
            for (at, total) in charged.iter_mut().enumerate() {
                *total = total.saturating_sub(held.of(order, at)).saturating_add(new.of(order, at));
            }
        }
        *held = new;
    }

    /// A node more.
    pub(crate) fn open_node(&mut self) {
        self.nodes = self.nodes.map(|nodes| nodes - 1);
    }

    /// A node less, and what it was charged.
    pub(crate) fn refund(&mut self, held: &mut Charge) {
        self.nodes = self.nodes.map(|nodes| nodes + 1);
        self.recharge(held, Charge::default());
    }

    /// The first order by which everything charged is within the limits.
    fn order_within(&self) -> Option<usize> {
        self.charged
            .iter()
            .position(|charged| self.resources.iter().zip(charged).all(|((_, left), taken)| taken <= left))
    }

    /// Narrows the types of each of the pool's claims to its share of what is left, so that together they stay within
    /// the limits whatever each becomes.
    pub(crate) fn share<'c>(&self, capacity: &ResourceColumns, claims: impl Iterator<Item = &'c mut OpenClaim>) {
        let Some(order) = self.order_within() else { return };
        let mut spare: Vec<i64> = self
            .resources
            .iter()
            .zip(self.charged.get(order).into_iter().flatten())
            .map(|((_, left), taken)| left.saturating_sub(*taken))
            .collect();
        let claims: Vec<&mut OpenClaim> = claims.collect();
        let mut waiting = i64::try_from(claims.len()).unwrap_or(i64::MAX);
        for claim in claims {
            for (at, (name, _)) in self.resources.iter().enumerate() {
                let least = claim.load.charge.of(order, at);
                let share = spare.get(at).map_or(0, |spare| spare / waiting.max(1));
                let Some(column) = capacity.get(name) else { continue };
                let amount = |of_type: u32| column.get(of_type as usize).copied().unwrap_or(0);
                claim.types.retain(|of_type| amount(of_type) <= least.saturating_add(share));
            }
            for (at, (name, _)) in self.resources.iter().enumerate() {
                let Some(column) = capacity.get(name) else { continue };
                let most = claim.types.iter().filter_map(|of_type| column.get(of_type as usize)).max().copied();
                if let Some(spare) = spare.get_mut(at) {
                    *spare =
                        spare.saturating_sub(most.unwrap_or(0).saturating_sub(claim.load.charge.of(order, at)).max(0));
                }
            }
            waiting -= 1;
        }
    }
}

impl Charge {
    fn of(&self, order: usize, resource: usize) -> i64 {
        self.0.get(order).and_then(|charged| charged.get(resource)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::catalog::{CapacityType, Catalog, InstanceType, Offering};
    use crate::decision::Schedule;
    use crate::nodepool::NodePool;
    use crate::pod::{Pod, PodKey, PodShape};
    use crate::policy::NoPolicy;
    use crate::quantity::MicroUsd;
    use crate::schedule::schedule;
    use crate::snapshot::{Options, Snapshot};

    fn cpus(count: i64) -> Resources {
        Resources { cpu_milli: count * 1000, memory: count << 30, pods: 100, ..Resources::default() }
    }

    /// Types of every whole number of CPUs up to eight.
    fn catalog() -> Arc<Catalog> {
        let of_type = |count: i64| InstanceType {
            name: format!("t{count}").into(),
            capacity: cpus(count),
            allocatable: cpus(count),
            offerings: vec![Offering {
                zone: "a".into(),
                capacity_type: CapacityType::OnDemand,
                price: Some(MicroUsd(count.unsigned_abs() * 1000)),
                price_estimated: false,
                available: true,
                labels: Default::default(),
                reserved_left: None,
            }],
            ..InstanceType::default()
        };
        Arc::new(Catalog::new(1, (1..=8).map(of_type).collect()))
    }

    /// Pods of one to three CPUs, named in the order of the queue.
    fn pods(sizes: &[i64]) -> Vec<Pod> {
        let mut sizes = sizes.to_vec();
        sizes.sort_by_key(|size| std::cmp::Reverse(*size));
        let pod = |(at, size): (usize, &i64)| Pod {
            key: PodKey { namespace: "n".into(), name: format!("{at:02}").into(), uid: format!("{at:02}").into() },
            shape: Arc::new(PodShape {
                requests: Resources { cpu_milli: size * 1000, pods: 1, ..Resources::default() },
                ..PodShape::default()
            }),
            created_unix_ms: 0,
            buffer: None,
        };
        sizes.iter().enumerate().map(pod).collect()
    }

    fn within(catalog: &Arc<Catalog>, pods: &[Pod], cpu: i64) -> Schedule {
        let limits = Limits { resources: [("cpu".into(), cpu * 1000)].into(), nodes: None };
        let pool = NodePool { name: "p".into(), catalog: Arc::clone(catalog), limits, ..NodePool::default() };
        let snapshot = Snapshot { nodepools: vec![Arc::new(pool)], pending: pods.to_vec(), ..Snapshot::default() };
        schedule(&snapshot, &Options::default(), &NoPolicy)
    }

    /// Pods by claim, as far as they are ahead of `end` in the queue.
    fn together(schedule: &Schedule, end: &str) -> BTreeSet<BTreeSet<Arc<str>>> {
        let ahead = |pods: &Vec<PodKey>| -> BTreeSet<Arc<str>> {
            pods.iter().map(|pod| Arc::clone(&pod.name)).filter(|name| &**name < end).collect()
        };
        schedule.claims.iter().map(|claim| ahead(&claim.pods)).filter(|pods| !pods.is_empty()).collect()
    }

    #[test]
    fn a_larger_limit_changes_nothing_ahead_of_the_first_pod_that_the_smaller_one_refused() {
        let catalog = catalog();
        for sizes in [vec![1; 20], vec![3, 3, 2, 2, 2, 1, 1, 1, 1], vec![3; 7], vec![2, 2, 1, 1, 1, 3, 3, 3, 3, 3]] {
            let pods = pods(&sizes);
            let unlimited = within(&catalog, &pods, 1000);
            let mut before = 0;
            for limit in 0..=i64::try_from(sizes.len()).unwrap() * 3 {
                let limited = within(&catalog, &pods, limit);
                let placed = pods.len() - limited.unplaced.len();
                assert!(placed >= before, "{sizes:?} within {limit}: {placed} placed, {before} within less");
                before = placed;
                let first = limited.unplaced.iter().map(|(pod, _)| Arc::clone(&pod.name)).min();
                let end = first.unwrap_or_else(|| "zz".into());
                assert_eq!(together(&limited, &end), together(&unlimited, &end), "{sizes:?} within {limit}");
            }
            assert_eq!(before, pods.len());
        }
    }

    #[test]
    fn whatever_is_launched_the_limit_holds() {
        let (catalog, pods) = (catalog(), pods(&[3, 3, 2, 2, 1, 1, 1]));
        for limit in 0..30 {
            let plan = within(&catalog, &pods, limit);
            let largest = |claim: &crate::decision::Claim| {
                let list = claim.requirements.iter().find(|one| &*one.key == crate::requirement::key::INSTANCE_TYPE);
                let types = list.unwrap().values.iter().map(|name| catalog.get(name).unwrap().capacity.cpu_milli);
                types.max().unwrap()
            };
            assert!(plan.claims.iter().map(largest).sum::<i64>() <= limit * 1000, "{limit}");
        }
    }
}
