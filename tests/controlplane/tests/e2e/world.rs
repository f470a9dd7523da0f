//! What the scenarios share: the cluster, the chart's installation, the replicas, and how to look at all of it.

use crate::objects::{self, dynamic};
use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use mortise_controlplane_tests::aws::Instance;
use mortise_controlplane_tests::cluster::{Aws, Cluster, Options};
use mortise_controlplane_tests::controller::{Controller, Overrides};
use mortise_controlplane_tests::helm::Installation;
use mortise_controlplane_tests::proxy::Proxy;
use mortise_controlplane_tests::wait;
use std::collections::BTreeSet;
use std::time::Duration;

/// Namespace of the release.
pub(crate) const NAMESPACE: &str = "karpenter";
/// What a burst, a drain or a hand-over may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// The cluster and what runs on it.
pub(crate) struct World {
    // Before the cluster: they end before what they talk to.
    pub replicas: Vec<Controller>,
    pub installed: Option<Installation>,
    /// Replicas started so far, for their names.
    started: u32,
    /// Log lines about panics, of replicas that are gone too.
    panics: Vec<String>,
    pub cluster: Cluster,
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        Ok(Self {
            replicas: Vec::new(),
            installed: None,
            started: 0,
            panics: Vec::new(),
            cluster: Cluster::start(Options::named("e2e")).await?,
        })
    }

    pub(crate) fn aws(&self) -> Result<&Aws> {
        self.cluster.aws()
    }

    pub(crate) fn proxy(&self) -> Result<&Proxy> {
        Ok(&self.cluster.aws()?.proxy)
    }

    /// A clean cluster with both replicas of the chart running: what every scenario begins with.
    pub(crate) async fn begin(&mut self) -> Result<usize> {
        if self.installed.is_none() {
            crate::installation::install(self).await?;
        }
        self.aws()?.joiner.pause(false);
        self.proxy()?.heal();
        self.clean().await?;
        for replica in &mut self.replicas {
            replica.daemon.exited();
        }
        let wanted = usize::try_from(self.installed.as_ref().map_or(2, |it| it.replicas))?;
        self.keep_running();
        while self.replicas.len() < wanted {
            self.start_replica(&Overrides::default()).await?;
        }
        self.leader().await?;
        Ok(self.proxy()?.mark())
    }

    /// Starts one more replica and waits until it is ready.
    pub(crate) async fn start_replica(&mut self, overrides: &Overrides) -> Result<&Controller> {
        let installed = self.installed.clone().context("the chart is not installed")?;
        self.started += 1;
        let name = format!("mortise-{}", self.started);
        let mut replica = Controller::start(&self.cluster, &installed, &name, overrides).await?;
        replica.ready().await?;
        self.replicas.push(replica);
        self.replicas.last().context("just pushed")
    }

    /// Forgets replicas that have ended.
    fn keep_running(&mut self) {
        let (running, ended): (Vec<_>, Vec<_>) =
            self.replicas.drain(..).map(|mut it| (it.daemon.exited().is_none(), it)).partition(|(running, _)| *running);
        self.panics.extend(ended.iter().flat_map(|(_, it)| it.panics()));
        self.replicas = running.into_iter().map(|(_, it)| it).collect();
    }

    /// SIGKILL to every replica.
    pub(crate) fn kill_all(&mut self) {
        for replica in &mut self.replicas {
            replica.daemon.kill();
        }
        self.keep_running();
    }

    /// SIGKILL to one replica.
    pub(crate) fn kill(&mut self, name: &str) {
        for replica in self.replicas.iter_mut().filter(|it| it.name == name) {
            replica.daemon.kill();
        }
        self.keep_running();
    }

    /// Name of the replica that holds the Lease, once one of the running ones does.
    pub(crate) async fn leader(&self) -> Result<String> {
        let leases: Api<Lease> = Api::namespaced(self.cluster.client.clone(), NAMESPACE);
        wait::until("a running replica to lead", Duration::from_secs(40), async || {
            let holder = leases
                .get("karpenter-leader-election")
                .await?
                .spec
                .and_then(|spec| spec.holder_identity)
                .unwrap_or_default();
            Ok(self.replicas.iter().find(|it| holder.starts_with(&it.name)).map(|it| it.name.clone()))
        })
        .await
    }

    /// Everything that scenarios made is gone; what does not go by itself in time is taken away by force.
    async fn clean(&mut self) -> Result<()> {
        let kubectl = &self.cluster.kubectl;
        kubectl.run(&["delete", "pdb,deployments,jobs,pods", "--all", "-n", "default", "--wait=false"]).await?;
        kubectl.run(&["delete", "capacitybuffers,podtemplates", "--all", "-n", "default", "--wait=false"]).await?;
        kubectl.run(&["delete", "nodeoverlays", "--all", "--wait=false"]).await?;
        kubectl.run(&["delete", "configmap", "mortise-policies", "-n", NAMESPACE, "--ignore-not-found"]).await?;
        if self.claims().await?.is_empty() && self.living().await?.is_empty() {
            self.delete_definitions().await?;
            return Ok(());
        }
        // Those with replicas would be filled again.
        kubectl.run(&["delete", "nodepools", "--all", "--wait=false"]).await?;
        kubectl.run(&["delete", "nodeclaims", "--all", "--wait=false"]).await?;
        let gone = if self.replicas.is_empty() { Err(anyhow::anyhow!("no replica runs")) } else { self.gone().await };
        if gone.is_err() {
            self.force_clean().await?;
        }
        self.delete_definitions().await
    }

    async fn delete_definitions(&self) -> Result<()> {
        self.cluster.kubectl.run(&["delete", "nodepools,ec2nodeclasses", "--all", "--wait=false"]).await?;
        let finalizers = wait::until("NodePools and EC2NodeClasses to go", Duration::from_secs(20), async || {
            Ok((self.list("NodePool").await?.is_empty() && self.list("EC2NodeClass").await?.is_empty()).then_some(()))
        })
        .await;
        if finalizers.is_err() {
            for kind in ["NodePool", "EC2NodeClass"] {
                self.strip_finalizers(kind).await?;
            }
        }
        Ok(())
    }

    async fn force_clean(&mut self) -> Result<()> {
        eprintln!("cleaning by force: the controller did not take its nodes away");
        self.kill_all();
        for instance in self.living().await? {
            self.aws()?.direct.ec2("TerminateInstances", &[("InstanceId.1", &instance.id)]).await?;
        }
        self.strip_finalizers("NodeClaim").await?;
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        for node in self.nodes().await? {
            let patch = serde_json::json!({"metadata": {"finalizers": null}});
            nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.ok();
            nodes.delete(&node.name_any(), &DeleteParams::default()).await.ok();
        }
        self.cluster.kubectl.run(&["delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0"]).await?;
        Ok(())
    }

    async fn strip_finalizers(&self, kind: &str) -> Result<()> {
        let api = dynamic(&self.cluster.client, kind);
        for object in self.list(kind).await? {
            let patch = serde_json::json!({"metadata": {"finalizers": null}});
            api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.ok();
            api.delete(&object.name_any(), &DeleteParams::default()).await.ok();
        }
        Ok(())
    }

    pub(crate) async fn list(&self, kind: &str) -> Result<Vec<DynamicObject>> {
        Ok(dynamic(&self.cluster.client, kind).list(&ListParams::default()).await?.items)
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Result<DynamicObject> {
        Ok(dynamic(&self.cluster.client, kind).get(name).await?)
    }

    /// All NodeClaims.
    pub(crate) async fn claims(&self) -> Result<Vec<DynamicObject>> {
        self.list("NodeClaim").await
    }

    /// The nodes of NodePools.
    pub(crate) async fn nodes(&self) -> Result<Vec<Node>> {
        let nodes: Api<Node> = Api::all(self.cluster.client.clone());
        Ok(nodes.list(&ListParams::default().labels("karpenter.sh/nodepool")).await?.items)
    }

    /// The instances of NodePools that cost money.
    pub(crate) async fn living(&self) -> Result<Vec<Instance>> {
        let all = self.aws()?.direct.instances("karpenter.sh/nodepool").await?;
        Ok(all.into_iter().filter(Instance::lives).collect())
    }

    /// Pods of a Deployment.
    pub(crate) async fn pods(&self, app: &str) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), "default");
        Ok(pods.list(&ListParams::default().labels(&format!("app={app}"))).await?.items)
    }

    /// Waits until the Deployment's pods are there, in whatever phase.
    pub(crate) async fn pods_exist(&self, app: &str, count: usize) -> Result<()> {
        wait::until(&format!("{count} pods of {app}"), LIMIT, async || {
            Ok((self.pods(app).await?.len() == count).then_some(()))
        })
        .await
    }

    /// Waits until exactly so many pods of a Deployment run and no other is there.
    pub(crate) async fn running(&self, app: &str, count: usize) -> Result<Vec<Pod>> {
        let waited = wait::until(&format!("{count} pods of {app} to run"), LIMIT, async || {
            let pods = self.pods(app).await?;
            let running = pods.iter().filter(|pod| phase(pod) == "Running").count();
            ensure!(running == count && pods.len() == count, "{running} of {} run", pods.len());
            Ok(Some(pods))
        })
        .await;
        match waited {
            Ok(pods) => Ok(pods),
            Err(error) => Err(error.context(self.situation().await)),
        }
    }

    /// Waits until no NodeClaim, no node of a pool and no living instance is left.
    pub(crate) async fn gone(&self) -> Result<()> {
        let waited = wait::until("nodes, claims and instances to go", LIMIT, async || {
            let (claims, nodes, living) = (self.claims().await?, self.nodes().await?, self.living().await?);
            ensure!(
                claims.is_empty() && nodes.is_empty() && living.is_empty(),
                "{} claims, {} nodes, {} instances are left",
                claims.len(),
                nodes.len(),
                living.len()
            );
            Ok(Some(()))
        })
        .await;
        match waited {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(self.situation().await)),
        }
    }

    /// Waits until instances, claims and nodes are the same set, every claim initialized. Returns how many.
    pub(crate) async fn consistent(&self) -> Result<usize> {
        let waited = wait::until("instances, claims and nodes to agree", LIMIT, async || {
            let claims = self.claims().await?;
            for claim in &claims {
                for condition in ["Launched", "Registered", "Initialized"] {
                    let status = objects::condition(claim, condition).map(|it| it.0).unwrap_or_default();
                    ensure!(status == "True", "{} is {condition}={status:?}", claim.name_any());
                }
            }
            let of_claims: BTreeSet<String> =
                claims.iter().map(|it| objects::text(it, "/status/providerID").to_owned()).collect();
            ensure!(of_claims.len() == claims.len(), "two claims share an instance: {of_claims:?}");
            let of_nodes: BTreeSet<String> = self
                .nodes()
                .await?
                .into_iter()
                .filter_map(|node| node.spec.and_then(|spec| spec.provider_id))
                .collect();
            let of_instances: BTreeSet<String> = self.living().await?.iter().map(Instance::provider_id).collect();
            ensure!(
                of_claims == of_nodes && of_claims == of_instances,
                "{} claims, {} nodes, {} instances",
                of_claims.len(),
                of_nodes.len(),
                of_instances.len()
            );
            Ok(Some(of_claims.len()))
        })
        .await;
        match waited {
            Ok(count) => Ok(count),
            Err(error) => Err(error.context(self.situation().await)),
        }
    }

    /// Instances that CreateFleet calls since a mark started, replays counted once.
    pub(crate) fn launched_since(&self, mark: usize) -> Result<BTreeSet<String>> {
        Ok(self.proxy()?.calls_since(mark, "CreateFleet").into_iter().flat_map(|call| call.instances).collect())
    }

    /// Events about an object with this reason, newest last.
    pub(crate) async fn events(&self, kind: &str, name: &str, reason: &str) -> Result<Vec<Event>> {
        let events: Api<Event> = Api::all(self.cluster.client.clone());
        let all = events.list(&ListParams::default().fields(&format!("involvedObject.kind={kind}"))).await?.items;
        Ok(all
            .into_iter()
            .filter(|it| it.involved_object.name.as_deref().is_some_and(|found| found.starts_with(name)))
            .filter(|it| it.reason.as_deref() == Some(reason))
            .collect())
    }

    /// Waits for an Event and returns its message.
    pub(crate) async fn event(&self, kind: &str, name: &str, reason: &str) -> Result<String> {
        wait::until(&format!("an Event {reason} about {kind} {name}"), Duration::from_secs(40), async || {
            Ok(self.events(kind, name, reason).await?.pop().and_then(|it| it.message))
        })
        .await
    }

    /// Waits until a condition has a status; returns reason and message.
    pub(crate) async fn condition(
        &self,
        kind: &str,
        name: &str,
        condition: &str,
        status: &str,
    ) -> Result<(String, String)> {
        wait::until(&format!("{condition}={status} of {kind} {name}"), Duration::from_secs(40), async || {
            let object = self.get(kind, name).await?;
            match objects::condition(&object, condition) {
                Some((found, reason, message)) if found == status => Ok(Some((reason, message))),
                other => bail!("it is {other:?}"),
            }
        })
        .await
    }

    /// What stands where, for the message of a failure.
    pub(crate) async fn situation(&self) -> String {
        let mut text = String::new();
        for arguments in [
            vec!["get", "nodepools,ec2nodeclasses,nodeclaims", "-o", "wide"],
            vec!["get", "nodes", "-L", "karpenter.sh/nodepool"],
            vec!["get", "pods", "-n", "default", "-o", "wide"],
        ] {
            if let Ok(output) = self.cluster.kubectl.try_run(&arguments, None).await {
                text.push_str(&output.stdout.lines().take(25).collect::<Vec<_>>().join("\n"));
                text.push('\n');
            }
        }
        for replica in &self.replicas {
            text.push_str(&format!("--- {}:\n{}\n", replica.name, replica.daemon.log_tail(15)));
        }
        text
    }

    /// Panics of replicas so far.
    pub(crate) fn panics(&self) -> Vec<String> {
        self.panics.iter().cloned().chain(self.replicas.iter().flat_map(Controller::panics)).collect()
    }

    /// What the whole run says at its end.
    pub(crate) fn closing_words(&self) -> String {
        format!("{} replicas were started", self.started)
    }
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}
