//! Writes of the objects whose whole desired state a reconciler has worked out: only what differs is sent, and only if
//! the object is still the one that the decision was made on. A conflict is not resolved here: the reconciler decides
//! anew on what the watch brings.

use std::sync::Arc;

use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::Resource;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::core::request::Request as Builder;
use mortise_api::{CapacityBuffer, EC2NodeClass, NodeClaim, NodeOverlay, NodePool};
use mortise_kube::status::{WriteError, retry};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::actuate::nodeedit::NodeEdit;
use crate::patch::diff;

/// Requests under way at once. The API server serves a client's share of its own concurrency beyond about this many
/// with queueing (API priority and fairness), so more would only wait there.
const CONCURRENT: usize = 64;

/// What is read of an answer.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Ack {
    metadata: AckMeta,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AckMeta {
    resource_version: Option<String>,
}

/// Kinds that are written here.
pub(crate) trait Written: Resource<DynamicType = ()> + Clone {
    /// Status of the kind.
    type Status: Serialize + PartialEq;
    /// The status.
    fn status(&self) -> Option<&Self::Status>;
}

macro_rules! written {
    ($($kind:ty, $status:ty);*) => {$(
        impl Written for $kind {
            type Status = $status;
            fn status(&self) -> Option<&$status> {
                self.status.as_ref()
            }
        }
    )*};
}

written!(
    NodeClaim, mortise_api::nodeclaim::NodeClaimStatus;
    NodePool, mortise_api::nodepool::NodePoolStatus;
    NodeOverlay, mortise_api::nodeoverlay::NodeOverlayStatus;
    CapacityBuffer, mortise_api::capacitybuffer::CapacityBufferStatus;
    EC2NodeClass, mortise_api::ec2nodeclass::EC2NodeClassStatus
);

/// Sends writes.
#[derive(Clone)]
pub(crate) struct Writer {
    client: Client,
    slots: Arc<Semaphore>,
}

impl Writer {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, slots: Arc::new(Semaphore::new(CONCURRENT)) }
    }

    /// Writes labels, annotations and finalizers, then the status, as far as they differ. Returns the object with its
    /// new version, or `None` when nothing differed.
    ///
    /// # Errors
    /// A conflict when the object is no longer at the version of `old`, and whatever else a write can meet.
    pub(crate) async fn apply<K: Written>(&self, old: &K, new: &K) -> Result<Option<K>, WriteError> {
        let mut written: Option<K> = None;
        if let Some(metadata) = metadata_patch(old.meta(), new.meta()) {
            let version = self.send::<K>(old, json!({ "metadata": metadata }), None).await?;
            let mut object = new.clone();
            object.meta_mut().resource_version = version;
            written = Some(object);
        }
        if old.status() != new.status() {
            let status =
                |object: &K| serde_json::to_value(object.status()).map_err(|e| WriteError::Refused(e.to_string()));
            if let Some(patch) = diff(&status(old)?, &status(new)?) {
                let base = written.as_ref().unwrap_or(old);
                let version = self.send::<K>(base, json!({ "status": patch }), Some("status")).await?;
                let mut object = new.clone();
                object.meta_mut().resource_version = version;
                written = Some(object);
            }
        }
        Ok(written)
    }

    async fn send<K: Written>(
        &self,
        base: &K,
        mut patch: Value,
        part: Option<&str>,
    ) -> Result<Option<String>, WriteError> {
        let meta = base.meta();
        let name = meta.name.as_deref().ok_or(WriteError::NotFound)?;
        if let Some(version) = meta.resource_version.as_deref().filter(|v| !v.is_empty()) {
            patch["metadata"]["resourceVersion"] = version.into();
        }
        let builder = Builder::new(K::url_path(&(), base.meta().namespace.as_deref()));
        let params = PatchParams::default();
        let patch = Patch::Merge(patch);
        let ack: Ack = self
            .request(|| match part {
                Some(part) => builder.patch_subresource(part, name, &params, &patch),
                None => builder.patch(name, &params, &patch),
            })
            .await?;
        Ok(ack.metadata.resource_version)
    }

    /// Changes a Node.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub(crate) async fn node(&self, edit: &NodeEdit) -> Result<bool, WriteError> {
        let Some(patch) = edit.patch() else { return Ok(false) };
        let builder = Builder::new(Node::url_path(&(), None));
        let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
        let _: Ack = self.request(|| builder.patch(edit.name(), &params, &patch)).await?;
        Ok(true)
    }

    /// Creates an object and returns it as stored.
    ///
    /// # Errors
    /// [`WriteError::AlreadyExists`] also when the answer to an earlier attempt was lost.
    pub(crate) async fn create<K>(&self, object: &K) -> Result<K, WriteError>
    where
        K: Resource<DynamicType = ()> + Serialize + serde::de::DeserializeOwned,
    {
        let body = serde_json::to_vec(object).map_err(|e| WriteError::Refused(e.to_string()))?;
        let builder = Builder::new(K::url_path(&(), None));
        self.request(|| builder.create(&PostParams::default(), body.clone())).await
    }

    /// Asks for the deletion of exactly this object. One that is gone, or was replaced by another of the same name, is
    /// no error. Returns whether there was one.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub(crate) async fn delete<K: Resource<DynamicType = ()>>(
        &self,
        name: &str,
        uid: Option<&str>,
    ) -> Result<bool, WriteError> {
        let builder = Builder::new(K::url_path(&(), None));
        let params = DeleteParams {
            preconditions: uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        match self.request::<Ack>(|| builder.delete(name, &params)).await {
            Ok(_) => Ok(true),
            Err(WriteError::NotFound | WriteError::Conflict(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a request, again when the API server is busy or away.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub(crate) async fn request<T: serde::de::DeserializeOwned>(
        &self,
        make: impl Fn() -> Result<Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, WriteError> {
        let _slot = self.slots.acquire().await;
        retry(|| async { self.client.request::<T>(make().map_err(kube::Error::BuildRequest)?).await }).await
    }
}

/// The merge patch of labels, annotations and finalizers.
fn metadata_patch(old: &ObjectMeta, new: &ObjectMeta) -> Option<Value> {
    let mut patch = Map::new();
    for (field, old, new) in [("labels", &old.labels, &new.labels), ("annotations", &old.annotations, &new.annotations)]
    {
        if old != new {
            let value = |map| serde_json::to_value(map).unwrap_or(Value::Null);
            patch.extend(diff(&value(old), &value(new)).map(|p| (field.to_owned(), p)));
        }
    }
    if old.finalizers != new.finalizers {
        patch.insert("finalizers".into(), json!(new.finalizers));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}
