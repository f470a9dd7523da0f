//! An in-process Kubernetes API: storage, watches, the verbs and patch formats, discovery and OpenAPI, enough for a real
//! `kube::Client` (without a socket) and for kubectl (on a loopback port).
//!
//! What it does not do: authentication and authorisation (everyone may do everything), CEL rules and conversion webhooks
//! of CustomResourceDefinitions (only the storage version is served), admission plugins beyond the defaults of
//! `defaults`, answers in protobuf, pod logs/exec/port-forward, and immutability checks of built-in kinds. Its tests
//! run the same client that the controller uses.

mod admit;
pub(crate) mod call;
mod defaults;
pub(crate) mod delete;
mod discovery;
mod dispatch;
mod error;
mod events;
mod fieldset;
mod gc;
pub(crate) mod ids;
mod managed;
mod openapi;
mod patch;
mod protobuf;
mod read;
mod represent;
pub(crate) mod request;
mod resources;
mod schema;
pub(crate) mod selector;
mod serve;
pub(crate) mod store;
mod structure;
pub(crate) mod subresource;
mod table;
mod types;
mod watch;
pub(crate) mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::{Value, json};
use tokio::sync::mpsc;

pub use self::dispatch::ResponseBody;
pub use self::error::{ApiError, ApiResult, FieldError};
pub use self::serve::Served;
use self::store::{Bucket, Object, Store};
use crate::clock::Clock;

/// How an API server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// CustomResourceDefinitions that are there from the start, as objects.
    pub crds: Vec<Value>,
    /// Namespaces that are there from the start, besides the four of every cluster.
    pub namespaces: Vec<String>,
    /// Changes kept per resource for watches; older ones answer 410.
    pub history: usize,
    /// Seed of UIDs and generated names.
    pub seed: u64,
    /// Clock of every timestamp.
    pub clock: Option<Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self { crds: Vec::new(), namespaces: vec!["karpenter".to_owned()], history: 20_000, seed: 1, clock: None }
    }
}

/// A running API server. Cheap to clone; all clones share the store.
#[derive(Clone, Debug)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    store: Mutex<Store>,
    registry: RwLock<resources::Registry>,
    pub(crate) clock: Clock,
    pub(crate) ids: ids::Ids,
    gc: mpsc::UnboundedSender<gc::Work>,
}

/// Where a resource is stored.
pub(crate) fn bucket(group: &str, plural: &str) -> Bucket {
    (Arc::from(group), Arc::from(plural))
}

impl ApiServer {
    /// Starts with the namespaces and CustomResourceDefinitions of the options. Must be called within a tokio runtime:
    /// garbage collection of dependents is a task.
    ///
    /// # Errors
    /// A CustomResourceDefinition that cannot be served.
    pub fn new(options: Options) -> ApiResult<Self> {
        let (gc, work) = mpsc::unbounded_channel();
        let inner = Arc::new(Inner {
            store: Mutex::new(Store::new(options.history)),
            registry: RwLock::new(resources::Registry::builtin()),
            clock: options.clock.unwrap_or_else(|| Clock::new(1.0)),
            ids: ids::Ids::new(options.seed),
            gc,
        });
        tokio::spawn(gc::run(Arc::downgrade(&inner), work));
        let server = Self { inner };
        let standard = ["default", "kube-system", "kube-public", "kube-node-lease"].map(str::to_owned);
        for name in standard.into_iter().chain(options.namespaces) {
            server.seed(
                "",
                "v1",
                "namespaces",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            )?;
        }
        for crd in options.crds {
            server.add_crd(crd)?;
        }
        Ok(server)
    }

    /// Adds a CustomResourceDefinition and serves it.
    ///
    /// # Errors
    /// It names no group, plural, kind or storage version, or exists already.
    pub fn add_crd(&self, mut crd: Value) -> ApiResult<()> {
        crd["apiVersion"] = "apiextensions.k8s.io/v1".into();
        crd["kind"] = "CustomResourceDefinition".into();
        self.seed("apiextensions.k8s.io", "v1", "customresourcedefinitions", crd)
    }

    fn seed(&self, group: &str, version: &str, plural: &str, object: Value) -> ApiResult<()> {
        let resource = self.inner.registry().get(group, version, plural).ok_or_else(ApiError::no_such_resource)?;
        let call = call::Call {
            api: Arc::clone(&self.inner),
            resource,
            path: request::ResourcePath::default(),
            query: request::Query::default(),
            agent: "kube-apiserver".to_owned(),
            content_type: String::new(),
            body: bytes::Bytes::new(),
        };
        write::create_object(&call, object, None).map(|_| ())
    }

    /// The clock of every timestamp here.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Forgets the watch history, as a compaction of etcd does: a watch from an older version answers 410.
    pub fn compact(&self) {
        self.inner.store().compact();
    }

    /// Looks at every object of a resource as it is stored, without copying; in order of namespace and name.
    pub fn for_each(&self, group: &str, plural: &str, mut look: impl FnMut(&Value)) {
        let objects: Vec<Arc<Object>> =
            self.inner.store().list(&bucket(group, plural), None, None).map(|(_, object)| Arc::clone(object)).collect();
        objects.iter().for_each(|object| look(&object.value));
    }

    /// The latest resource version.
    pub fn resource_version(&self) -> u64 {
        self.inner.store().version()
    }
}

impl Inner {
    /// The store; a panic elsewhere while it was held leaves it usable, as every change is a single step.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn registry(&self) -> std::sync::RwLockReadGuard<'_, resources::Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// After an object was created or changed.
    pub(crate) fn stored(&self, resource: &Arc<resources::Resource>, object: &Arc<Object>) {
        let metadata = &object.value["metadata"];
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions")
            && metadata.get("deletionTimestamp").is_none()
        {
            self.serve_crd(object);
        }
        if metadata.get("deletionTimestamp").is_some() || metadata.get("ownerReferences").is_some() {
            // The receiver lives as long as the server; a closed channel means that it is going down.
            let _ = self.gc.send(gc::Work::Look(Arc::clone(resource), gc::key_of(&object.value)));
        }
    }

    /// After an object was removed.
    pub(crate) fn removed(&self, resource: &Arc<resources::Resource>, object: &Arc<Object>) {
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
            let names = &object.value["spec"];
            let group = names["group"].as_str().unwrap_or_default();
            let plural = names["names"]["plural"].as_str().unwrap_or_default();
            self.registry.write().unwrap_or_else(PoisonError::into_inner).remove_crd(group, plural);
            self.store().drop_bucket(&bucket(group, plural));
        }
        if let Some(uid) = object.value["metadata"]["uid"].as_str() {
            let _ = self.gc.send(gc::Work::OwnerGone(uid.to_owned()));
        }
    }

    fn serve_crd(&self, object: &Object) {
        let served = self.registry.write().unwrap_or_else(PoisonError::into_inner).add_crd(&object.value);
        let mut crd = object.value.clone();
        let now = self.clock.now_rfc3339();
        match served {
            Ok(()) => {
                subresource::set_condition(
                    &mut crd,
                    "NamesAccepted",
                    "True",
                    Some("NoConflicts"),
                    Some("no conflicts found"),
                    &now,
                );
                subresource::set_condition(
                    &mut crd,
                    "Established",
                    "True",
                    Some("InitialNamesAccepted"),
                    Some("the initial names have been accepted"),
                    &now,
                );
                crd["status"]["acceptedNames"] = crd["spec"]["names"].clone();
                let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
                let stored: Vec<Value> = versions.filter(|v| v["storage"] == true).map(|v| v["name"].clone()).collect();
                crd["status"]["storedVersions"] = stored.into();
            }
            Err(why) => {
                subresource::set_condition(&mut crd, "Established", "False", Some("NotAccepted"), Some(&why), &now)
            }
        }
        if crd["status"] != object.value["status"] {
            let key = gc::key_of(&crd);
            // Whoever changed it meanwhile brings it here again.
            let _ = self.store().put(
                &bucket("apiextensions.k8s.io", "customresourcedefinitions"),
                key,
                crd,
                Some(object.version),
            );
        }
    }
}

#[cfg(test)]
mod tests;
