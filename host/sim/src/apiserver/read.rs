//! Get and list.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::call::Call;
use super::error::{ApiError, ApiResult};
use super::selector::Selector;
use super::store::{Key, Object};

/// One page of a list.
pub(crate) struct Page {
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Object>>,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl Page {
    /// `metadata` of the list.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if let Some(next) = &self.next {
            metadata["continue"] = next.clone().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

/// GET on an object.
pub(crate) fn get(call: &Call) -> ApiResult<Arc<Object>> {
    call.current(&call.key()?)
}

/// GET on a collection.
pub(crate) fn list(call: &Call) -> ApiResult<Page> {
    let mut selector = Selector::from_query(&call.resource, &call.query)?;
    if let Some(name) = &call.path.name {
        selector = selector.and_name(name);
    }
    let limit = call.query.number("limit")?.map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let store = call.api.store();
    let bucket = &call.resource.bucket;
    let (version, after) = match call.query.get("continue") {
        Some(token) => {
            let (version, key) = decode_continue(token)?;
            if !store.has_history_since(bucket, version) {
                return Err(ApiError::expired(
                    "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.",
                ));
            }
            (version, Some(key))
        }
        None => {
            if let Some(wanted) = call.query.number("resourceVersion")?.filter(|v| *v > store.version()) {
                return Err(ApiError::too_large_resource_version(wanted, store.version()));
            }
            (store.version(), None)
        }
    };
    let mut items = Vec::new();
    let mut next = None;
    let mut remaining = None;
    let mut last: Option<Key> = None;
    let mut rest = store
        .list(bucket, call.path.namespace.as_deref(), after.as_ref())
        .filter(|(_, object)| selector.matches(&object.value));
    for (key, object) in rest.by_ref() {
        if limit > 0 && items.len() == limit {
            next = last.as_ref().map(|key| encode_continue(version, key));
            // Selected lists do not say how much remains, as in the API server.
            remaining = selector.is_empty().then(|| rest.count() + 1);
            break;
        }
        last = Some(key.clone());
        items.push(Arc::clone(object));
    }
    Ok(Page { version, items, next, remaining })
}

fn encode_continue(version: u64, key: &Key) -> String {
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": version, "start": [key.0, key.1]}).to_string())
}

fn decode_continue(token: &str) -> ApiResult<(u64, Key)> {
    let bad = || ApiError::bad_request("continue key is not valid");
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
    let part = |at: usize| value["start"][at].as_str().map(str::to_owned).ok_or_else(bad);
    Ok((value["rv"].as_u64().ok_or_else(bad)?, (part(0)?, part(1)?)))
}
