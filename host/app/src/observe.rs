//! Metrics that are read off the state when somebody scrapes.

use std::sync::{Arc, Weak};

use kube::ResourceExt;
use mortise_api::labels;
use mortise_engine::quantity::{Quantity, Resources, base_units};
use mortise_kube::record::{Map, NodeRecord, Phase};
use mortise_kube::state::ClusterState;

use crate::actuate::launch::capacity_type;
use crate::context::Context;
use crate::metrics::{Id, Page};

/// Registers the collectors. They hold no reference that would keep the controller alive.
pub(crate) fn collect(ctx: &Arc<Context>) {
    let weak: Weak<Context> = Arc::downgrade(ctx);
    ctx.metrics.on_scrape(move |page| {
        let Some(ctx) = weak.upgrade() else { return };
        state(&ctx, page);
        offerings(&ctx, page);
    });
}

fn state(ctx: &Context, page: &mut Page) {
    let now = ctx.clock.now_ms();
    let per_object = !ctx.settings.disable_cluster_state_observability;
    ctx.state.with(|s| {
        page.put(Id::ClusterStateSynced, &[], if s.synced() { 1.0 } else { 0.0 });
        page.put(Id::ClusterStateNodeCount, &[], number(s.nodes().count()));
        if per_object {
            pools(s, now, page);
            pods(s, page);
            nodes(s, page);
        }
    });
    let (name, leading) = (&ctx.settings.leader_election_name, ctx.leading());
    page.put(Id::LeaderElectionMasterStatus, &[name], if leading { 1.0 } else { 0.0 });
}

fn pools(s: &mut ClusterState, now: i64, page: &mut Page) {
    let usage = s.usage(now);
    for (name, pool) in s.nodepools() {
        let used = usage.get(name).cloned().unwrap_or_default();
        for (resource, limit) in pool.spec.limits.iter().flatten() {
            let Ok(quantity) = limit.0.parse::<Quantity>() else { continue };
            page.put(Id::NodepoolsLimit, &[resource, name], in_base_units(resource, base_units(resource, quantity)));
        }
        for (resource, amount) in used.resources.iter() {
            page.put(Id::NodepoolsUsage, &[resource, name], in_base_units(resource, amount));
        }
        page.put(Id::NodepoolsUsage, &["nodes", name], used.nodes as f64);
    }
}

/// CPU is kept in thousandths and shown in cores.
fn in_base_units(resource: &str, amount: i64) -> f64 {
    if resource == "cpu" { amount as f64 / 1000.0 } else { amount as f64 }
}

fn label<'a>(map: &'a Map, key: &str) -> &'a str {
    map.get(key).map(|v| &**v).unwrap_or_default()
}

fn pods(s: &ClusterState, page: &mut Page) {
    let none = Map::new();
    for pod in s.pods() {
        let node = pod.node.as_deref().unwrap_or_default();
        let on = s.node(node).map_or(&none, |n| &n.labels);
        let phase = match pod.phase {
            Phase::Pending => "Pending",
            Phase::Running => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
        };
        let yes = |b: bool| if b { "true" } else { "false" };
        let values = [
            &*pod.key.name,
            &*pod.key.namespace,
            "",
            node,
            yes(pod.node.is_some()),
            label(on, labels::NODEPOOL),
            label(on, labels::ZONE),
            label(on, labels::ARCH),
            label(on, labels::CAPACITY_TYPE),
            label(on, labels::INSTANCE_TYPE),
            phase,
            yes(pod.ready),
            yes(on.contains_key(labels::NODEPOOL)),
        ];
        page.put(Id::PodsState, &values, 1.0);
    }
}

fn nodes(s: &ClusterState, page: &mut Page) {
    let (mut room, mut asked) = (Resources::default(), Resources::default());
    for node in s.nodes() {
        let (mut pods, mut daemons) = (Resources::default(), Resources::default());
        for pod in s.pods_on(&node.name) {
            let sum = if pod.daemon() { &mut daemons } else { &mut pods };
            *sum = sum.saturating_add(&pod.shape.requests);
        }
        room = room.saturating_add(&node.allocatable);
        asked = asked.saturating_add(&pods).saturating_add(&daemons);
        for (id, resources) in [
            (Id::NodesAllocatable, &node.allocatable),
            (Id::NodesTotalPodRequests, &pods),
            (Id::NodesTotalDaemonRequests, &daemons),
        ] {
            per_resource(page, id, node, resources);
        }
    }
    for (resource, total) in room.iter().filter(|(_, total)| *total > 0) {
        page.put(Id::ClusterUtilizationPercent, &[resource], asked.get(resource) as f64 / total as f64 * 100.0);
    }
}

fn per_resource(page: &mut Page, id: Id, node: &NodeRecord, resources: &Resources) {
    let managed = if node.labels.contains_key(labels::NODEPOOL) { "true" } else { "false" };
    let phase = if node.deletion_unix_ms.is_some() { "Terminating" } else { "Running" };
    for (resource, amount) in resources.iter() {
        let values = [
            &*node.name,
            label(&node.labels, labels::NODEPOOL),
            label(&node.labels, labels::ZONE),
            label(&node.labels, labels::INSTANCE_TYPE),
            label(&node.labels, labels::CAPACITY_TYPE),
            label(&node.labels, labels::ARCH),
            phase,
            managed,
            resource,
        ];
        page.put(id, &values, in_base_units(resource, amount));
    }
}

/// Types, prices and stock over all classes; the first class by name wins where several have a type.
fn offerings(ctx: &Context, page: &mut Page) {
    let catalogs = ctx.catalogs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let mut seen = std::collections::BTreeSet::new();
    let mut cost: std::collections::BTreeMap<String, f64> = std::collections::BTreeMap::new();
    let prices = |name: &str, zone: &str, capacity: &str| {
        catalogs.values().find_map(|c| {
            let t = c.types.iter().find(|t| &*t.name == name)?;
            let o = t.offerings.iter().find(|o| &*o.zone == zone && capacity_type(o.capacity_type) == capacity)?;
            o.price.map(|p| p.0 as f64 / 1e6)
        })
    };
    for t in catalogs.values().flat_map(|c| c.types.iter()) {
        if !seen.insert(t.name.clone()) {
            continue;
        }
        page.put(Id::InstanceTypeCpuCores, &[&t.name], t.capacity.cpu_milli as f64 / 1000.0);
        page.put(Id::InstanceTypeMemoryBytes, &[&t.name], t.capacity.memory as f64);
        for o in &t.offerings {
            let labels = [&*t.name, capacity_type(o.capacity_type), &*o.zone];
            page.put(Id::OfferingAvailable, &labels, if o.available { 1.0 } else { 0.0 });
            if let Some(price) = o.price {
                page.put(Id::OfferingPriceEstimate, &labels, price.0 as f64 / 1e6);
                page.put(Id::InstanceTypePriceEstimate, &labels, price.0 as f64 / 1e6);
            }
        }
    }
    ctx.state.with(|s| {
        for claim in s.nodeclaims() {
            let l = claim.labels();
            let of = |key: &str| l.get(key).map(String::as_str).unwrap_or_default();
            if let Some(price) = prices(of(labels::INSTANCE_TYPE), of(labels::ZONE), of(labels::CAPACITY_TYPE)) {
                *cost.entry(of(labels::NODEPOOL).to_owned()).or_default() += price;
            }
        }
    });
    for (pool, total) in cost {
        page.put(Id::NodepoolsCostTotal, &[&pool], total);
    }
}

fn number(n: usize) -> f64 {
    n as f64
}
