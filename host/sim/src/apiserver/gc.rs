//! Garbage collection: dependents of owners that are gone, foreground and orphan deletion, contents of namespaces.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::delete::{DeleteOptions, delete_object, remove_finalizer};
use super::error::ApiResult;
use super::resources::Resource;
use super::store::{Bucket, Key};
use super::{Inner, write};

/// Something to look at.
#[derive(Debug)]
pub(crate) enum Work {
    /// The object of this UID is gone: its dependents may have to go.
    OwnerGone(String),
    /// An object that is being deleted, or that has owners.
    Look(Arc<Resource>, Key),
}

/// Between two looks at something that waits for others to go.
const AGAIN: Duration = Duration::from_millis(100);

/// Namespace and name of an object.
pub(crate) fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// Works until the server is dropped.
pub(crate) async fn run(api: Weak<Inner>, mut work: mpsc::UnboundedReceiver<Work>) {
    while let Some(item) = work.recv().await {
        let Some(inner) = api.upgrade() else { return };
        let result = match item {
            Work::OwnerGone(uid) => owner_gone(&inner, &uid),
            Work::Look(resource, key) => look(&inner, &resource, &key),
        };
        if let Err(error) = result {
            tracing::debug!(%error, "garbage collection");
        }
    }
}

fn resource_of(api: &Inner, bucket: &Bucket) -> Option<Arc<Resource>> {
    api.registry().iter().find(|r| r.bucket == *bucket && r.group == bucket.0).cloned()
}

fn owner_gone(api: &Arc<Inner>, uid: &str) -> ApiResult<()> {
    let dependents = api.store().dependents(uid);
    for (bucket, key) in dependents {
        if let Some(resource) = resource_of(api, &bucket) {
            collect(api, &resource, &key)?;
        }
    }
    Ok(())
}

/// Deletes an object none of whose owners exist any more.
fn collect(api: &Arc<Inner>, resource: &Arc<Resource>, key: &Key) -> ApiResult<()> {
    let store = api.store();
    let Some(object) = store.get(&resource.bucket, key) else { return Ok(()) };
    let owners = object.value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let uids: Vec<&str> = owners.filter_map(|o| o["uid"].as_str()).collect();
    let orphaned = !uids.is_empty() && !uids.iter().any(|uid| store.has_uid(uid));
    drop(store);
    if orphaned {
        let uid = object.value["metadata"]["uid"].as_str().map(str::to_owned);
        let options = DeleteOptions { uid, ..DeleteOptions::default() };
        ignore_gone(delete_object(api, resource, key, &options).map(|_| ()))?;
    }
    Ok(())
}

fn ignore_gone(result: ApiResult<()>) -> ApiResult<()> {
    match result {
        Err(e) if e.reason == "NotFound" || e.reason == "Conflict" => Ok(()),
        other => other,
    }
}

fn look(api: &Arc<Inner>, resource: &Arc<Resource>, key: &Key) -> ApiResult<()> {
    let Some(object) = api.store().get(&resource.bucket, key) else { return Ok(()) };
    let metadata = &object.value["metadata"];
    if metadata.get("deletionTimestamp").is_none() {
        return collect(api, resource, key);
    }
    let has = |name: &str| metadata["finalizers"].as_array().is_some_and(|f| f.iter().any(|f| f == name));
    let uid = metadata["uid"].as_str().unwrap_or_default();
    if has("orphan") {
        orphan(api, uid)?;
        remove_finalizer(api, resource, key, "orphan")?;
    }
    if has("foregroundDeletion") {
        let dependents = api.store().dependents(uid);
        if dependents.is_empty() {
            return remove_finalizer(api, resource, key, "foregroundDeletion");
        }
        for (bucket, dependent) in dependents {
            if let Some(resource) = resource_of(api, &bucket) {
                ignore_gone(delete_object(api, &resource, &dependent, &DeleteOptions::default()).map(|_| ()))?;
            }
        }
        later(api, resource, key);
    }
    if resource.is_core("namespaces") {
        empty_namespace(api, resource, key)?;
    }
    Ok(())
}

fn orphan(api: &Arc<Inner>, uid: &str) -> ApiResult<()> {
    let dependents = api.store().dependents(uid);
    for (bucket, key) in dependents {
        let mut store = api.store();
        let Some(current) = store.get(&bucket, &key) else { continue };
        let mut object = current.value.clone();
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|o| o["uid"] != uid);
            if owners.is_empty() {
                write::set_or_remove(&mut object["metadata"], "ownerReferences", Value::Null);
            }
        }
        store.put(&bucket, key, object, Some(current.version))?;
    }
    Ok(())
}

fn empty_namespace(api: &Arc<Inner>, resource: &Arc<Resource>, key: &Key) -> ApiResult<()> {
    let namespaced: Vec<Arc<Resource>> =
        api.registry().iter().filter(|r| r.namespaced && r.group == r.bucket.0).cloned().collect();
    let mut left = false;
    for inside in namespaced {
        let keys: Vec<Key> = api.store().list(&inside.bucket, Some(&key.1), None).map(|(k, _)| k.clone()).collect();
        for inner_key in keys {
            match delete_object(api, &inside, &inner_key, &DeleteOptions::default()) {
                Ok((gone, _)) => left |= !gone,
                Err(e) if e.reason == "NotFound" => {}
                Err(e) => return Err(e),
            }
        }
    }
    if left {
        later(api, resource, key);
        return Ok(());
    }
    remove_finalizer(api, resource, key, "kubernetes")
}

fn later(api: &Arc<Inner>, resource: &Arc<Resource>, key: &Key) {
    let (api, resource, key) = (Arc::downgrade(api), Arc::clone(resource), key.clone());
    tokio::spawn(async move {
        tokio::time::sleep(AGAIN).await;
        if let Some(api) = api.upgrade() {
            let _ = api.gc.send(Work::Look(resource, key));
        }
    });
}
