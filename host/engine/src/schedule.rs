//! One provisioning round: pending pods onto existing nodes, nodes in flight and new NodeClaims.
//!
//! ```text
//! pods ─► batch (groups, queue) ─► place: existing → claims of this round → new claim by NodePool ─► finish ─► Schedule
//!                 filters ┘ (admit_pods)                          filters, scorers ┘ (admit_claims, evaluate)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::batch::{Batch, Run};
use crate::catalog::View;
use crate::decision::Schedule;
use crate::explain::{Blocker, PodReason, PoolReason};
use crate::node::{Node, NodePod};
use crate::nodepool::NodePool;
use crate::policy::{COST_DROPPED, ChoicesBuilder, Claims, Pods, PolicyRound, PolicySet, Round, Tables};
use crate::quantity::Resources;
use crate::snapshot::{Options, Snapshot};
use crate::symbol::{Bits, Symbols};
use crate::taint::Effect;

pub(crate) mod amounts;
mod claim;
mod existing;
mod finish;
mod group;
mod limits;
mod place;
pub(crate) mod pool;
mod reason;
mod relax;
mod round;
#[cfg(test)]
mod tests;

pub(crate) use existing::PoolsByName;
pub(crate) use reason::{by_policy, requirement as requirement_blocker};
pub(crate) use round::{begin_tables, offering_of, round_of};

use amounts::ResourceNames;
use claim::Surroundings;
use existing::{ExistingNodes, charged_capacity};
use finish::{Finisher, Outcome};
use group::{Group, RequirementSets};
use limits::Remaining;
use place::{Fresh, Placer};
use pool::{Pool, daemon_requirements};

/// How often claims that filters left nothing are placed anew before their pods are reported.
const REPLACINGS: usize = 2;

/// Places every pending pod, and the pods of nodes that are going away, as far as possible.
///
/// Deterministic: the same snapshot, options and policies give the same bytes. Never fails as a whole: a pod or NodePool
/// that cannot be served is reported with its reason and touches no other.
pub fn schedule(snapshot: &Snapshot, options: &Options, policies: &dyn PolicySet) -> Schedule {
    let batch = Batch::new(pods_to_place(snapshot));
    if batch.pods.is_empty() {
        return Schedule { pools: unusable(snapshot), ..Schedule::default() };
    }
    let mut symbols = Symbols::default();
    let (views, by_name) = views(snapshot, &mut symbols);
    let requests = batch.groups.iter().map(|shape| &shape.requests);
    let resources = ResourceNames::new(requests.chain(snapshot.daemons.iter().map(|daemon| &daemon.requests)));
    let (mut pools, pool_reasons) = pools(snapshot, options, (&views, &by_name), &resources, &mut symbols);
    let preferred_taints =
        pools.iter().any(|pool| pool.source.taints.iter().any(|taint| taint.effect == Effect::PreferNoSchedule));
    let mut sets = RequirementSets::default();
    let mut groups: Vec<Group<'_>> = batch
        .groups
        .iter()
        .zip(&batch.counts)
        .map(|(shape, count)| {
            let preferences = (options.ignore_preferences, preferred_taints);
            Group::new((shape, *count), preferences, &resources, &mut sets, &mut symbols)
        })
        .collect();
    let mut asked_keys = sets.keys();
    for daemon in &snapshot.daemons {
        asked_keys.or(&daemon_requirements(daemon, 0, &mut symbols).iter().map(|(key, _)| key).collect());
    }
    let nodes = snapshot.nodes.iter().map(|(name, node)| (name, &**node));
    let mut nodes =
        ExistingNodes::new(nodes, (&by_name, &views), &snapshot.daemons, &asked_keys, &resources, &mut symbols);

    let mut tables = begin_tables(snapshot, &views, &by_name);
    let pod_columns = pod_columns(&groups, policies, &mut tables);
    let pool_rows: Vec<u32> = pools.iter().map(|pool| tables.nodepool_row(&pool.source.name)).collect();
    let round = round_of(snapshot.now_unix_ms, options);
    let mut conversation = policies.begin(&tables.catalog, &tables.fleet);
    estimate(&mut pools, &pool_rows, &tables, &round, &mut *conversation);
    let fresh = vec![vec![None; sets.sets.len()]; pools.len()];
    let mut placer = Placer {
        pools: &mut pools,
        views: &views,
        symbols: &symbols,
        sets: &sets,
        nodes: &mut nodes,
        groups: &mut groups,
        best_effort_min_values: options.min_values_best_effort,
        claims: Vec::new(),
        fresh,
    };
    admit_pods(&mut placer, &pod_columns, &tables, &round, &mut *conversation);
    let mut left = placer.run(batch.runs());
    let mut rejected: Vec<(Vec<u32>, Arc<str>, Blocker)> = Vec::new();
    let mut schedule = Schedule { pools: pool_reasons, ..Schedule::default() };
    for attempt in 0..=REPLACINGS {
        let mut claims = std::mem::take(&mut placer.claims);
        let finisher = Finisher {
            pools: placer.pools,
            views: &views,
            symbols: &symbols,
            resources: &resources,
            tables: &tables,
            pool_rows: &pool_rows,
            options,
            round: &round,
        };
        let outcomes = finisher.judge(&mut claims, &mut *conversation);
        let failed = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Rejected(..)));
        if failed && attempt < REPLACINGS {
            left.extend(placer.withdraw(claims, &outcomes, &batch));
            left.sort_by_key(|run| run.from);
            left = placer.run(left);
            continue;
        }
        for (claim, outcome) in claims.iter().zip(&outcomes) {
            let keys = claim.pods.iter().filter_map(|at| batch.pods.get(*at as usize));
            match outcome {
                Outcome::Rejected(blocker, _) => {
                    let pool = finisher.pools.get(claim.pool).map(|pool| Arc::clone(&pool.source.name));
                    rejected.push((claim.pods.clone(), pool.unwrap_or_default(), blocker.clone()));
                }
                Outcome::Launch(..) => {
                    let keys = keys.map(|pod| pod.key.clone()).collect();
                    schedule.claims.extend(finisher.claim(claim, outcome, keys));
                }
            }
        }
        break;
    }
    schedule.unplaced = unplaced(&placer, &batch, &left, rejected, &resources, snapshot);
    schedule.nominations = nominations(placer.nodes, &batch);
    schedule.policy_faults = conversation.end();
    schedule
}

/// Pending pods, and those of nodes that are going away that need another place.
fn pods_to_place(snapshot: &Snapshot) -> impl Iterator<Item = (&crate::pod::PodKey, &Arc<crate::pod::PodShape>, i64)> {
    let pending = snapshot.pending.iter().map(|pod| (&pod.key, &pod.shape, pod.created_unix_ms));
    let moving = snapshot.nodes.values().filter(|node| node.deleting).flat_map(|node| {
        let needs_place = |pod: &&NodePod| needs_another_place(pod) && !pod.do_not_disrupt && !pod.fully_blocked;
        node.pods.iter().filter(needs_place).map(|pod| (&pod.key, &pod.shape, 0))
    });
    pending.chain(moving)
}

/// The pod would come back elsewhere: it is active, or terminating and owned by a StatefulSet.
pub(crate) fn needs_another_place(pod: &NodePod) -> bool {
    !pod.terminating || pod.stateful
}

fn unusable(snapshot: &Snapshot) -> Vec<(Arc<str>, PoolReason)> {
    let mut reasons: Vec<(Arc<str>, PoolReason)> = snapshot
        .nodepools
        .iter()
        .filter(|pool| !pool.unusable.is_empty() && !pool.is_static)
        .map(|pool| (Arc::clone(&pool.name), PoolReason::Unusable(pool.unusable.clone())))
        .collect();
    reasons.sort_by(|a, b| a.0.cmp(&b.0));
    reasons
}

/// NodePools by name, the same whatever their order in the snapshot.
pub(crate) fn sorted_pools(snapshot: &Snapshot) -> Vec<&Arc<NodePool>> {
    let mut pools: Vec<&Arc<NodePool>> = snapshot.nodepools.iter().collect();
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    pools.dedup_by(|later, first| later.name == first.name);
    pools
}

/// One view per distinct catalogue, and each pool's.
pub(crate) fn views<'a>(snapshot: &'a Snapshot, symbols: &mut Symbols) -> (Vec<View<'a>>, PoolsByName<'a>) {
    let mut views: Vec<View<'a>> = Vec::new();
    let mut by_name = PoolsByName::default();
    for pool in sorted_pools(snapshot) {
        let known = views.iter().position(|view| Arc::ptr_eq(view.catalog, &pool.catalog));
        let at = known.unwrap_or_else(|| {
            views.push(View::new(&pool.catalog, symbols));
            views.len() - 1
        });
        by_name.pools.insert(&pool.name, (pool, at));
    }
    (views, by_name)
}

/// Usable pools in the order in which they are tried (weight, then name, both descending), and why others are not.
fn pools<'a>(
    snapshot: &'a Snapshot,
    options: &Options,
    (views, by_name): (&[View<'a>], &PoolsByName<'a>),
    resources: &ResourceNames,
    symbols: &mut Symbols,
) -> (Vec<Pool<'a>>, Vec<(Arc<str>, PoolReason)>) {
    let mut charged: BTreeMap<&str, Vec<Resources>> = BTreeMap::new();
    for node in snapshot.nodes.values().filter(|node| !node.deleting) {
        if let Some(pool) = node.nodepool.as_deref() {
            let view = by_name.find(node, views).map(|(_, view)| view);
            charged.entry(pool).or_default().push(charged_capacity(node, view, symbols));
        }
    }
    let mut pools = Vec::new();
    let mut reasons = unusable(snapshot);
    for (name, (source, at)) in &by_name.pools {
        let Some(view) = views.get(*at) else { continue };
        if !source.unusable.is_empty() || source.is_static {
            continue;
        }
        let limits = Remaining::new(&source.limits, charged.get(name).into_iter().flatten());
        match Pool::new(source, (*at, view), &snapshot.daemons, resources, limits, options, symbols) {
            Ok(pool) => pools.push(pool),
            Err(reason) => reasons.push((Arc::clone(&source.name), reason)),
        }
    }
    pools.sort_by(|a, b| (b.source.weight, &b.source.name).cmp(&(a.source.weight, &a.source.name)));
    reasons.sort_by(|a, b| a.0.cmp(&b.0));
    (pools, reasons)
}

fn pod_columns(groups: &[Group<'_>], policies: &dyn PolicySet, tables: &mut Tables) -> Pods {
    let mut pods = Pods::default();
    for group in groups {
        pods.push(group.shape, group.count, policies.label_keys(), tables);
    }
    pods
}

/// Scorers see each pool before any claim exists; what they drop there is dropped for the round.
fn estimate(pools: &mut [Pool<'_>], rows: &[u32], tables: &Tables, round: &Round, policies: &mut dyn PolicyRound) {
    /// Bit 3 of a claim row's state.
    const ESTIMATE: u32 = 1 << 3;
    let mut claims = Claims::default();
    let mut choices = ChoicesBuilder::default();
    for (pool, row) in pools.iter().zip(rows) {
        let state = ESTIMATE | u32::from(pool.template.has_min_values());
        claims.push(*row, &Resources::default(), 0, state);
        choices.push(tables, vec![(pool.view, pool.offerings.clone())]);
    }
    let choices = choices.finish();
    let base = tables.list_prices(&choices);
    let expected = base.len();
    let costs = policies.evaluate(round, &claims, &choices, base);
    if costs.len() != expected {
        return;
    }
    let mut costs = costs.into_iter();
    for pool in pools {
        let own: Vec<i64> = costs.by_ref().take(pool.offerings.len()).collect();
        let offerings: Vec<u32> = pool.offerings.iter().collect();
        for (offering, _) in offerings.into_iter().zip(own).filter(|(_, cost)| *cost == COST_DROPPED) {
            pool.offerings.remove(offering);
        }
    }
}

/// Filters see every group with the offerings that its labels allow in some pool.
fn admit_pods(
    placer: &mut Placer<'_, '_>,
    columns: &Pods,
    tables: &Tables,
    round: &Round,
    policies: &mut dyn PolicyRound,
) {
    let mut choices = ChoicesBuilder::default();
    for at in 0..placer.groups.len() {
        let mut allowed: BTreeMap<usize, Bits> = BTreeMap::new();
        let sets: Vec<u32> = placer
            .groups
            .get(at)
            .map(|group| group.levels.iter().flat_map(|level| level.alternatives.iter().copied()).collect())
            .unwrap_or_default();
        for pool in 0..placer.pools.len() {
            let Some(view) = placer.pools.get(pool).map(|pool| pool.view) else { continue };
            for set in &sets {
                if let Some(Fresh::Some(narrowed)) = placer.fresh(pool, *set) {
                    allowed.entry(view).or_default().or(&narrowed.offerings);
                }
            }
        }
        choices.push(tables, allowed.into_iter().collect());
    }
    if let Some(verdict) = policies.admit_pods(round, columns, &choices.finish()) {
        for (at, group) in placer.groups.iter_mut().enumerate() {
            group.dropped = tables.dropped(&verdict, at);
        }
    }
}

/// Reasons of every pod that found no place; one group is looked into once.
fn unplaced(
    placer: &Placer<'_, '_>,
    batch: &Batch<'_>,
    left: &[Run],
    rejected: Vec<(Vec<u32>, Arc<str>, Blocker)>,
    resources: &ResourceNames,
    snapshot: &Snapshot,
) -> Vec<(crate::pod::PodKey, PodReason)> {
    let mut reasons: BTreeMap<u32, PodReason> = BTreeMap::new();
    let mut out: Vec<(u32, PodReason)> = Vec::new();
    for run in left {
        let reason = reasons.entry(run.group).or_insert_with(|| group_reason(placer, run.group, resources, snapshot));
        out.extend((run.from..run.to).map(|at| (at, reason.clone())));
    }
    for (pods, pool, blocker) in rejected {
        let reason = PodReason { per_pool: vec![(pool, blocker)], general: None };
        out.extend(pods.into_iter().map(|at| (at, reason.clone())));
    }
    out.sort_by_key(|(at, _)| *at);
    out.into_iter().filter_map(|(at, reason)| Some((batch.pods.get(at as usize)?.key.clone(), reason))).collect()
}

fn group_reason(placer: &Placer<'_, '_>, group: u32, resources: &ResourceNames, snapshot: &Snapshot) -> PodReason {
    let Some(group) = placer.groups.get(group as usize) else {
        return PodReason { per_pool: Vec::new(), general: Some(Blocker::NoNodePool) };
    };
    if let Some(refused) = &group.refused {
        return PodReason { per_pool: Vec::new(), general: Some(refused.clone()) };
    }
    let mut per_pool = Vec::new();
    for pool in placer.pools.iter() {
        let Some(view) = placer.views.get(pool.view) else { continue };
        let around = Surroundings { pool, view, symbols: placer.symbols };
        let blocker = reason::why(around, group, &placer.sets.sets, |at| resources.name(at).cloned());
        per_pool.push((Arc::clone(&pool.source.name), blocker));
    }
    let used: Vec<&str> = placer.pools.iter().map(|pool| &*pool.source.name).collect();
    for pool in sorted_pools(snapshot) {
        if !pool.is_static && !used.contains(&&*pool.name) {
            let why = if pool.unusable.is_empty() {
                Blocker::PoolUnusable("its own requirements or limits leave no instance type".into())
            } else {
                Blocker::PoolUnusable(pool.unusable.join("; ").into())
            };
            per_pool.push((Arc::clone(&pool.name), why));
        }
    }
    let general = per_pool.is_empty().then_some(Blocker::NoNodePool);
    PodReason { per_pool, general }
}

fn nominations(nodes: &ExistingNodes<'_>, batch: &Batch<'_>) -> Vec<(Arc<str>, Vec<crate::pod::PodKey>)> {
    let key = |at: &u32| batch.pods.get(*at as usize).map(|pod| pod.key.clone());
    let used = nodes.nodes.iter().filter(|node| !node.pods.is_empty());
    used.map(|node| (Arc::clone(node.name), node.pods.iter().filter_map(key).collect())).collect()
}

/// Nodes of the snapshot that belong to a NodePool.
pub(crate) fn managed_nodes(snapshot: &Snapshot) -> impl Iterator<Item = (&Arc<str>, &Arc<Node>)> {
    snapshot.nodes.iter().filter(|(_, node)| node.node_claim.is_some() && node.nodepool.is_some())
}
