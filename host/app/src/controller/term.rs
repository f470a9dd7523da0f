//! One term of leading: everything that acts.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use mortise_kube::batch::Batcher;
use mortise_kube::watch::{Kind, Watches};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::actuate::claims::{self, Key};
use crate::actuate::launch::{self, Due};
use crate::actuate::{buffer, disruption, eviction, garbage, nodeclass, nodepool, overlay, policies, static_pool};
use crate::context::Context;
use crate::pipeline;
use crate::queue::{Next, Queue};
use crate::route::{Lists, PolicyFeed};

/// How long work under way may take to finish after the process was asked to stop. The default of
/// `terminationGracePeriodSeconds` is 30, and the lease and the last Events come after it.
const GRACE: Duration = Duration::from_secs(12);

/// How long the first decisions wait for policies that are being compiled.
const POLICIES: Duration = Duration::from_secs(15);

/// How long the first decisions wait for the kinds of feature gates.
const GATED: Duration = Duration::from_secs(15);

/// Why a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The process is to stop.
    Shutdown,
    /// The lease is lost.
    Deposed,
}

/// What a term works with.
pub(super) struct Duties {
    pub ctx: Arc<Context>,
    pub watches: Watches,
    pub lists: watch::Receiver<Lists>,
    pub policies: watch::Receiver<PolicyFeed>,
    pub policies_handled: watch::Receiver<u64>,
    pub batcher: Arc<Mutex<Batcher>>,
    pub line: Arc<Mutex<mpsc::UnboundedReceiver<(Due, u32)>>>,
}

impl Duties {
    /// Acts until the process is to stop, when work under way may finish, or until the lease is lost, when it may not.
    pub(super) async fn run(&mut self, shutdown: &CancellationToken, leads: &mut watch::Receiver<bool>) -> Ended {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        // Nothing of an earlier term counts: meanwhile another replica may have launched for the same claims.
        self.ctx.launcher.reset(&mut *self.line.lock().await);
        let ended = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ended::Shutdown,
            _ = super::lead::holds(leads, false) => Ended::Deposed,
            ended = self.act(&stop, &mut tasks) => ended,
        };
        stop.cancel();
        if ended == Ended::Shutdown {
            let finish = async { while tasks.join_next().await.is_some() {} };
            let deposed = super::lead::holds(leads, false);
            tokio::select! {
                _ = tokio::time::timeout(GRACE, finish) => {}
                _ = deposed => {}
            }
        }
        tasks.shutdown().await;
        self.ctx.launcher.reset(&mut *self.line.lock().await);
        ended
    }

    async fn act(&mut self, stop: &CancellationToken, tasks: &mut JoinSet<()>) -> Ended {
        self.fresh_lists().await;
        self.gated_kinds().await;
        self.policies_ready().await;
        self.start(stop, tasks);
        everything(&self.ctx);
        std::future::pending().await
    }

    /// Lists NodeClaims and Nodes anew, so that what the last leader wrote last is seen, and waits for everything.
    async fn fresh_lists(&mut self) {
        const FRESH: [Kind; 2] = [Kind::NodeClaim, Kind::Node];
        let before = self.lists.borrow().clone();
        self.watches.relist(&FRESH);
        let ctx = self.ctx.clone();
        let done = self.lists.wait_for(|lists| {
            FRESH.iter().all(|k| lists.count(*k) > before.count(*k))
                && lists.count(Kind::Policies) > 0
                && ctx.state.with(|s| s.synced())
        });
        if done.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the kinds of feature gates: decisions made without the overlays would buy the wrong machines. A kind that
    /// cannot be listed, its CRD or a permission missing, must not stop everything else.
    async fn gated_kinds(&self) {
        if let Some(buffers) = &self.ctx.buffers {
            buffers.reset();
        }
        let listed = async {
            if let Some(overlays) = &self.ctx.overlays {
                overlays.objects.listed().await;
            }
            if let Some(buffers) = &self.ctx.buffers {
                buffers.listed().await;
            }
        };
        if tokio::time::timeout(GATED, listed).await.is_err() {
            tracing::error!(
                "NodeOverlays or CapacityBuffers, whose feature gates are on, cannot be listed; beginning without them"
            );
        }
    }

    /// Waits for the policies that the ConfigMap names, so that the first decisions are theirs. A component that takes
    /// long to compile is not waited for any longer than pods should be.
    async fn policies_ready(&mut self) {
        let wanted = self.policies.borrow().version;
        let ready = self.policies_handled.wait_for(|handled| *handled >= wanted);
        if tokio::time::timeout(POLICIES, ready).await.is_err() {
            tracing::error!("the policies of the ConfigMap are not ready yet, beginning with those that are active");
        }
    }

    fn start(&self, stop: &CancellationToken, tasks: &mut JoinSet<()>) {
        let ctx = &self.ctx;
        let queues = &ctx.queues;
        work(tasks, &queues.claims, ctx.workers(200, 1000), stop, ctx, claims::reconcile);
        work(tasks, &queues.evictions, ctx.workers(100, 1000), stop, ctx, eviction::reconcile);
        work(tasks, &queues.pools, 10, stop, ctx, nodepool::reconcile);
        work(tasks, &queues.classes, 10, stop, ctx, nodeclass::reconcile);
        work(tasks, &queues.statics, 10, stop, ctx, static_pool::reconcile);
        work(tasks, &queues.buffers, 10, stop, ctx, buffer::reconcile);
        tasks.spawn(overlay::run(ctx.clone(), stop.clone()));
        let (pipeline_ctx, batcher, pipeline_stop) = (ctx.clone(), self.batcher.clone(), stop.clone());
        tasks.spawn(async move {
            let mut batcher = batcher.lock().await;
            pipeline::run(pipeline_ctx, &mut batcher, pipeline_stop).await;
        });
        tasks.spawn(pipeline::retrigger(ctx.clone(), stop.clone()));
        tasks.spawn(disruption::run(ctx.clone(), stop.clone()));
        tasks.spawn(garbage::run(ctx.clone(), stop.clone()));
        tasks.spawn(policies::report(ctx.clone(), stop.clone()));
        let (ctx, line, stop) = (ctx.clone(), self.line.clone(), stop.clone());
        tasks.spawn(async move {
            let mut line = line.lock().await;
            launch::run(ctx, &mut line, stop).await;
        });
    }
}

fn work<K, F, W>(
    tasks: &mut JoinSet<()>,
    queue: &Queue<K>,
    workers: usize,
    stop: &CancellationToken,
    ctx: &Arc<Context>,
    reconcile: F,
) where
    K: Ord + Clone + Send + Sync + 'static,
    F: Fn(Arc<Context>, K) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Next> + Send + 'static,
{
    let (queue, stop, ctx) = (queue.clone(), stop.clone(), ctx.clone());
    tasks.spawn(async move { queue.run(workers, &stop, move |key| reconcile(ctx.clone(), key)).await });
}

/// Everything is looked at once when a term begins.
fn everything(ctx: &Context) {
    let (claims, orphans, pools, classes) = ctx.state.with(|s| {
        let claims: Vec<Arc<str>> = s.nodeclaims().map(|c| c.name_any().into()).collect();
        let orphans: Vec<Arc<str>> =
            s.nodes().filter(|n| s.claim_of_node(&n.name).is_none()).map(|n| n.name.clone()).collect();
        let pools: Vec<Arc<str>> = s.nodepools().keys().cloned().collect();
        let classes: Vec<Arc<str>> = s.node_classes().keys().cloned().collect();
        (claims, orphans, pools, classes)
    });
    classes.into_iter().for_each(|c| ctx.queues.classes.add(c));
    for pool in pools {
        ctx.queues.statics.add(pool.clone());
        ctx.queues.pools.add(pool);
    }
    claims.into_iter().for_each(|c| ctx.queues.claims.add(Key::Claim(c)));
    orphans.into_iter().for_each(|n| ctx.queues.claims.add(Key::Node(n)));
    buffer::everything(ctx);
    ctx.trigger.trigger_now();
    ctx.disruption.notify_one();
}
