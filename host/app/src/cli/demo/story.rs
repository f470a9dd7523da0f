//! What happens in the demo, in order.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use mortise_api::{EC2NodeClass, NodePool};
use mortise_cloud::CloudProvider;
use mortise_sim::{Cluster, cluster};
use mortise_wasm::{HostSettings, PolicyHost};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::observe::{View, changes};
use super::screen::Display;
use super::summary::Summary;
use super::{Request, manifests};
use crate::controller::Controller;
use crate::settings::Settings;

/// Between two looks, real time.
const FRAME: Duration = Duration::from_millis(100);
/// Cluster time that each half may take. Far more than it needs; a failure is told as such.
const PATIENCE: Duration = Duration::from_secs(900);

/// One run.
struct Story {
    request: Request,
    cluster: Cluster,
    client: Client,
    policies: Arc<PolicyHost>,
    display: Display,
    start: Instant,
    view: View,
    summary: Summary,
    controller: tokio::task::JoinHandle<anyhow::Result<()>>,
    interrupted: CancellationToken,
}

/// Tells it. True when everything happened as it should.
pub(super) async fn tell(request: &Request) -> anyhow::Result<bool> {
    let real = std::time::Instant::now();
    let (speed, speeds) = watch::channel(request.speed);
    tokio::spawn(mortise_sim::clock::drive(speeds));
    let interrupted = CancellationToken::new();
    tokio::spawn(interrupt(interrupted.clone()));

    let options = cluster::Options { seed: request.seed, ..cluster::Options::default() };
    let cluster = Cluster::start(&options).context("the embedded cluster cannot start")?;
    let address = ([127, 0, 0, 1], request.port).into();
    let served = cluster
        .api()
        .serve(address)
        .await
        .with_context(|| format!("--port {}: cannot listen on 127.0.0.1", request.port))?;
    let kubeconfig = Kubeconfig::write(&served.kubeconfig())?;
    // Compiles the built-in components.
    let policies = tokio::task::spawn_blocking(|| PolicyHost::new(HostSettings::default())).await?;
    let policies = Arc::new(policies.context("the policy host cannot start")?);

    let client = cluster.api().client_as("mortise");
    let provider: Arc<dyn CloudProvider> = cluster.cloud();
    let shutdown = CancellationToken::new();
    let settings = Arc::new(Settings::for_tests("karpenter"));
    let controller = Controller::new(client, provider, Arc::clone(&policies), settings);
    let controller = tokio::spawn(controller.run(shutdown.clone()));
    let mut story = Story {
        client: cluster.api().client_as("demo"),
        display: Display::new(request.output),
        start: Instant::now(),
        view: View::default(),
        summary: Summary { pods: request.pods, ..Summary::default() },
        request: request.clone(),
        cluster,
        policies,
        controller,
        interrupted,
    };
    let path = kubeconfig.path.display().to_string();
    let hint = format!("To look with kubectl: export KUBECONFIG={path}");
    story.display.record(json!({"event": "start", "pods": request.pods, "seed": request.seed, "speed": request.speed, "kubeconfig": path, "server": served.url()}), &hint);
    story.up().await?;
    if request.keep && story.summary.ok() {
        // Clients' clocks run in real time.
        speed.send_replace(1.0);
        story.hold(&path).await;
    } else if story.summary.up.is_some() {
        story.down().await?;
    }
    story.end(&shutdown, real.elapsed()).await
}

impl Story {
    /// Cluster time since the start, seconds.
    fn at(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    async fn up(&mut self) -> anyhow::Result<()> {
        let pods = self.request.pods;
        self.display.chapter(self.at(), "apply", "applying an EC2NodeClass and two NodePools");
        let class: EC2NodeClass = serde_json::from_value(manifests::node_class())?;
        Api::all(self.client.clone()).create(&PostParams::default(), &class).await.context("EC2NodeClass")?;
        for pool in manifests::node_pools(pods) {
            let pool: NodePool = serde_json::from_value(pool)?;
            Api::all(self.client.clone()).create(&PostParams::default(), &pool).await.context("NodePool")?;
        }
        let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
        for (name, _, manifest) in manifests::deployments(pods) {
            let deployment: Deployment = serde_json::from_value(manifest)?;
            deployments
                .create(&PostParams::default(), &deployment)
                .await
                .with_context(|| format!("Deployment {name}"))?;
        }
        let begun = self.at();
        self.display.chapter(begun, "scale-up", &format!("a burst of {pods} pods, and no node for any of them"));
        let wanted = usize::try_from(pods)?;
        let done = |view: &View| view.running == wanted && view.ready_nodes() == view.nodes.len();
        if self.watch(done).await? {
            self.summary.up = Some(self.at() - begun);
            self.summary.full = self.view.clone();
            self.summary.check_full(&self.cluster);
        } else if !self.interrupted.is_cancelled() {
            self.summary.full = self.view.clone();
            let why =
                format!("after {} s of cluster time only {} of {pods} pods run", PATIENCE.as_secs(), self.view.running);
            self.summary.troubles.push(why);
        }
        Ok(())
    }

    async fn down(&mut self) -> anyhow::Result<()> {
        let begun = self.at();
        self.display.chapter(begun, "scale-down", "all Deployments scaled to zero");
        let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
        for (name, ..) in manifests::deployments(self.request.pods) {
            let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
            deployments
                .patch_scale(name, &PatchParams::default(), &none)
                .await
                .with_context(|| format!("scale of {name}"))?;
        }
        let done = |view: &View| view.pods() == 0 && view.nodes.is_empty() && view.node_objects == 0;
        if self.watch(done).await? {
            self.summary.down = Some(self.at() - begun);
        }
        if !self.interrupted.is_cancelled() {
            let view = self.view.clone();
            self.summary.check_empty(&self.cluster, &view);
        }
        Ok(())
    }

    /// Shows what happens until it is done (true), or patience or the user ends it.
    async fn watch(&mut self, done: impl Fn(&View) -> bool) -> anyhow::Result<bool> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let view = View::take(&self.cluster, self.at());
            let changes = changes(&self.view, &view);
            self.display.update(&view, &changes);
            self.view = view;
            if done(&self.view) {
                return Ok(true);
            }
            if self.controller.is_finished() {
                anyhow::bail!("the controller ended by itself");
            }
            if Instant::now() >= deadline || self.interrupted.is_cancelled() {
                return Ok(false);
            }
            let frame = FRAME.mul_f64(self.request.speed);
            tokio::select! {
                () = tokio::time::sleep(frame) => {}
                () = self.interrupted.cancelled() => {}
            }
        }
    }

    /// Keeps everything for kubectl.
    async fn hold(&mut self, kubeconfig: &str) {
        self.display.finish();
        let message = format!(
            "\nThe cluster stays until Ctrl-C; its clock now runs in real time. In another terminal:\n  export KUBECONFIG={kubeconfig}\n  kubectl get nodepools,nodeclaims,nodes\n  kubectl scale deployment web --replicas=0\n  kubectl get nodes -w\n"
        );
        self.display.record(json!({"event": "holding", "kubeconfig": kubeconfig}), &message);
        self.request.speed = 1.0;
        while !self.interrupted.is_cancelled() && !self.controller.is_finished() {
            let view = View::take(&self.cluster, self.at());
            let changes = changes(&self.view, &view);
            self.display.update(&view, &changes);
            self.view = view;
            tokio::select! {
                () = tokio::time::sleep(FRAME * 5) => {}
                () = self.interrupted.cancelled() => {}
            }
        }
    }

    async fn end(mut self, shutdown: &CancellationToken, real: Duration) -> anyhow::Result<bool> {
        let kept = self.request.keep && self.summary.up.is_some();
        if self.interrupted.is_cancelled() && !kept {
            self.summary.troubles.push("interrupted".to_owned());
        }
        self.summary.real = real;
        self.summary.check_policies(&self.policies);
        shutdown.cancel();
        match (&mut self.controller).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.summary.troubles.push(format!("controller: {error:#}")),
            Err(error) => self.summary.troubles.push(format!("controller: {error}")),
        }
        if self.cluster.components() == 0 {
            self.summary.troubles.push("the embedded cluster stopped".to_owned());
        }
        self.display.finish();
        let speed = self.request.speed;
        let text = self.summary.text(&self.cluster, &self.policies, speed);
        self.display.record(self.summary.json(&self.policies, speed), &text);
        Ok(self.summary.ok())
    }
}

/// Cancels on the first Ctrl-C or SIGTERM; the second ends the process.
async fn interrupt(token: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupts), Ok(mut terminates)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    loop {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminates.recv() => {}
        }
        if token.is_cancelled() {
            std::process::exit(130);
        }
        token.cancel();
    }
}

/// A kubeconfig in a directory of its own, removed in the end.
struct Kubeconfig {
    path: PathBuf,
}

impl Kubeconfig {
    fn write(text: &str) -> anyhow::Result<Self> {
        let directory = std::env::temp_dir().join(format!("mortise-demo-{}", std::process::id()));
        let path = directory.join("kubeconfig");
        std::fs::create_dir_all(&directory).with_context(|| format!("directory {}", directory.display()))?;
        std::fs::write(&path, text).with_context(|| format!("kubeconfig {}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if let Some(directory) = self.path.parent() {
            // Left over in a temporary directory, it harms nobody.
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}
