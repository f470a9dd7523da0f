//! What the stand-ins (scheduler, kubelet, controllers) share: they read the store of the API server directly, always
//! up to date, and write through the same verbs as any client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use serde_json::Value;
use tokio::sync::watch;

use crate::apiserver::call::{Call, Written};
use crate::apiserver::delete::{DeleteOptions, delete_object};
use crate::apiserver::request::{Query, ResourcePath};
use crate::apiserver::store::Object;
use crate::apiserver::{ApiError, ApiResult, ApiServer, bucket, subresource, write};
use crate::clock::Clock;

/// Group, version and plural of a resource.
pub(crate) type Kind = (&'static str, &'static str, &'static str);

pub(crate) const PODS: Kind = ("", "v1", "pods");
pub(crate) const NODES: Kind = ("", "v1", "nodes");
pub(crate) const NAMESPACES: Kind = ("", "v1", "namespaces");
pub(crate) const DEPLOYMENTS: Kind = ("apps", "v1", "deployments");
pub(crate) const REPLICA_SETS: Kind = ("apps", "v1", "replicasets");
pub(crate) const DAEMON_SETS: Kind = ("apps", "v1", "daemonsets");
pub(crate) const BUDGETS: Kind = ("policy", "v1", "poddisruptionbudgets");

/// One component.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    server: ApiServer,
    agent: &'static str,
}

impl Actor {
    /// `agent` is its field manager.
    pub(crate) fn new(server: &ApiServer, agent: &'static str) -> Self {
        Self { server: server.clone(), agent }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.server.clock()
    }

    /// All objects of a resource, in order of namespace and name.
    pub(crate) fn list(&self, kind: Kind) -> Vec<Arc<Object>> {
        self.server
            .inner
            .store()
            .list(&bucket(kind.0, kind.2), None, None)
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.server.inner.store().get(&bucket(kind.0, kind.2), &(namespace.to_owned(), name.to_owned()))
    }

    /// Woken whenever one of these resources changes.
    pub(crate) fn wake(&self, kinds: &[Kind]) -> Wake {
        let mut store = self.server.inner.store();
        Wake { receivers: kinds.iter().map(|kind| store.subscribe(&bucket(kind.0, kind.2))).collect() }
    }

    fn call(
        &self,
        kind: Kind,
        namespace: &str,
        name: Option<&str>,
        sub: Option<&str>,
        body: Option<&Value>,
    ) -> ApiResult<Call> {
        let resource =
            self.server.inner.registry().get(kind.0, kind.1, kind.2).ok_or_else(ApiError::no_such_resource)?;
        Ok(Call {
            api: Arc::clone(&self.server.inner),
            path: ResourcePath {
                group: kind.0.to_owned(),
                version: kind.1.to_owned(),
                namespace: resource.namespaced.then(|| namespace.to_owned()),
                plural: kind.2.to_owned(),
                name: name.map(str::to_owned),
                subresource: sub.map(str::to_owned),
            },
            resource,
            query: Query::default(),
            agent: self.agent.to_owned(),
            content_type: "application/merge-patch+json".to_owned(),
            body: body.map_or_else(Bytes::new, |body| Bytes::from(serde_json::to_vec(body).unwrap_or_default())),
        })
    }

    pub(crate) fn create(&self, kind: Kind, namespace: &str, mut object: Value) -> ApiResult<Value> {
        let call = self.call(kind, namespace, None, None, None)?;
        object["apiVersion"] = call.resource.api_version().into();
        object["kind"] = call.resource.kind.clone().into();
        write::create_object(&call, object, None).map(|written| written.value)
    }

    /// Merge patch of an object, or of one of its subresources.
    pub(crate) fn patch(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        sub: Option<&str>,
        patch: &Value,
    ) -> ApiResult<Written> {
        write::patch(&self.call(kind, namespace, Some(name), sub, Some(patch))?)
    }

    pub(crate) fn delete(&self, kind: Kind, namespace: &str, name: &str, grace_s: Option<i64>) -> ApiResult<()> {
        let call = self.call(kind, namespace, Some(name), None, None)?;
        let options = DeleteOptions { grace_s, ..DeleteOptions::default() };
        delete_object(&call.api, &call.resource, &call.key()?, &options).map(|_| ())
    }

    /// Binds a pod to a node.
    pub(crate) fn bind(&self, namespace: &str, pod: &str, node: &str) -> ApiResult<()> {
        let mut call = self.call(
            PODS,
            namespace,
            Some(pod),
            Some("binding"),
            Some(&serde_json::json!({"target": {"name": node}})),
        )?;
        call.content_type = "application/json".to_owned();
        subresource::bind(&call, pod).map(|_| ())
    }
}

/// Told when something changed.
#[derive(Debug)]
pub(crate) struct Wake {
    receivers: Vec<watch::Receiver<u64>>,
}

/// Changes come in bursts; they are looked at together.
const SETTLE: Duration = Duration::from_millis(5);

impl Wake {
    /// Waits for a change, then a moment for more of them. False when the API server is gone.
    pub(crate) async fn next(&mut self) -> bool {
        {
            let changed = self.receivers.iter_mut().map(|receiver| receiver.changed().boxed());
            let (result, _, _) = futures::future::select_all(changed).await;
            if result.is_err() {
                return false;
            }
        }
        tokio::time::sleep(SETTLE).await;
        for receiver in &mut self.receivers {
            receiver.borrow_and_update();
        }
        true
    }
}

/// Text at a field; empty when absent.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The object is being deleted.
pub(crate) fn deleting(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some_and(|t| !t.is_null())
}

/// UID of the owner that is the controller.
pub(crate) fn controller_of(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|o| o["controller"] == true)?["uid"].as_str()
}

/// A condition is True.
pub(crate) fn is_true(object: &Value, condition: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|c| c["type"] == condition && c["status"] == "True")
}

/// An error of a write that someone else got ahead of is no trouble: the change wakes the component again.
pub(crate) fn settle<T>(what: &str, result: ApiResult<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if matches!(error.reason, "Conflict" | "NotFound" | "AlreadyExists") => None,
        Err(error) => {
            tracing::warn!(%error, "{what}");
            None
        }
    }
}
