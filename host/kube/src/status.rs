//! Writes to the API: merge patches under optimistic locking, retried with back-off, bounded in number, and left out
//! when they would change nothing.

mod diff;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ClusterResourceScope;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::backoff::Backoff;

pub use diff::merge_patch;

/// Attempts of one request that is answered with 429 or 5xx, or not at all: about ten seconds with the pauses.
const ATTEMPTS: u32 = 7;
/// Attempts of one change whose object changes under it every time.
const CONFLICTS: u32 = 5;

/// One attempt may take this long: the API server's own limit for a request is a minute.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The object is gone.
    #[error("not found")]
    NotFound,
    /// The object changed under every attempt.
    #[error("the object keeps changing: {0}")]
    Conflict(String),
    /// An object of that name exists already.
    #[error("exists already")]
    AlreadyExists,
    /// The API server refuses it (invalid, forbidden, …): trying again will not help by itself.
    #[error("refused by the API server: {0}")]
    Refused(String),
    /// The API server could not be reached, or had too much to do, for all attempts.
    #[error("the API server did not answer: {0}")]
    Unavailable(String),
}

impl WriteError {
    /// From the client's error.
    pub fn from_kube(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => match status.code {
                404 => Self::NotFound,
                409 if status.reason == "AlreadyExists" => Self::AlreadyExists,
                409 => Self::Conflict(status.message.clone()),
                429 | 500..=599 => Self::Unavailable(status.message.clone()),
                _ => Self::Refused(status.message.clone()),
            },
            kube::Error::SerdeError(e) => Self::Refused(format!("the answer does not decode: {e}")),
            other => Self::Unavailable(other.to_string()),
        }
    }

    /// Worth another attempt of the same request.
    pub fn transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// Runs a request until it is answered for good: 429, 5xx and lost connections are tried again after growing pauses, or
/// after what the server asks for.
///
/// # Errors
/// The last answer.
pub async fn retry<T, F, Fut>(mut request: F) -> Result<T, WriteError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = kube::Result<T>>,
{
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
    let mut attempt = 1;
    loop {
        let (found, asked) = match tokio::time::timeout(TIMEOUT, request()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => (WriteError::from_kube(&error), asked_pause(&error)),
            Err(_) => (WriteError::Unavailable(format!("no answer within {TIMEOUT:?}")), None),
        };
        if !found.transient() || attempt >= ATTEMPTS {
            return Err(found);
        }
        attempt += 1;
        let pause = backoff.pause().max(asked.unwrap_or_default());
        tokio::time::sleep(pause).await;
    }
}

/// The pause a server asks for, at most half a minute of it.
fn asked_pause(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds).min(30)))
}

/// Kinds that the writer takes: those of the cluster's scope.
pub trait Object:
    Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync
{
}
impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
{
}

/// Which part of an object a change may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Status,
    Main,
}

/// Writes cluster-scoped objects. Clones share the bound on concurrent writes.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    slots: Arc<Semaphore>,
}

impl Writer {
    /// A writer with at most `concurrent` requests under way.
    pub fn new(client: Client, concurrent: usize) -> Self {
        Self { client, slots: Arc::new(Semaphore::new(concurrent.max(1))) }
    }

    /// Changes the status of an object that is known from the watch. `change` is applied to a copy; what differs is sent
    /// as a merge patch that holds only for the version it was computed from. When the object has moved on, it is read
    /// again and `change` applied again.
    ///
    /// Returns the object as written, or `None` when `change` changed nothing.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn status<K: Object>(&self, known: &K, change: impl FnMut(&mut K)) -> Result<Option<K>, WriteError> {
        self.change(Some(known.clone()), known.meta().name.as_deref(), Part::Status, change).await
    }

    /// Changes metadata or spec of an object that is known from the watch, as [`Self::status`] does the status.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn object<K: Object>(&self, known: &K, change: impl FnMut(&mut K)) -> Result<Option<K>, WriteError> {
        self.change(Some(known.clone()), known.meta().name.as_deref(), Part::Main, change).await
    }

    /// Changes metadata or spec of an object of which no full copy is kept (Nodes): it is read first.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn fresh<K: Object>(&self, name: &str, change: impl FnMut(&mut K)) -> Result<Option<K>, WriteError> {
        self.change(None, Some(name), Part::Main, change).await
    }

    /// Creates an object.
    ///
    /// # Errors
    /// [`WriteError::AlreadyExists`] when there is one of that name, else see [`WriteError`]. A creation whose answer
    /// was lost can come back as `AlreadyExists`: read the object and compare before drawing conclusions.
    pub async fn create<K: Object>(&self, object: &K) -> Result<K, WriteError> {
        let api: Api<K> = Api::all(self.client.clone());
        let _slot = self.slots.acquire().await;
        let params = PostParams::default();
        retry(|| api.create(&params, object)).await
    }

    /// Reads an object.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn get<K: Object>(&self, name: &str) -> Result<K, WriteError> {
        let api: Api<K> = Api::all(self.client.clone());
        retry(|| api.get(name)).await
    }

    /// Asks for the deletion of exactly this object (by UID, when given). Returns whether there was one.
    ///
    /// # Errors
    /// See [`WriteError`]; an object that is gone, or was replaced by another of the same name, is no error.
    pub async fn delete<K: Object>(&self, name: &str, uid: Option<&str>) -> Result<bool, WriteError> {
        let api: Api<K> = Api::all(self.client.clone());
        let params = DeleteParams {
            preconditions: uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        let _slot = self.slots.acquire().await;
        match retry(|| async { api.delete(name, &params).await.map(|_| ()) }).await {
            Ok(()) => Ok(true),
            Err(WriteError::NotFound | WriteError::Conflict(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn change<K: Object>(
        &self,
        known: Option<K>,
        name: Option<&str>,
        part: Part,
        mut change: impl FnMut(&mut K),
    ) -> Result<Option<K>, WriteError> {
        let name = name.ok_or(WriteError::NotFound)?;
        let api: Api<K> = Api::all(self.client.clone());
        let params = PatchParams::default();
        let uid = known.as_ref().and_then(|k| k.meta().uid.clone());
        let mut current = known;
        let mut conflict = String::new();
        for _ in 0..CONFLICTS {
            let before = match current.take() {
                Some(object) => object,
                None => retry(|| api.get(name)).await?,
            };
            if uid.is_some() && before.meta().uid != uid {
                // Another object took the name: the one that was to change is gone.
                return Err(WriteError::NotFound);
            }
            let mut after = before.clone();
            change(&mut after);
            let Some(patch) = patch_of(&before, &after, part)? else { return Ok(None) };
            let patch = Patch::Merge(patch);
            let slot = self.slots.acquire().await;
            let answer = retry(|| async {
                match part {
                    Part::Status => api.patch_status(name, &params, &patch).await,
                    Part::Main => api.patch(name, &params, &patch).await,
                }
            })
            .await;
            drop(slot);
            match answer {
                Ok(object) => return Ok(Some(object)),
                Err(WriteError::Conflict(message)) => conflict = message,
                Err(error) => return Err(error),
            }
        }
        Err(WriteError::Conflict(conflict))
    }
}

/// The merge patch from `before` to `after` in the given part, tied to the version and UID of `before`.
fn patch_of<K: Object>(before: &K, after: &K, part: Part) -> Result<Option<serde_json::Value>, WriteError> {
    let value = |object: &K| {
        serde_json::to_value(object).map_err(|e| WriteError::Refused(format!("the object does not encode: {e}")))
    };
    let (mut old, mut new) = (value(before)?, value(after)?);
    for side in [&mut old, &mut new] {
        if let Some(fields) = side.as_object_mut() {
            match part {
                Part::Status => fields.retain(|field, _| field == "status"),
                Part::Main => fields.retain(|field, _| field != "status"),
            }
        }
    }
    let Some(mut patch) = merge_patch(&old, &new) else { return Ok(None) };
    let version = before.meta().resource_version.as_deref().filter(|v| !v.is_empty());
    let uid = before.meta().uid.as_deref().filter(|u| !u.is_empty());
    for (field, text) in [("resourceVersion", version), ("uid", uid)] {
        if let Some(text) = text {
            patch["metadata"][field] = text.into();
        }
    }
    Ok(Some(patch))
}

#[cfg(test)]
mod tests;
