//! From what changed to who must look at it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use mortise_api::condition::{Conditions, nodeclaim as kind};
use mortise_api::{EC2NodeClass, finalizers};
use mortise_kube::record::{Hold, ObjectName, PolicyData};
use mortise_kube::state::{Change, ClusterState};
use mortise_kube::watch::Kind;
use tokio::sync::{mpsc, watch};

use crate::actuate::claims::Key;
use crate::context::Context;
use crate::health::Health;
use crate::notes::Note;

/// Sums over a pool are written at most this often.
const POOL_DELAY: Duration = Duration::from_secs(1);
/// Pods coming and going on a node are looked at together.
const POD_EVENT_DELAY: Duration = Duration::from_secs(1);

/// How often each kind has been listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    counts: BTreeMap<Kind, u64>,
}

impl Lists {
    /// Times that the kind was listed.
    pub(crate) fn count(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or_default()
    }
}

/// The policy ConfigMap as it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyFeed {
    /// Grows with every change.
    pub version: u64,
    /// Its content; `None` = there is no ConfigMap.
    pub data: Option<Arc<PolicyData>>,
}

/// What was last seen of objects whose own status writes should not bring them back.
#[derive(Default)]
struct Seen {
    pools: BTreeMap<Arc<str>, Option<i64>>,
    classes: BTreeMap<Arc<str>, (Option<i64>, bool, usize)>,
}

/// Routes changes until the state is gone.
pub(crate) async fn run(
    ctx: Arc<Context>,
    mut changes: mpsc::UnboundedReceiver<Vec<Change>>,
    policies: watch::Sender<PolicyFeed>,
    listed: watch::Sender<Lists>,
    health: Arc<Health>,
) {
    let mut seen = Seen::default();
    while let Some(batch) = changes.recv().await {
        // Before anything of the same batch that a term waits for.
        for change in &batch {
            if let Change::Policies(data) = change {
                policies.send_modify(|feed| *feed = PolicyFeed { version: feed.version + 1, data: data.clone() });
            }
        }
        for change in batch {
            match change {
                Change::Listed(kind) => {
                    listed.send_modify(|l| *l.counts.entry(kind).or_default() += 1);
                    if ctx.state.with(|s| s.synced()) && !health.is_synced() {
                        health.synced();
                        tracing::info!("cluster state is synced");
                    }
                }
                Change::Undecodable { kind, name, message } => {
                    tracing::error!(kind = kind.name(), name = %name, error = %message, "an object cannot be read; what was known of it stays");
                }
                change => one(&ctx, change, &mut seen),
            }
        }
    }
}

fn one(ctx: &Context, change: Change, seen: &mut Seen) {
    // A term begins by looking at everything, so a replica that does not lead keeps no list of work.
    let leading = ctx.leading();
    match change {
        Change::Provisionable(pod) if leading => ctx.trigger.trigger(&pod.uid),
        Change::Pod { name, node: Some(node), .. } if leading => bound_pod(ctx, &name, &node),
        Change::Node { name, claim } if leading => match claim {
            Some(claim) => ctx.queues.claims.add(Key::Claim(claim)),
            None => ctx.queues.claims.add(Key::Node(name)),
        },
        Change::NodeClaim(name) if leading => claim(ctx, name),
        Change::PodEvent { claim } if leading => ctx.queues.claims.add_after(Key::Claim(claim), POD_EVENT_DELAY),
        Change::NodePool(name) => pool(ctx, name, leading, seen),
        Change::NodeClass(name) => class(ctx, name, leading, seen),
        Change::DaemonSet(_) | Change::Storage => wake_pipeline(ctx),
        Change::Pdb(_) => ctx.disruption.notify_one(),
        _ => {}
    }
}

/// Only a drain waits for single pods.
fn bound_pod(ctx: &Context, name: &ObjectName, node: &str) {
    let (draining, invalid) = ctx.state.with(|s| {
        let deleting = s.node(node).is_some_and(|n| n.deletion_unix_ms.is_some());
        let draining = if deleting { s.claim_of_node(node).map(|c| c.name_any()) } else { None };
        let invalid = s.pod(name).and_then(|p| match &p.hold {
            Hold::Invalid(value) => Some(value.to_string()),
            _ => None,
        });
        (draining, invalid)
    });
    if let Some(claim) = draining {
        ctx.queues.claims.add(Key::Claim(claim.into()));
    }
    if let Some(value) = invalid {
        let (namespace, pod) = (name.namespace.to_string(), name.name.to_string());
        ctx.notify([Note::InvalidDoNotDisrupt { namespace, pod, value }]);
    }
}

fn claim(ctx: &Context, name: Arc<str>) {
    let (pool, class, consolidatable, gone) = ctx.state.with(|s| match s.nodeclaim(&name) {
        Some(claim) => (
            claim.labels().get(mortise_api::labels::NODEPOOL).cloned(),
            None,
            claim.is_true(kind::CONSOLIDATABLE),
            false,
        ),
        None => (None, Some(deleting_classes(s)), false, true),
    });
    let pools: Vec<Arc<str>> = match pool {
        Some(pool) => vec![pool.into()],
        // The claim is gone and with it the name of its pool: all pools are few.
        None => ctx.state.with(|s| s.nodepools().keys().cloned().collect()),
    };
    for pool in pools {
        ctx.queues.statics.add(pool.clone());
        ctx.queues.pools.add_after(pool, POOL_DELAY);
    }
    for class in class.into_iter().flatten() {
        ctx.queues.classes.add(class);
    }
    if consolidatable {
        ctx.disruption.notify_one();
    }
    if gone {
        // What was promised to it needs another place.
        wake_pipeline(ctx);
    } else {
        ctx.queues.claims.add(Key::Claim(name));
    }
}

/// Classes that wait for their claims to go.
fn deleting_classes(s: &ClusterState) -> Vec<Arc<str>> {
    let deleting = s.node_classes().iter().filter(|(_, c)| c.metadata.deletion_timestamp.is_some());
    deleting.map(|(name, _)| name.clone()).collect()
}

fn pool(ctx: &Context, name: Arc<str>, leading: bool, seen: &mut Seen) {
    let generation = ctx.state.with(|s| s.nodepool(&name).map(|p| p.metadata.generation));
    let changed = match generation {
        Some(generation) => seen.pools.insert(name.clone(), generation) != Some(generation),
        None => seen.pools.remove(&name).is_some(),
    };
    if !leading {
        return;
    }
    if changed {
        ctx.queues.pools.add(name.clone());
        // consolidateAfter may have changed.
        let claims: Vec<Arc<str>> = ctx.state.with(|s| s.claims_of_pool(&name).map(|c| c.name_any().into()).collect());
        claims.into_iter().for_each(|c| ctx.queues.claims.add(Key::Claim(c)));
        ctx.disruption.notify_one();
    }
    if let Some(overlays) = &ctx.overlays {
        overlays.changed.notify_one();
    }
    // Also when only its status changed: it may have become ready.
    ctx.queues.statics.add(name);
    wake_pipeline(ctx);
}

fn class(ctx: &Context, name: Arc<str>, leading: bool, seen: &mut Seen) {
    let (class, pools) = ctx.state.with(|s| {
        let uses = |p: &mortise_api::NodePool| p.spec.template.spec.node_class_ref.name == *name;
        let pools: Vec<Arc<str>> = s.nodepools().iter().filter(|(_, p)| uses(p)).map(|(n, _)| n.clone()).collect();
        (s.node_class(&name).cloned(), pools)
    });
    let mark = class.as_deref().map(mark);
    let changed = match mark {
        Some(mark) => seen.classes.insert(name.clone(), mark) != Some(mark),
        None => seen.classes.remove(&name).is_some(),
    };
    if !leading {
        return;
    }
    if changed {
        ctx.queues.classes.add(name);
    }
    pools.into_iter().for_each(|p| ctx.queues.pools.add(p));
    wake_pipeline(ctx);
}

/// What of a class its reconciler acts on: the spec, its deletion, our finalizer.
fn mark(class: &EC2NodeClass) -> (Option<i64>, bool, usize) {
    let ours = class.finalizers().iter().filter(|f| *f == finalizers::EC2NODECLASS_TERMINATION).count();
    (class.metadata.generation, class.metadata.deletion_timestamp.is_some(), ours)
}

/// Opens a batch when pods wait that nothing was promised to.
pub(crate) fn wake_pipeline(ctx: &Context) {
    let now = ctx.clock.now_ms();
    if ctx.leading() && ctx.state.with(|s| !s.provisionable(now).is_empty()) {
        ctx.trigger.trigger_now();
    }
}
