//! One provisioning round: pending pods onto existing nodes, nodes in flight and new NodeClaims.
//!
//! ```text
//! pods ─► batch (groups, queue) ─► place: existing → claims of this round → new claim by NodePool ─► finish ─► Schedule
//!                 filters ┘ (admit_pods)                          filters, scorers ┘ (admit_claims, evaluate)
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::batch::{Batch, Run, Waiting};
use crate::catalog::View;
use crate::decision::Schedule;
use crate::explain::PoolReason;
use crate::node::{Node, NodePod};
use crate::pod::PodKey;
use crate::policy::{PolicyRound, PolicySet, Round, Tables};
use crate::snapshot::{Options, Snapshot};
use crate::symbol::{Bits, Symbols, id_of};
use crate::taint::Effect;

mod amounts;
mod buffers;
mod claim;
mod dra;
mod existing;
mod finish;
mod fullness;
mod group;
mod holdings;
mod hooks;
mod limits;
mod place;
mod plan;
mod pool;
mod prepare;
mod prices;
mod reason;
mod relax;
mod reservations;
mod round;
#[cfg(test)]
pub(crate) mod tests;
mod topology;
mod unplaced;

pub(crate) use existing::PoolsByName;
pub(crate) use pool::node_class_label;
pub(crate) use prepare::{sorted_pools, views};
pub(crate) use reason::{by_policy, requirement as requirement_blocker};
pub(crate) use round::{begin_tables, offering_of, round_of};
pub(crate) use topology::selector_keys;

use amounts::ResourceNames;
use dra::Devices;
use existing::{ExistingNodes, InFlight};
use finish::{Finisher, Outcome};
use fullness::Fullness;
use group::{Group, RequirementSets};
use holdings::holds_nothing;
use hooks::{admit_pods, estimate, pod_columns};
use place::{MinValues, Placer};
use pool::daemon_requirements;
use prepare::{pools, pools_at_limit, unusable};
use prices::Prices;
use reservations::Reservations;
use topology::{Demand, Running, Terms, Topology};
use unplaced::{Rejected, unplaced};

/// Annotation with the drivers that a new node is waited for.
const REQUESTED_DRA_DRIVERS: &str = "karpenter.sh/requested-dra-drivers";

/// How often claims that filters left nothing are placed anew before their pods are reported.
const REPLACINGS: usize = 2;

/// Places every pending pod, and the pods of nodes that are going away, as far as possible.
///
/// Deterministic: the same snapshot, options and policies give the same bytes. Never fails as a whole: a pod or NodePool
/// that cannot be served is reported with its reason and touches no other.
pub fn schedule(snapshot: &Snapshot, options: &Options, policies: &dyn PolicySet) -> Schedule {
    let running = Running::new(snapshot);
    let mut label_keys: BTreeSet<&str> = policies.label_keys().iter().map(String::as_str).collect();
    label_keys.extend(running.selector_keys());
    let batch = Batch::new(pods_to_place(snapshot), label_keys);
    if batch.pods.is_empty() {
        return Schedule { pools: unusable(snapshot), ..Schedule::default() };
    }
    let mut symbols = Symbols::default();
    let (views, by_name) = views(snapshot, &mut symbols);
    let requests = batch.groups.iter().map(|shape| &shape.requests);
    let resources = ResourceNames::new(requests.chain(snapshot.daemons.iter().map(|daemon| &daemon.requests)));
    let mut in_flight = InFlight::default();
    let (mut pools, pool_reasons) =
        pools(snapshot, options, (&views, &by_name, &mut in_flight), &resources, &mut symbols);
    let preferred_taints =
        pools.iter().any(|pool| pool.source.taints.iter().any(|taint| taint.effect == Effect::PreferNoSchedule));
    let mut terms = Terms::new(snapshot, &mut symbols);
    let mut demands: Vec<Demand> =
        batch.groups.iter().map(|shape| terms.demand(shape, options.ignore_preferences, &mut symbols)).collect();
    terms.finish(batch.groups.iter().map(|shape| &***shape).zip(&mut demands), &running, &mut symbols);
    let mut sets = RequirementSets::default();
    let mut groups: Vec<Group<'_>> = batch
        .groups
        .iter()
        .zip(&batch.counts)
        .zip(demands)
        .map(|((shape, count), demand)| {
            let preferences = (options.ignore_preferences, preferred_taints);
            Group::new((shape, *count, demand), preferences, &resources, &mut sets, &mut symbols)
        })
        .collect();
    let mut devices = Devices::new(snapshot, &batch.groups, &mut symbols);
    for group in groups.iter_mut().filter(|group| !group.shape.device_claims.is_empty() && group.refused.is_none()) {
        group.refused = devices.refusal(snapshot, group.shape);
    }
    let mut asked_keys = sets.keys();
    asked_keys.or(&devices.keys());
    asked_keys.or(&terms.keys(&mut symbols));
    for daemon in &snapshot.daemons {
        for term in 0..daemon.required_affinity.len().max(1) {
            asked_keys.or(&daemon_requirements(daemon, term, &mut symbols).iter().map(|(key, _)| key).collect());
        }
    }
    let nodes = snapshot.nodes.iter().map(|(name, node)| (name, &**node));
    let around = (&by_name, views.as_slice(), &mut in_flight);
    let mut nodes = ExistingNodes::new(nodes, around, &snapshot.daemons, &asked_keys, &resources, &mut symbols);

    if !batch.groups.iter().all(|shape| holds_nothing(shape)) {
        nodes.count_holdings((&by_name, &views, &mut in_flight), &mut symbols);
    }

    devices.look_around(snapshot, &nodes, (&by_name, &views, &mut in_flight), &mut symbols);

    let at_limit = if terms.is_empty() {
        Vec::new()
    } else {
        pools_at_limit(snapshot, options, (&views, &by_name), &pool_reasons, &mut symbols)
    };
    let topology = Topology::new(terms, &running, &nodes, at_limit, &mut symbols);
    let domains = || {
        topology.axes.iter().flat_map(|axis| (0..id_of(symbols.values(axis.key).len())).map(|value| (axis.key, value)))
    };
    let prices =
        if topology.is_empty() { Vec::new() } else { views.iter().map(|view| Prices::new(view, domains())).collect() };

    let mut tables = begin_tables(snapshot, &views, &by_name);
    let pod_columns = pod_columns(&groups, policies, &mut tables);
    let pool_rows: Vec<u32> = pools.iter().map(|pool| tables.nodepool_row(&pool.source.name)).collect();
    let round = round_of(snapshot.now_unix_ms, options);
    let mut conversation = policies.begin(&tables.catalog, &tables.fleet);
    let costs = estimate(&mut pools, &pool_rows, &tables, &round, &mut *conversation);
    let fresh = vec![vec![None; sets.sets.len()]; pools.len()];
    let mut placer = Placer {
        pools: &mut pools,
        views: &views,
        symbols: &symbols,
        sets: &sets,
        nodes: &mut nodes,
        groups: &mut groups,
        min_values: if options.min_values_best_effort { MinValues::BestEffort } else { MinValues::Strict },
        claims: Vec::new(),
        fresh,
        topology,
        prices,
        fullness: Fullness::default(),
        reservations: Reservations::new(&views),
        devices,
    };
    admit_pods(&mut placer, &pod_columns, &tables, &round, &mut *conversation);
    let start = policies.plans().then(|| plan::Start::of(&placer));
    let world = World {
        batch: &batch,
        views: &views,
        symbols: &symbols,
        resources: &resources,
        tables: &tables,
        pool_rows: &pool_rows,
        options,
        round: &round,
        snapshot,
        pool_reasons: &pool_reasons,
    };
    let (native, opened) = fill(&mut placer, world, &mut *conversation);
    let mut schedule = match start {
        None => native,
        Some(start) => {
            let on_nodes: Bits = placer.nodes.nodes.iter().flat_map(|node| node.pods.iter().copied()).collect();
            let plan::Start { mut pools, mut nodes, mut groups, topology, prices, reservations, devices } = start;
            let mut placer = Placer {
                pools: &mut pools,
                nodes: &mut nodes,
                groups: &mut groups,
                claims: Vec::new(),
                topology,
                prices,
                fullness: Fullness::default(),
                reservations,
                devices,
                ..placer
            };
            let offered = plan::Offered {
                tables: &tables,
                pool_rows: &pool_rows,
                costs: &costs,
                pods: &pod_columns,
                resources: &resources,
                round: &round,
            };
            let node_cost = policies.node_cost();
            match plan::ask(&mut placer, &batch, &opened, offered, &mut *conversation) {
                Err(verdict) => plan::native_stands(native, verdict, node_cost),
                Ok((nodes, asked)) => {
                    // Existing nodes first, as they were filled in native order.
                    placer.run(batch.runs(on_nodes.iter()));
                    let on_plan = nodes.iter().map(|node| placer.open_planned(node, &batch)).sum();
                    let (planned, _) = fill(&mut placer, world, &mut *conversation);
                    plan::cheaper(native, planned, (asked, on_plan), node_cost)
                }
            }
        }
    };
    schedule.policy_faults.extend(conversation.end());
    schedule
}

/// What placing a queue looks at and does not change.
#[derive(Clone, Copy)]
struct World<'r, 'a> {
    batch: &'r Batch<'a>,
    views: &'r [View<'a>],
    symbols: &'r Symbols,
    resources: &'r ResourceNames,
    tables: &'r Tables,
    pool_rows: &'r [u32],
    options: &'r Options,
    round: &'r Round,
    snapshot: &'r Snapshot,
    pool_reasons: &'r [(Arc<str>, PoolReason)],
}

/// Places what has no place yet, asks the policies about the claims and makes NodeClaims of them. Also returns the pods
/// of those, as places in the queue.
fn fill<'a>(
    placer: &mut Placer<'_, 'a>,
    world: World<'_, 'a>,
    conversation: &mut dyn PolicyRound,
) -> (Schedule, Vec<u32>) {
    let World { batch, views, symbols, resources, tables, pool_rows, options, round, snapshot, pool_reasons } = world;
    // Pods of buffers wait until no real pod finds another place.
    let place = |placer: &mut Placer<'_, '_>, runs: Vec<Run>| {
        let once = |placer: &mut Placer<'_, '_>, runs: Vec<Run>| {
            let (real, buffers) = runs.into_iter().partition(|run| run.from < batch.real);
            let mut left = placer.run(real);
            left.extend(placer.run(buffers));
            left
        };
        let left = once(placer, runs);
        if !left.is_empty() && placer.give_up_min_values() { once(placer, left) } else { left }
    };
    let mut placed: Bits = placer.nodes.nodes.iter().flat_map(|node| node.pods.iter().copied()).collect();
    placed.or(&placer.claims.iter().flat_map(|claim| claim.pods.iter().copied()).collect());
    let mut left = place(placer, batch.runs(batch.places().filter(|at| !placed.contains(*at))));
    let mut opened: Vec<u32> = Vec::new();
    let mut rejected: Vec<Rejected> = Vec::new();
    let mut schedule = Schedule { pools: pool_reasons.to_vec(), ..Schedule::default() };
    for attempt in 0..=REPLACINGS {
        let mut claims = std::mem::take(&mut placer.claims);
        for (at, pool) in placer.pools.iter().enumerate() {
            let Some(view) = views.get(pool.view).filter(|_| !pool.limits.is_unlimited()) else { continue };
            pool.limits.share(&view.columns.capacity, claims.iter_mut().filter(|claim| claim.pool == at));
        }
        placer.reservations.settle(&mut claims, placer.pools, views, symbols);
        placer.wish_for_min_values(&mut claims);
        let finisher = Finisher { pools: placer.pools, views, symbols, resources, tables, pool_rows, options, round };
        let outcomes = finisher.judge(&mut claims, conversation);
        let may_retry = attempt < REPLACINGS && outcomes.iter().any(Outcome::leaves_another_way);
        if !may_retry {
            for (claim, outcome) in claims.iter().zip(&outcomes) {
                if let Some(mut new) = finisher.claim(claim, outcome, buffers::real(batch, &claim.pods)) {
                    opened.extend(&claim.pods);
                    let drivers = placer.devices.drivers(claim.load.devices);
                    new.annotations.extend(drivers.map(|drivers| (Arc::from(REQUESTED_DRA_DRIVERS), drivers)));
                    schedule.claims.push(new);
                }
            }
        }
        let again = placer.withdraw(claims, &outcomes, (may_retry, batch), &mut rejected);
        if !may_retry {
            break;
        }
        left.extend(again);
        left.sort_by_key(|run| run.from);
        left = place(placer, left);
    }
    schedule.unplaced = unplaced(placer, batch, &left, rejected, resources, snapshot, &schedule.pools);
    schedule.nominations = nominations(placer.nodes, batch);
    buffers::report(batch, placer.nodes, opened.iter(), &mut schedule);
    (schedule, opened)
}

/// Pending pods, and those of nodes that are going away that need another place.
fn pods_to_place(snapshot: &Snapshot) -> impl Iterator<Item = Waiting<'_>> {
    let moving = || {
        snapshot.nodes.values().filter(|node| node.deleting).flat_map(|node| {
            node.pods.iter().filter(|pod| is_moving(pod)).map(|pod| Waiting::from((&pod.key, &pod.shape, 0)))
        })
    };
    // A pod that the edge reports twice, bound and pending, is one pod.
    let bound: BTreeSet<&PodKey> = moving().map(|pod| pod.key).collect();
    let pending = snapshot.pending.iter().map(|pod| Waiting {
        key: &pod.key,
        shape: &pod.shape,
        created_unix_ms: pod.created_unix_ms,
        buffer: pod.buffer.as_ref(),
    });
    pending.filter(move |pod| bound.is_empty() || !bound.contains(pod.key)).chain(moving())
}

/// The pod would come back elsewhere: it is active, or terminating and owned by a StatefulSet.
pub(crate) fn needs_another_place(pod: &NodePod) -> bool {
    !pod.terminating || pod.stateful
}

/// A pod of a node that is going away is placed anew now: it needs another place and may leave this one.
pub(crate) fn is_moving(pod: &NodePod) -> bool {
    needs_another_place(pod) && !pod.do_not_disrupt && !pod.fully_blocked
}

fn nominations(nodes: &ExistingNodes<'_>, batch: &Batch<'_>) -> Vec<(Arc<str>, Vec<PodKey>)> {
    let promised = nodes.nodes.iter().map(|node| (Arc::clone(node.name), buffers::real(batch, &node.pods).0));
    promised.filter(|(_, pods)| !pods.is_empty()).collect()
}

/// Nodes of the snapshot that belong to a NodePool.
pub(crate) fn managed_nodes(snapshot: &Snapshot) -> impl Iterator<Item = (&Arc<str>, &Arc<Node>)> {
    snapshot.nodes.iter().filter(|(_, node)| node.node_claim.is_some() && node.nodepool.is_some())
}
