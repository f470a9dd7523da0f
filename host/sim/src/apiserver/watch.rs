//! Watch: changes after a resource version, as a stream of JSON lines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Inner;
use super::call::Call;
use super::error::{ApiError, ApiResult};
use super::represent::Representation;
use super::resources::Resource;
use super::selector::Selector;
use super::store::{Change, Object};

/// Between two bookmarks of a quiet watch.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// When the client names no timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);

struct Watcher {
    api: Arc<Inner>,
    resource: Arc<Resource>,
    namespace: Option<String>,
    selector: Selector,
    form: Representation,
    since: u64,
    bookmarks: bool,
    latest: watch::Receiver<u64>,
    ready: VecDeque<Bytes>,
    deadline: Instant,
    next_bookmark: Instant,
    over: bool,
}

/// Starts a watch.
///
/// # Errors
/// A bad selector or version. A version that is too old is answered within the stream, as the API server does.
pub(crate) fn watch(call: &Call, form: Representation) -> ApiResult<impl Stream<Item = Bytes> + Send + use<>> {
    let mut selector = Selector::from_query(&call.resource, &call.query)?;
    if let Some(name) = &call.path.name {
        selector = selector.and_name(name);
    }
    let asked = match call.query.get("resourceVersion") {
        None => None,
        Some(text) => Some(text.parse::<u64>().map_err(|_| {
            ApiError::bad_request(format!("query parameter resourceVersion: found \"{text}\", want a number"))
        })?),
    };
    let initial = call.query.flag("sendInitialEvents");
    if initial && call.query.get("resourceVersionMatch") != Some("NotOlderThan") {
        return Err(ApiError::bad_request("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    let timeout = call.query.number("timeoutSeconds")?.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let now = Instant::now();
    let mut store = call.api.store();
    let latest = store.subscribe(&call.resource.bucket);
    let mut watcher = Watcher {
        resource: Arc::clone(&call.resource),
        namespace: call.path.namespace.clone(),
        selector,
        form,
        since: asked.unwrap_or_default(),
        bookmarks: call.query.flag("allowWatchBookmarks"),
        latest,
        ready: VecDeque::new(),
        deadline: now + timeout,
        next_bookmark: now + BOOKMARK_EVERY,
        over: false,
        api: Arc::clone(&call.api),
    };
    if initial || asked.unwrap_or_default() == 0 {
        let current: Vec<Arc<Object>> = store
            .list(&call.resource.bucket, watcher.namespace.as_deref(), None)
            .map(|(_, object)| Arc::clone(object))
            .filter(|object| watcher.selector.matches(&object.value))
            .collect();
        watcher.since = store.version();
        for object in current {
            let event = watcher.event("ADDED", &object);
            watcher.ready.push_back(event);
        }
        if initial {
            let bookmark = watcher.bookmark(true);
            watcher.ready.push_back(bookmark);
        }
    }
    drop(store);
    Ok(futures::stream::unfold(watcher, |mut watcher| async move {
        let bytes = watcher.next().await?;
        Some((bytes, watcher))
    }))
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.over {
                return None;
            }
            self.latest.borrow_and_update();
            let changes = self.api.store().changes(&self.resource.bucket, self.since);
            match changes {
                Ok(changes) => {
                    for change in &changes {
                        self.since = change.version;
                        self.push(change);
                    }
                    if !self.ready.is_empty() {
                        continue;
                    }
                }
                Err(expired) => {
                    self.over = true;
                    return Some(line("ERROR", &serde_json::to_vec(&expired.to_status()).unwrap_or_default()));
                }
            }
            tokio::select! {
                changed = self.latest.changed() => if changed.is_err() { return None },
                () = tokio::time::sleep_until(self.deadline) => return None,
                () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                    self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                    return Some(self.bookmark(false));
                }
            }
        }
    }

    /// What a change looks like through the selector.
    fn push(&mut self, change: &Change) {
        let namespace = change.object.value["metadata"]["namespace"].as_str().unwrap_or_default();
        if self.namespace.as_deref().is_some_and(|wanted| wanted != namespace) {
            return;
        }
        let before = change.previous.as_ref().is_some_and(|p| self.selector.matches(&p.value));
        let after = !change.deleted && self.selector.matches(&change.object.value);
        let kind = match (before, after) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return,
        };
        let event = self.event(kind, &change.object);
        self.ready.push_back(event);
    }

    fn event(&self, kind: &str, object: &Object) -> Bytes {
        line(kind, &self.form.object(&self.resource, object))
    }

    fn bookmark(&self, initial_end: bool) -> Bytes {
        // Every change up to here has been sent, those of other resources included.
        let store_version = self.since;
        let mut metadata = json!({"resourceVersion": store_version.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = self.form.bookmark(&self.resource, metadata);
        line("BOOKMARK", &serde_json::to_vec(&object).unwrap_or_default())
    }
}

fn line(kind: &str, object: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(object.len() + 40);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
    out.freeze()
}

/// An object with the given metadata and nothing else.
pub(crate) fn bare(resource: &Resource, metadata: Value) -> Value {
    json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata})
}
