//! Delete: grace periods, finalizers, propagation, preconditions; and delete of a whole collection.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::call::{Call, Written};
use super::error::{ApiError, ApiResult};
use super::resources::Resource;
use super::selector::Selector;
use super::store::{Key, MODIFIED, Object};
use super::{Inner, write};
use crate::clock::rfc3339;

/// How an object is to go.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_s: Option<i64>,
    pub(crate) propagation: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// From a `DeleteOptions` body and query parameters; the body wins.
    pub(crate) fn from_call(call: &Call) -> ApiResult<Self> {
        let mut options = Self::from_body(&call.options()?);
        if options.grace_s.is_none() {
            options.grace_s = call.query.number("gracePeriodSeconds")?.and_then(|s| i64::try_from(s).ok());
        }
        if options.propagation.is_none() {
            options.propagation = call.query.get("propagationPolicy").map(str::to_owned);
        }
        options.dry_run |= call.query.dry_run()?;
        Ok(options)
    }

    pub(crate) fn from_body(body: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            grace_s: body["gracePeriodSeconds"].as_i64(),
            propagation: text(&body["propagationPolicy"]),
            uid: text(&body["preconditions"]["uid"]),
            version: text(&body["preconditions"]["resourceVersion"]),
            dry_run: body["dryRun"].as_array().is_some_and(|d| !d.is_empty()),
        }
    }
}

/// Nothing keeps a deleted object any more: no finalizer, and its grace is over.
pub(crate) fn may_go(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let held = metadata["finalizers"].as_array().is_some_and(|f| !f.is_empty())
        || object["kind"] == "Namespace" && object["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
    !held && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
}

/// DELETE on an object.
pub(crate) fn delete(call: &Call) -> ApiResult<Written> {
    let key = call.key()?;
    let options = DeleteOptions::from_call(call)?;
    let (gone, value) = delete_object(&call.api, &call.resource, &key, &options)?;
    // Objects that live on for a while are returned, as the API server does; of others only the identity.
    let value = if gone { success(&call.resource, &value) } else { value };
    Ok(Written::new(200, value))
}

fn success(resource: &Resource, object: &Value) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {
            "name": object["metadata"]["name"], "group": *resource.group, "kind": *resource.plural,
            "uid": object["metadata"]["uid"],
        },
    })
}

/// Deletes or marks; returns whether it is gone, and its last state.
pub(crate) fn delete_object(
    api: &Arc<Inner>,
    resource: &Arc<Resource>,
    key: &Key,
    options: &DeleteOptions,
) -> ApiResult<(bool, Value)> {
    loop {
        let Some(current) = api.store().get(&resource.bucket, key) else {
            return Err(ApiError::not_found(&resource.group, &resource.plural, &key.1));
        };
        preconditions(resource, key, &current, options)?;
        let mut object = current.value.clone();
        mark(api, resource, &mut object, options);
        let gone = may_go(&object);
        if options.dry_run {
            return Ok((gone, object));
        }
        if !gone && object == current.value {
            return Ok((false, object));
        }
        let stored = if gone {
            api.store().remove(&resource.bucket, key, object, current.version)
        } else {
            api.store().put(&resource.bucket, key.clone(), object, Some(current.version))
        };
        match stored {
            Ok(stored) if gone => {
                api.removed(resource, &stored);
                return Ok((true, stored.value.clone()));
            }
            Ok(stored) => {
                api.stored(resource, &stored);
                return Ok((false, stored.value.clone()));
            }
            Err(e) if e.reason == "Conflict" => {}
            Err(e) => return Err(e),
        }
    }
}

fn preconditions(resource: &Resource, key: &Key, current: &Object, options: &DeleteOptions) -> ApiResult<()> {
    let metadata = &current.value["metadata"];
    if let Some(uid) = options.uid.as_deref().filter(|uid| metadata["uid"] != *uid) {
        let found = metadata["uid"].as_str().unwrap_or_default();
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
        return Err(ApiError::conflict(&resource.group, &resource.plural, &key.1, &why));
    }
    if options.version.as_deref().is_some_and(|version| version != current.version.to_string()) {
        return Err(ApiError::conflict(&resource.group, &resource.plural, &key.1, MODIFIED));
    }
    Ok(())
}

fn mark(api: &Inner, resource: &Resource, object: &mut Value, options: &DeleteOptions) {
    let grace = if resource.is_core("pods") { pod_grace(object, options.grace_s) } else { 0 };
    match options.propagation.as_deref() {
        Some("Foreground") => add_finalizer(object, "foregroundDeletion"),
        Some("Orphan") => add_finalizer(object, "orphan"),
        _ => {}
    }
    let metadata = &mut object["metadata"];
    let before = metadata["deletionGracePeriodSeconds"].as_i64();
    let deleting = metadata.get("deletionTimestamp").is_some_and(|t| !t.is_null());
    // A second delete may only shorten the grace.
    if deleting && before.is_some_and(|before| before <= grace) {
        return;
    }
    let until = api.clock.now().saturating_add(SignedDuration::from_secs(grace));
    metadata["deletionTimestamp"] = rfc3339(until.unwrap_or_else(|_| api.clock.now())).into();
    metadata["deletionGracePeriodSeconds"] = grace.into();
    if let Some(generation) = metadata["generation"].as_i64().filter(|_| !deleting) {
        metadata["generation"] = (generation + 1).into();
    }
    if resource.is_core("namespaces") {
        object["status"]["phase"] = "Terminating".into();
    }
}

/// Pods that run get their grace; those that never ran or are over go at once.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let unscheduled = pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if unscheduled || over {
        return 0;
    }
    asked.or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30).max(0)
}

fn add_finalizer(object: &mut Value, name: &str) {
    if !object["metadata"]["finalizers"].is_array() {
        object["metadata"]["finalizers"] = json!([]);
    }
    if let Some(list) = object["metadata"]["finalizers"].as_array_mut()
        && !list.iter().any(|f| f == name)
    {
        list.push(name.into());
    }
}

/// DELETE on a collection.
pub(crate) fn delete_collection(call: &Call) -> ApiResult<Written> {
    let options = DeleteOptions::from_call(call)?;
    let selector = Selector::from_query(&call.resource, &call.query)?;
    let keys: Vec<(Key, Value)> = call
        .api
        .store()
        .list(&call.resource.bucket, call.path.namespace.as_deref(), None)
        .filter(|(_, object)| selector.matches(&object.value))
        .map(|(key, object)| (key.clone(), object.value.clone()))
        .collect();
    let mut items = Vec::with_capacity(keys.len());
    for (key, value) in keys {
        match delete_object(&call.api, &call.resource, &key, &options) {
            Ok(_) => items.push(value),
            Err(e) if e.reason == "NotFound" => {}
            Err(e) => return Err(e),
        }
    }
    let version = call.api.store().version().to_string();
    Ok(Written::new(
        200,
        json!({
            "kind": format!("{}List", call.resource.kind), "apiVersion": call.resource.api_version(),
            "metadata": {"resourceVersion": version}, "items": items,
        }),
    ))
}

/// Takes a finalizer off an object, which lets it go when it was the last.
pub(crate) fn remove_finalizer(api: &Arc<Inner>, resource: &Arc<Resource>, key: &Key, name: &str) -> ApiResult<()> {
    loop {
        let Some(current) = api.store().get(&resource.bucket, key) else { return Ok(()) };
        let mut object = current.value.clone();
        let (metadata, namespace) = (name != "kubernetes", name == "kubernetes");
        if metadata && let Some(list) = object["metadata"]["finalizers"].as_array_mut() {
            list.retain(|f| f != name);
            if list.is_empty() {
                write::set_or_remove(&mut object["metadata"], "finalizers", Value::Null);
            }
        }
        if namespace && let Some(list) = object["spec"]["finalizers"].as_array_mut() {
            list.retain(|f| f != name);
        }
        let gone = object["metadata"].get("deletionTimestamp").is_some() && may_go(&object);
        let done = if gone {
            api.store().remove(&resource.bucket, key, object, current.version)
        } else {
            api.store().put(&resource.bucket, key.clone(), object, Some(current.version))
        };
        match done {
            Ok(stored) if gone => {
                api.removed(resource, &stored);
                return Ok(());
            }
            Ok(_) => return Ok(()),
            Err(e) if e.reason == "Conflict" => {}
            Err(e) => return Err(e),
        }
    }
}
