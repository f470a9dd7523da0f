//! Manifests → the same cluster state that the controller keeps, so that `simulate` decides on what it would decide on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use mortise_api::condition::{self, Conditions, Status};
use mortise_api::ec2nodeclass::{AmiSelectorTerm, EC2NodeClassSpec, SecurityGroupSelectorTerm, SubnetSelectorTerm};
use mortise_api::{EC2NodeClass, NodeClaim, NodePool, validation};
use mortise_cloud::{CloudProvider, Verdict};
use mortise_engine::catalog::Catalog;
use mortise_kube::convert::Converter;
use mortise_kube::objects;
use mortise_kube::state::ClusterState;
use mortise_kube::watch::{Delta, Event};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::manifest::{Document, InputError, pods};

/// What was read, ready to be decided on.
pub(crate) struct Loaded {
    /// The cluster.
    pub(crate) state: ClusterState,
    /// Catalogue of each EC2NodeClass.
    pub(crate) catalogs: BTreeMap<Arc<str>, Arc<Catalog>>,
    /// What a person should know: assumptions made, warnings about their objects.
    pub(crate) notes: Vec<String>,
}

/// Objects of the input by kind.
#[derive(Default)]
struct Objects {
    nodepools: Vec<NodePool>,
    node_classes: Vec<EC2NodeClass>,
    nodeclaims: Vec<NodeClaim>,
    pods: Vec<objects::Pod>,
    nodes: Vec<objects::Node>,
    daemonsets: Vec<objects::DaemonSet>,
    pdbs: Vec<objects::Pdb>,
    pvcs: Vec<objects::PersistentVolumeClaim>,
    pvs: Vec<objects::PersistentVolume>,
    storage_classes: Vec<objects::StorageClass>,
    csi_nodes: Vec<objects::CsiNode>,
    namespaces: Vec<objects::Namespace>,
    ignored: BTreeSet<String>,
}

/// Builds the cluster state. Custom resources go through an API server with their CRDs first, so that a wrong field is
/// refused in the words the real one uses and defaults are filled in.
///
/// # Errors
/// All that is wrong with the input.
pub(crate) async fn load(
    documents: &[Document],
    admission: &Admission,
    provider: &dyn CloudProvider,
) -> Result<Loaded, Vec<InputError>> {
    let mut errors = Vec::new();
    let mut notes = Vec::new();
    let mut objects = sort(documents, admission, &mut errors).await;
    if !errors.is_empty() {
        return Err(errors);
    }
    if objects.nodepools.is_empty() {
        return Err(vec![InputError {
            source: "input".into(),
            message: "no NodePool among the manifests; add one (examples/nodepool.yaml is a start) or use --live"
                .into(),
        }]);
    }
    assume_classes(&mut objects, &mut notes);
    let catalogs = resolve(&mut objects, provider, &mut notes).await;
    if !objects.ignored.is_empty() {
        let kinds: Vec<_> = objects.ignored.iter().map(String::as_str).collect();
        notes.push(format!("not looked at: {}", kinds.join(", ")));
    }
    Ok(Loaded { state: apply(objects), catalogs, notes })
}

/// Catalogues for a cluster state that was read from a live cluster. A class that no controller has resolved yet is
/// resolved here, as far as that is possible without the cloud, and so are the NodePools that only wait for it.
pub(crate) async fn catalogs_of(
    state: &mut ClusterState,
    provider: &dyn CloudProvider,
    notes: &mut Vec<String>,
) -> BTreeMap<Arc<str>, Arc<Catalog>> {
    let mut catalogs = BTreeMap::new();
    let now = Timestamp::now();
    let classes: Vec<Arc<EC2NodeClass>> = state.node_classes().values().cloned().collect();
    for class in classes {
        let name: Arc<str> = class.metadata.name.as_deref().unwrap_or_default().into();
        let mut class = EC2NodeClass::clone(&class);
        if class.condition(condition::READY).is_none_or(|ready| ready.status == Status::Unknown.as_str()) {
            notes.push(format!(
                "EC2NodeClass {name} has not been resolved in the cluster: its zones and images are assumed"
            ));
            judge(&mut class, provider, now, notes).await;
            // Not the object of the cluster any more.
            class.metadata.resource_version = Some("simulated".into());
            state.apply(Event::NodeClass(Delta::Applied(Arc::new(class.clone()))), now.as_millisecond());
        }
        match provider.catalog(&class).await {
            Ok(catalog) => {
                catalogs.insert(name, catalog);
            }
            Err(error) => notes.push(format!("EC2NodeClass {name}: {error}")),
        }
    }
    let pools: Vec<Arc<NodePool>> = state.nodepools().values().cloned().collect();
    for pool in pools {
        if pool.condition(condition::READY).is_none_or(|ready| ready.status == Status::Unknown.as_str()) {
            let mut pool = NodePool::clone(&pool);
            pool.metadata.resource_version = Some("simulated".into());
            ready(&mut pool, &catalogs, now, notes);
            state.apply(Event::NodePool(Delta::Applied(Arc::new(pool))), now.as_millisecond());
        }
    }
    catalogs
}

async fn sort(documents: &[Document], admission: &Admission, errors: &mut Vec<InputError>) -> Objects {
    let mut objects = Objects::default();
    for document in documents {
        if let Err(error) = place(document, admission, &mut objects, errors).await {
            errors.push(InputError { source: document.source.clone(), message: error });
        }
    }
    objects
}

async fn place(
    document: &Document,
    admission: &Admission,
    objects: &mut Objects,
    errors: &mut Vec<InputError>,
) -> Result<(), String> {
    match (document.api_version(), document.kind()) {
        ("karpenter.sh/v1", "NodePool") => {
            let pool: NodePool = admission.admit(document).await?;
            let findings = validation::node_pool(&pool);
            errors.extend(findings.errors.iter().map(|e| InputError {
                source: document.source.clone(),
                message: format!("NodePool {}: {e}", document.name()),
            }));
            objects.nodepools.push(pool);
        }
        ("karpenter.k8s.aws/v1", "EC2NodeClass") => objects.node_classes.push(admission.admit(document).await?),
        ("karpenter.sh/v1", "NodeClaim") => objects.nodeclaims.push(admission.admit(document).await?),
        (version, kind @ ("NodePool" | "NodeClaim" | "EC2NodeClass")) => {
            let wanted = if kind == "EC2NodeClass" { "karpenter.k8s.aws/v1" } else { "karpenter.sh/v1" };
            return Err(format!("apiVersion: {kind} is served as {wanted}, found {version}"));
        }
        (_, "Node") => objects.nodes.push(decode(document, &document.value)?),
        (_, "DaemonSet") => objects.daemonsets.push(decode(document, &document.value)?),
        (_, "PodDisruptionBudget") => objects.pdbs.push(decode(document, &document.value)?),
        (_, "PersistentVolumeClaim") => objects.pvcs.push(decode(document, &document.value)?),
        (_, "PersistentVolume") => objects.pvs.push(decode(document, &document.value)?),
        (_, "StorageClass") => objects.storage_classes.push(decode(document, &document.value)?),
        (_, "CSINode") => objects.csi_nodes.push(decode(document, &document.value)?),
        (_, "Namespace") => objects.namespaces.push(decode(document, &document.value)?),
        (_, kind) => match pods(document) {
            Ok(made) if made.is_empty() && !WORKLOADS.contains(&kind) => {
                objects.ignored.insert(kind.to_owned());
            }
            Ok(made) => {
                for pod in &made {
                    objects.pods.push(decode(document, pod)?);
                }
            }
            Err(error) => errors.push(error),
        },
    }
    Ok(())
}

/// Kinds that make pods; one that asks for none is no oversight.
const WORKLOADS: [&str; 6] = ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job"];

/// Kinds without a namespace.
const CLUSTER_SCOPED: [&str; 5] = ["Node", "PersistentVolume", "StorageClass", "CSINode", "Namespace"];

fn decode<T: DeserializeOwned>(document: &Document, value: &Value) -> Result<T, String> {
    let mut value = value.clone();
    let meta = &mut value["metadata"];
    if meta["namespace"].is_null() && !CLUSTER_SCOPED.contains(&document.kind()) {
        meta["namespace"] = "default".into();
    }
    if meta["uid"].is_null() {
        meta["uid"] = format!("{}/{}/{}", document.kind(), meta["namespace"], document.name()).into();
    }
    serde_json::from_value(value).map_err(|error| format!("{} {}: {error}", document.kind(), document.name()))
}

/// The embedded API server, for what it refuses and what it fills in.
pub(crate) struct Admission {
    client: kube::Client,
}

impl Admission {
    /// With our CRDs.
    ///
    /// # Errors
    /// CRDs that are wrong in themselves.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let crds = mortise_api::crd::all()?.into_iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
        let options = mortise_sim::apiserver::Options { crds, ..Default::default() };
        let server = mortise_sim::apiserver::ApiServer::new(options).map_err(|e| anyhow::anyhow!("{e}"))?;
        Ok(Self { client: server.client() })
    }

    /// A client of it.
    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    async fn admit<T: DeserializeOwned>(&self, document: &Document) -> Result<T, String> {
        let mut value = document.value.clone();
        // What a live cluster's dump carries and a create may not.
        if let Some(meta) = value["metadata"].as_object_mut() {
            for field in ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink"] {
                meta.remove(field);
            }
        }
        let status = value.as_object_mut().and_then(|o| o.remove("status"));
        let plural = match document.kind() {
            "NodePool" => "nodepools",
            "NodeClaim" => "nodeclaims",
            _ => "ec2nodeclasses",
        };
        // Strict, so that a misspelt field is refused and not dropped.
        let request = http::Request::post(format!("/apis/{}/{plural}?fieldValidation=Strict", document.api_version()))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&value).map_err(|e| e.to_string())?)
            .map_err(|e| e.to_string())?;
        let mut created: Value = self.client.request(request).await.map_err(|error| match error {
            kube::Error::Api(answer) => answer.message,
            other => other.to_string(),
        })?;
        if let (Some(object), Some(status)) = (created.as_object_mut(), status) {
            object.insert("status".into(), status);
        }
        serde_json::from_value(created).map_err(|error| format!("{} {}: {error}", document.kind(), document.name()))
    }
}

/// A class for every NodePool that names one which is not in the input, so that pods and pools can be tried alone.
fn assume_classes(objects: &mut Objects, notes: &mut Vec<String>) {
    let have: BTreeSet<String> = objects.node_classes.iter().filter_map(|c| c.metadata.name.clone()).collect();
    let wanted: BTreeSet<String> =
        objects.nodepools.iter().map(|p| p.spec.template.spec.node_class_ref.name.to_string()).collect();
    for name in wanted.difference(&have) {
        notes.push(format!("EC2NodeClass {name} is not in the input: assumed AL2023 with its defaults, in every zone"));
        let mut class = EC2NodeClass::new(name, EC2NodeClassSpec::default());
        class.spec.ami_selector_terms =
            vec![AmiSelectorTerm { alias: Some("al2023@latest".into()), ..Default::default() }];
        class.spec.role = Some("assumed".into());
        class.spec.subnet_selector_terms = vec![SubnetSelectorTerm::default()];
        class.spec.security_group_selector_terms = vec![SecurityGroupSelectorTerm::default()];
        objects.node_classes.push(class);
    }
}

async fn resolve(
    objects: &mut Objects,
    provider: &dyn CloudProvider,
    notes: &mut Vec<String>,
) -> BTreeMap<Arc<str>, Arc<Catalog>> {
    let now = Timestamp::now();
    let mut catalogs = BTreeMap::new();
    for class in &mut objects.node_classes {
        let name: Arc<str> = class.metadata.name.as_deref().unwrap_or_default().into();
        class.metadata.generation = Some(1);
        judge(class, provider, now, notes).await;
        match provider.catalog(class).await {
            Ok(catalog) => {
                catalogs.insert(name, catalog);
            }
            Err(error) => notes.push(format!("EC2NodeClass {name}: {error}")),
        }
    }
    for pool in &mut objects.nodepools {
        pool.metadata.generation = Some(1);
        ready(pool, &catalogs, now, notes);
    }
    catalogs
}

/// Fills in the status of a class as its controller would.
async fn judge(class: &mut EC2NodeClass, provider: &dyn CloudProvider, now: Timestamp, notes: &mut Vec<String>) {
    let name = class.metadata.name.clone().unwrap_or_default();
    let resolution = provider.resolve(class).await;
    class.status = Some(resolution.status);
    for outcome in resolution.conditions {
        match outcome.verdict {
            Verdict::Ready => {
                class.set_true(outcome.condition, now);
            }
            Verdict::NotReady { reason, message } => {
                notes.push(format!("EC2NodeClass {name}: {}: {message}", outcome.condition));
                class.set_condition(outcome.condition, Status::False, &reason, &message, now);
            }
            Verdict::Unknown { reason, message } | Verdict::Unasked { reason, message } => {
                class.set_condition(outcome.condition, Status::Unknown, &reason, &message, now);
            }
        }
    }
}

/// Judges a NodePool as its controller would, and passes on what validation warns of.
fn ready(pool: &mut NodePool, catalogs: &BTreeMap<Arc<str>, Arc<Catalog>>, now: Timestamp, notes: &mut Vec<String>) {
    let name = pool.metadata.name.clone().unwrap_or_default();
    let class = pool.spec.template.spec.node_class_ref.name.clone();
    let findings = validation::node_pool(pool);
    if findings.errors.is_empty() {
        pool.set_true(condition::nodepool::VALIDATION_SUCCEEDED, now);
    } else {
        let message = findings.message();
        let reason = "NodePoolValidationFailed";
        pool.set_condition(condition::nodepool::VALIDATION_SUCCEEDED, Status::False, reason, &message, now);
    }
    if catalogs.contains_key(&*class) {
        pool.set_true(condition::nodepool::NODE_CLASS_READY, now);
    } else {
        let message = format!("EC2NodeClass {class} is not ready");
        pool.set_condition(condition::nodepool::NODE_CLASS_READY, Status::False, "NodeClassNotReady", &message, now);
    }
    notes.extend(findings.warnings.iter().map(|w| format!("NodePool {name}: {w}")));
}

fn apply(objects: Objects) -> ClusterState {
    let mut convert = Converter::default();
    let mut state = ClusterState::new();
    let now = Timestamp::now().as_millisecond();
    let events = [
        Event::NodeClass(Delta::replaced(objects.node_classes.into_iter().map(|c| convert.node_class_object(c)))),
        Event::NodePool(Delta::replaced(objects.nodepools.into_iter().map(|p| convert.nodepool_object(p)))),
        Event::NodeClaim(Delta::replaced(objects.nodeclaims.into_iter().map(|c| convert.nodeclaim_object(c)))),
        Event::StorageClass(Delta::replaced(objects.storage_classes.iter().map(|o| convert.storage_class(o)))),
        Event::CsiNode(Delta::replaced(objects.csi_nodes.iter().map(|o| convert.csi_node(o)))),
        Event::Namespace(Delta::replaced(objects.namespaces.iter().map(|o| convert.namespace(o)))),
        Event::Pv(Delta::replaced(objects.pvs.iter().map(|o| convert.pv(o)))),
        Event::Pvc(Delta::replaced(objects.pvcs.iter().map(|o| convert.pvc(o)))),
        Event::Pdb(Delta::replaced(objects.pdbs.iter().map(|o| convert.pdb(o)))),
        Event::DaemonSet(Delta::replaced(objects.daemonsets.iter().map(|o| convert.daemonset(o)))),
        Event::Node(Delta::replaced(objects.nodes.iter().map(|o| convert.node(o)))),
        Event::Pod(Delta::replaced(objects.pods.iter().map(|o| convert.pod(o)))),
    ];
    for event in events {
        state.apply(event, now);
    }
    state
}
