//! One embedded cluster with a controller, and short ways to say things to it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Client, Resource};
use mortise::controller::Controller;
use mortise::metrics::{Id, Registry};
use mortise::settings::Settings;
use mortise_api::{EC2NodeClass, NodeClaim, NodePool};
use mortise_sim::cloud::{Launched, SimCloud};
use mortise_sim::{Cluster, cluster};
use mortise_wasm::{HostSettings, PolicyHost};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct World {
    cluster: Cluster,
    client: Client,
    metrics: Arc<Registry>,
    shutdown: CancellationToken,
    controller: JoinHandle<anyhow::Result<()>>,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(Settings::for_tests("karpenter")).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        if std::env::var_os("TEST_LOG").is_some() {
            let _ = mortise::telemetry::start("debug", &["stderr".into()]);
        }
        let cluster = Cluster::start(&cluster::Options::default()).unwrap();
        let client = cluster.api().client_as("mortise");
        let shutdown = CancellationToken::new();
        let (metrics, controller) = replica(&cluster, settings, shutdown.clone());
        let world = Self { cluster, client, metrics, shutdown, controller };
        world.class("default").await;
        world
    }

    /// With these feature gates on.
    pub(crate) async fn start_gated(gates: &[&'static str]) -> Self {
        Self::start_with(gated(gates)).await
    }

    /// Another replica takes over from the first one, which is stopped in order.
    pub(crate) async fn hand_over(&mut self, settings: Settings) {
        let shutdown = CancellationToken::new();
        let (metrics, controller) = replica(&self.cluster, settings, shutdown.clone());
        self.shutdown.cancel();
        std::mem::replace(&mut self.controller, controller).await.unwrap().unwrap();
        (self.metrics, self.shutdown) = (metrics, shutdown);
    }

    pub(crate) fn cloud(&self) -> Arc<SimCloud> {
        self.cluster.cloud()
    }

    /// Machines that are not terminated.
    pub(crate) fn machines(&self) -> Vec<Launched> {
        self.cloud().machines().into_iter().filter(|m| !m.terminated).collect()
    }

    pub(crate) fn metrics(&self) -> String {
        self.metrics.render()
    }

    /// NodeClaims created so far.
    pub(crate) fn created(&self) -> f64 {
        self.metrics.value(Id::NodeclaimsCreatedTotal, &["provisioned", "default", "false"]).unwrap_or_default()
    }

    /// Waits; ten minutes of cluster time are enough for everything here.
    pub(crate) async fn until<T, F: Future<Output = Option<T>>>(&self, what: &str, mut look: impl FnMut() -> F) -> T {
        for _ in 0..1200 {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let claims = self.list::<NodeClaim>().await;
        let events = self.messages().await;
        panic!("never: {what}\nclaims: {claims:#?}\nevents: {events:#?}");
    }

    async fn class(&self, name: &str) {
        let term = json!([{"tags": {"karpenter.sh/discovery": "c"}}]);
        let class: EC2NodeClass = serde_json::from_value(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name},
            "spec": {
                "role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": term, "securityGroupSelectorTerms": term,
            },
        }))
        .unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &class).await.unwrap();
    }

    /// A NodePool; the options are `class`, `weight`, `types`, `capacity`, `taint`, `replicas` and `limits`.
    pub(crate) async fn pool(&self, name: &str, with: Value) {
        let mut requirements = Vec::new();
        for (option, key) in [("types", "node.kubernetes.io/instance-type"), ("capacity", "karpenter.sh/capacity-type")]
        {
            if with[option].is_array() {
                requirements.push(json!({"key": key, "operator": "In", "values": with[option]}));
            }
        }
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {
                "template": {"spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws", "kind": "EC2NodeClass",
                        "name": with["class"].as_str().unwrap_or("default"),
                    },
                    "requirements": requirements,
                }},
                "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s", "budgets": [{"nodes": "100%"}]},
            },
        });
        for field in ["weight", "replicas", "limits"] {
            if !with[field].is_null() {
                pool["spec"][field] = with[field].clone();
            }
        }
        if let Some(taint) = with["taint"].as_str() {
            pool["spec"]["template"]["spec"]["taints"] = json!([{"key": taint, "effect": "NoSchedule"}]);
        }
        let pool: NodePool = serde_json::from_value(pool).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &pool).await.unwrap();
    }

    pub(crate) async fn deploy(&self, name: &str, replicas: i32, requests: Value) {
        self.create_deployment(name, replicas, requests, json!([])).await;
    }

    pub(crate) async fn deploy_tolerating(&self, name: &str, replicas: i32, requests: Value, taint: &str) {
        let tolerations = json!([{"key": taint, "operator": "Exists"}]);
        let selector = json!({"karpenter.sh/nodepool": taint});
        let mut deployment = deployment(name, replicas, requests, tolerations);
        deployment["spec"]["template"]["spec"]["nodeSelector"] = selector;
        self.post(deployment).await;
    }

    async fn create_deployment(&self, name: &str, replicas: i32, requests: Value, tolerations: Value) {
        self.post(deployment(name, replicas, requests, tolerations)).await;
    }

    async fn post(&self, deployment: Value) {
        let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
        let deployment = serde_json::from_value(deployment).unwrap();
        deployments.create(&PostParams::default(), &deployment).await.unwrap();
    }

    pub(crate) async fn scale(&self, name: &str, replicas: i32) {
        let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        deployments.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// As `kubectl scale nodepool` does it.
    pub(crate) async fn scale_pool(&self, name: &str, replicas: i32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        Api::<NodePool>::all(self.client.clone()).patch_scale(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Creates an object of the namespace `default`.
    pub(crate) async fn create<K>(&self, object: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        Api::<K>::default_namespaced(self.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates a cluster-scoped object.
    pub(crate) async fn create_global<K>(&self, object: Value)
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Serialize + Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        Api::<K>::all(self.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    }

    /// API of a kind in the namespace `default`.
    pub(crate) fn local<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn budget(&self, app: &str) {
        let budget: PodDisruptionBudget = serde_json::from_value(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": app}}},
        }))
        .unwrap();
        Api::default_namespaced(self.client.clone()).create(&PostParams::default(), &budget).await.unwrap();
    }

    pub(crate) async fn drop_budget(&self, app: &str) {
        let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(self.client.clone());
        budgets.delete(app, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn pods(&self, app: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        pods.list(&ListParams::default().labels(&format!("app={app}"))).await.unwrap().items
    }

    pub(crate) async fn running(&self, app: &str) -> usize {
        let runs = |p: &&Pod| p.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Running"));
        self.pods(app).await.iter().filter(runs).count()
    }

    pub(crate) async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Api::<K>::all(self.client.clone()).list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Api::<K>::all(self.client.clone()).get(name).await.unwrap()
    }

    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Api::<K>::all(self.client.clone()).delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn config_map(&self, namespace: &str, name: &str) -> Option<BTreeMap<String, String>> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        maps.get_opt(name).await.unwrap()?.data
    }

    pub(crate) async fn put_config_map(&self, namespace: &str, name: &str, key: &str, text: &str) {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let map = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"mortise.dev/policies": "true"}}, "data": {key: text},
        }))
        .unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }

    /// No claim, no node, no machine.
    pub(crate) async fn is_empty(&self) -> bool {
        self.machines().is_empty() && self.list::<NodeClaim>().await.is_empty() && self.list::<Node>().await.is_empty()
    }

    /// Reasons of all Events.
    pub(crate) async fn events(&self) -> Vec<String> {
        self.all_events().await.into_iter().filter_map(|e| e.reason).collect()
    }

    async fn messages(&self) -> Vec<String> {
        let text = |e: Event| {
            format!(
                "{} {}: {}",
                e.involved_object.name.unwrap_or_default(),
                e.reason.unwrap_or_default(),
                e.message.unwrap_or_default()
            )
        };
        self.all_events().await.into_iter().map(text).collect()
    }

    async fn all_events(&self) -> Vec<Event> {
        Api::<Event>::all(self.client.clone()).list(&ListParams::default()).await.unwrap().items
    }

    /// Stops the controller, which must end in order.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.controller.await.unwrap().unwrap();
    }
}

/// Settings with these feature gates on.
pub(crate) fn gated(gates: &[&'static str]) -> Settings {
    let mut settings = Settings::for_tests("karpenter");
    settings.feature_gates.extend(gates.iter().map(|gate| (*gate, true)));
    settings
}

fn replica(
    cluster: &Cluster,
    settings: Settings,
    shutdown: CancellationToken,
) -> (Arc<Registry>, JoinHandle<anyhow::Result<()>>) {
    let host = Arc::new(PolicyHost::new(HostSettings::default()).unwrap());
    let client = cluster.api().client_as("mortise");
    let controller = Controller::new(client, cluster.cloud(), host, Arc::new(settings));
    (controller.metrics(), tokio::spawn(controller.run(shutdown)))
}

fn deployment(name: &str, replicas: i32, requests: Value, tolerations: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "tolerations": tolerations,
                    "containers": [{"name": "c", "image": "pause:3.9", "resources": {"requests": requests}}],
                },
            },
        },
    })
}
