//! Create, update and patch.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::admit::admit;
use super::call::{Call, Written};
use super::error::{ApiError, ApiResult, FieldError};
use super::managed;
use super::patch::{Patch, apply};
use super::store::{Key, MODIFIED, Object};
use super::structure::Structure;

/// Patches without a resource version are tried again when someone else was faster.
const PATCH_ATTEMPTS: usize = 5;

/// POST on a collection.
pub(crate) fn create(call: &Call) -> ApiResult<Written> {
    let object = call.object()?;
    create_object(call, object, None)
}

/// Stores a new object. `applied`: managedFields are complete already (server-side apply).
pub(crate) fn create_object(call: &Call, mut object: Value, applied: Option<()>) -> ApiResult<Written> {
    let resource = &call.resource;
    let namespace = match_namespace(call, &mut object)?;
    let metadata = metadata_mut(&mut object)?;
    if metadata.get("resourceVersion").and_then(Value::as_str).is_some_and(|v| !v.is_empty()) {
        return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
    }
    for field in ["resourceVersion", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"]
    {
        metadata.remove(field);
    }
    if metadata.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
        let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
        if prefix.is_empty() {
            return Err(ApiError::invalid(
                &resource.group,
                &resource.kind,
                "",
                &[FieldError {
                    field: "metadata.name".to_owned(),
                    reason: "FieldValueRequired",
                    message: "Required value: name or generateName is required".to_owned(),
                }],
            ));
        }
        let name = format!("{prefix}{}", call.api.ids.suffix());
        metadata.insert("name".to_owned(), name.into());
    }
    metadata.insert("uid".to_owned(), call.api.ids.uid().into());
    metadata.insert("creationTimestamp".to_owned(), call.api.clock.now_rfc3339().into());
    if object["spec"].is_object() {
        object["metadata"]["generation"] = 1.into();
    }
    // Status comes from controllers through the subresource; a kubelet registers its Node with status.
    if resource.status
        && !resource.is_core("nodes")
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    let warnings = admit(resource, &mut object, call.unknown_fields()?)?;
    if applied.is_none() {
        managed::record_update(Structure(resource), None, &mut object, &call.writer());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if call.query.dry_run()? {
        return Ok(Written { code: 201, value: object, warnings });
    }
    let mut store = call.api.store();
    if resource.namespaced {
        let bucket = super::bucket("", "namespaces");
        let Some(found) = store.get(&bucket, &(String::new(), namespace.clone())) else {
            return Err(ApiError::not_found("", "namespaces", &namespace));
        };
        if found.value["metadata"].get("deletionTimestamp").is_some() {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            return Err(ApiError::forbidden(&resource.group, &resource.plural, &name, &why));
        }
    }
    let stored = store.put(&resource.bucket, (namespace, name), object, None)?;
    drop(store);
    call.api.stored(resource, &stored);
    Ok(Written { code: 201, value: stored.value.clone(), warnings })
}

fn metadata_mut(object: &mut Value) -> ApiResult<&mut Map<String, Value>> {
    if object["metadata"].is_null() {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"].as_object_mut().ok_or_else(|| ApiError::bad_request("metadata: not an object"))
}

/// Makes the namespaces of path and object agree; empty for cluster-scoped resources.
fn match_namespace(call: &Call, object: &mut Value) -> ApiResult<String> {
    let metadata = metadata_mut(object)?;
    if !call.resource.namespaced {
        metadata.remove("namespace");
        return Ok(String::new());
    }
    let wanted = call.path.namespace.clone().ok_or_else(ApiError::method_not_allowed)?;
    match metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() {
        "" => _ = metadata.insert("namespace".to_owned(), wanted.clone().into()),
        found if found == wanted => {}
        found => {
            return Err(ApiError::bad_request(format!(
                "the namespace of the provided object does not match the namespace sent on the request: found {found}, want {wanted}"
            )));
        }
    }
    Ok(wanted)
}

/// PUT on an object or its status.
pub(crate) fn update(call: &Call) -> ApiResult<Written> {
    let key = call.key()?;
    let object = call.object()?;
    let found = object["metadata"]["name"].as_str().unwrap_or_default();
    if found != key.1 {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({})",
            key.1
        )));
    }
    let current = call.current(&key)?;
    replace(call, &key, &current, object)
}

/// PATCH on an object or its status.
pub(crate) fn patch(call: &Call) -> ApiResult<Written> {
    let key = call.key()?;
    let patch = Patch::parse(&call.content_type, &call.body)?;
    if let Patch::Apply(config) = &patch {
        return server_side_apply(call, &key, config);
    }
    let mut last = None;
    for _ in 0..PATCH_ATTEMPTS {
        let current = call.current(&key)?;
        let object = patch.patched(&call.resource, &current.value)?;
        match replace(call, &key, &current, object) {
            // The patch itself named a version: that is the caller's conflict.
            Err(e) if e.reason == "Conflict" && call.current(&key)?.version != current.version => last = Some(e),
            done => return done,
        }
    }
    Err(last.unwrap_or_else(|| ApiError::internal("patch was not tried")))
}

fn server_side_apply(call: &Call, key: &Key, config: &Value) -> ApiResult<Written> {
    let resource = &call.resource;
    if call.query.get("fieldManager").is_none() {
        return Err(ApiError::bad_request("fieldManager is required for apply patch"));
    }
    let (version, kind) = (resource.api_version(), resource.kind.as_str());
    if config["apiVersion"] != version.as_str() || config["kind"] != kind {
        return Err(ApiError::bad_request(format!(
            "apply configuration: found apiVersion {} and kind {}, want \"{version}\" and \"{kind}\"",
            config["apiVersion"], config["kind"]
        )));
    }
    let mut config = config.clone();
    if resource.custom.is_none() {
        super::types::quantities_to_text(&mut config);
    }
    metadata_mut(&mut config)?.insert("name".to_owned(), key.1.clone().into());
    if call.path.subresource.is_none() && resource.status {
        // The object's own endpoint does not write status.
        if let Some(fields) = config.as_object_mut() {
            fields.remove("status");
        }
    } else if call.path.subresource.as_deref() == Some("status")
        && let Some(fields) = config.as_object_mut()
    {
        fields.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
        let name = fields["metadata"]["name"].clone();
        fields.insert("metadata".to_owned(), serde_json::json!({ "name": name }));
    }
    let writer = call.writer();
    let force = call.query.flag("force");
    for _ in 0..PATCH_ATTEMPTS {
        let current = call.api.store().get(&resource.bucket, key);
        let wanted = config["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let Some(current) = current else {
            if !wanted.is_empty() {
                return Err(ApiError::conflict(&resource.group, &resource.plural, &key.1, MODIFIED));
            }
            if call.path.subresource.is_some() {
                return Err(call.not_found(&key.1));
            }
            let object = apply::apply(Structure(resource), None, &config, &writer, force)?;
            match create_object(call, object, Some(())) {
                Err(e) if e.reason == "AlreadyExists" => continue,
                done => return done,
            }
        };
        if !wanted.is_empty() && wanted != current.version.to_string() {
            return Err(ApiError::conflict(&resource.group, &resource.plural, &key.1, MODIFIED));
        }
        let mut object = apply::apply(Structure(resource), Some(&current.value), &config, &writer, force)?;
        object["metadata"]["resourceVersion"] = current.version.to_string().into();
        match finish(call, key, &current, object, true) {
            Err(e) if e.reason == "Conflict" => {}
            done => return done,
        }
    }
    Err(ApiError::conflict(&resource.group, &resource.plural, &key.1, MODIFIED))
}

/// Checks the version the caller saw, and stores.
pub(crate) fn replace(call: &Call, key: &Key, current: &Arc<Object>, object: Value) -> ApiResult<Written> {
    let seen = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let resource = &call.resource;
    if !seen.is_empty() && seen != current.version.to_string() {
        return Err(ApiError::conflict(&resource.group, &resource.plural, &key.1, MODIFIED));
    }
    if let Some(uid) = object["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty())
        && current.value["metadata"]["uid"] != uid
    {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            current.value["metadata"]["uid"].as_str().unwrap_or_default()
        );
        return Err(ApiError::conflict(&resource.group, &resource.plural, &key.1, &why));
    }
    finish(call, key, current, object, false)
}

/// Keeps what a writer may not change, admits, records ownership and stores.
fn finish(call: &Call, key: &Key, current: &Arc<Object>, mut object: Value, applied: bool) -> ApiResult<Written> {
    let resource = &call.resource;
    let before = &current.value;
    let status_only = call.path.subresource.as_deref() == Some("status");
    if status_only {
        let (status, managed) = (object["status"].take(), object["metadata"]["managedFields"].take());
        // Built-in status strategies let some metadata through (annotations of a Node, say); custom ones do not.
        let metadata = (resource.custom.is_none()).then(|| object["metadata"].take());
        object = before.clone();
        if let Some(metadata) = metadata {
            for field in ["annotations", "labels", "finalizers"] {
                set_or_remove(&mut object["metadata"], field, metadata[field].clone());
            }
        }
        object["metadata"]["managedFields"] = managed;
        set_or_remove(&mut object, "status", status);
    } else if resource.status {
        set_or_remove(&mut object, "status", before["status"].clone());
    }
    let namespace = key.0.clone();
    let kept = before["metadata"].clone();
    let metadata = metadata_mut(&mut object)?;
    for field in [
        "name",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        match kept.get(field) {
            Some(value) => _ = metadata.insert(field.to_owned(), value.clone()),
            None => _ = metadata.remove(field),
        }
    }
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    if metadata.get("managedFields").is_none_or(Value::is_null) {
        match kept.get("managedFields") {
            Some(value) => _ = metadata.insert("managedFields".to_owned(), value.clone()),
            None => _ = metadata.remove("managedFields"),
        }
    }
    let deleting = kept.get("deletionTimestamp").is_some();
    if deleting {
        refuse_new_finalizers(call, key, &kept["finalizers"], &object["metadata"]["finalizers"])?;
    }
    let warnings = admit(resource, &mut object, call.unknown_fields()?)?;
    // A status is written often and grows no generation; anything else outside metadata does.
    if kept.get("generation").is_some() && !status_only && differs_outside_metadata(before, &object) {
        let generation = kept["generation"].as_i64().unwrap_or_default() + 1;
        object["metadata"]["generation"] = generation.into();
    }
    if !applied {
        managed::record_update(Structure(resource), Some(before), &mut object, &call.writer());
    }
    if call.query.dry_run()? || apply::same_content(before, &object) {
        let value = if call.query.dry_run()? { object } else { before.clone() };
        return Ok(Written { code: 200, value, warnings });
    }
    let gone = deleting && super::delete::may_go(&object);
    let stored = if gone {
        call.api.store().remove(&resource.bucket, key, object, current.version)?
    } else {
        call.api.store().put(&resource.bucket, key.clone(), object, Some(current.version))?
    };
    if gone {
        call.api.removed(resource, &stored);
    } else {
        call.api.stored(resource, &stored);
    }
    Ok(Written { code: 200, value: stored.value.clone(), warnings })
}

pub(crate) fn set_or_remove(target: &mut Value, field: &str, value: Value) {
    if let Some(fields) = target.as_object_mut() {
        if value.is_null() {
            fields.remove(field);
        } else {
            fields.insert(field.to_owned(), value);
        }
    }
}

fn differs_outside_metadata(before: &Value, after: &Value) -> bool {
    let (Some(a), Some(b)) = (before.as_object(), after.as_object()) else { return true };
    let rest = |m: &Map<String, Value>| -> Vec<(String, Value)> {
        m.iter()
            .filter(|(n, _)| !matches!(n.as_str(), "metadata" | "status"))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect()
    };
    rest(a) != rest(b)
}

fn refuse_new_finalizers(call: &Call, key: &Key, before: &Value, after: &Value) -> ApiResult<()> {
    let had = before.as_array().map(Vec::as_slice).unwrap_or_default();
    let added: Vec<&Value> = after.as_array().into_iter().flatten().filter(|f| !had.contains(f)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = added.iter().filter_map(|f| f.as_str()).collect();
    Err(ApiError::invalid(
        &call.resource.group,
        &call.resource.kind,
        &key.1,
        &[FieldError {
            field: "metadata.finalizers".to_owned(),
            reason: "FieldValueForbidden",
            message: format!(
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {names:?}"
            ),
        }],
    ))
}
