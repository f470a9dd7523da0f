//! Storage: every object of every resource, one counter for all resource versions, and per resource a bounded history
//! from which watches are served.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;

use super::error::{ApiError, ApiResult};

/// Where a resource is stored: API group and plural.
pub(crate) type Bucket = (Arc<str>, Arc<str>);

/// An object as stored, never changed in place.
#[derive(Debug)]
pub(crate) struct Object {
    /// The object, `metadata.resourceVersion` included.
    pub(crate) value: Value,
    /// Its resource version.
    pub(crate) version: u64,
    json: OnceLock<Bytes>,
}

impl Object {
    fn new(mut value: Value, version: u64) -> Self {
        value["metadata"]["resourceVersion"] = Value::String(version.to_string());
        Self { value, version, json: OnceLock::new() }
    }

    /// Serialised once, shared by every list and watch.
    pub(crate) fn json(&self) -> Bytes {
        self.json.get_or_init(|| Bytes::from(serde_json::to_vec(&self.value).unwrap_or_default())).clone()
    }
}

/// Namespace (empty for cluster-scoped) and name.
pub(crate) type Key = (String, String);

/// One change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    /// State after the change; for a deletion the last state, with the deletion's version.
    pub(crate) object: Arc<Object>,
    /// State before; `None` when created.
    pub(crate) previous: Option<Arc<Object>>,
    pub(crate) deleted: bool,
}

#[derive(Debug)]
struct Collection {
    objects: BTreeMap<Key, Arc<Object>>,
    history: VecDeque<Change>,
    /// Changes up to and including this version are no longer in the history.
    floor: u64,
    latest: watch::Sender<u64>,
}

impl Collection {
    fn new() -> Self {
        Self { objects: BTreeMap::new(), history: VecDeque::new(), floor: 0, latest: watch::Sender::new(0) }
    }
}

/// All objects.
#[derive(Debug)]
pub(crate) struct Store {
    version: u64,
    history: usize,
    collections: BTreeMap<Bucket, Collection>,
    uids: BTreeSet<String>,
    /// By UID of an owner.
    dependents: BTreeMap<String, BTreeSet<(Bucket, Key)>>,
}

impl Store {
    /// `history`: changes kept per resource.
    pub(crate) fn new(history: usize) -> Self {
        Self {
            version: 1,
            history: history.max(1),
            collections: BTreeMap::new(),
            uids: BTreeSet::new(),
            dependents: BTreeMap::new(),
        }
    }

    /// The latest resource version.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    fn collection(&mut self, bucket: &Bucket) -> &mut Collection {
        self.collections.entry(bucket.clone()).or_insert_with(Collection::new)
    }

    pub(crate) fn get(&self, bucket: &Bucket, key: &Key) -> Option<Arc<Object>> {
        self.collections.get(bucket)?.objects.get(key).cloned()
    }

    /// Objects in key order, of one namespace or of all.
    pub(crate) fn list<'a>(
        &'a self,
        bucket: &Bucket,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> + use<'a> {
        use std::ops::Bound;
        let start = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included((namespace.to_owned(), String::new())),
            (None, None) => Bound::Unbounded,
        };
        self.collections
            .get(bucket)
            .into_iter()
            .flat_map(move |c| c.objects.range((start.clone(), Bound::Unbounded)))
            .take_while(move |((ns, _), _)| namespace.is_none_or(|wanted| wanted == ns))
    }

    /// Whether an object of this UID exists.
    pub(crate) fn has_uid(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }

    /// Objects that name this UID as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(Bucket, Key)> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Keeps the indexes by UID and by owner.
    fn index(&mut self, bucket: &Bucket, key: &Key, before: Option<&Value>, after: Option<&Value>) {
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let owners = |object: Option<&Value>| -> BTreeSet<String> {
            let list = object.and_then(|o| o["metadata"]["ownerReferences"].as_array()).into_iter().flatten();
            list.filter_map(|o| o["uid"].as_str()).map(str::to_owned).collect()
        };
        match (before, after) {
            (None, Some(object)) => _ = self.uids.insert(uid(object)),
            (Some(object), None) => _ = self.uids.remove(&uid(object)),
            _ => {}
        }
        let (old, new) = (owners(before), owners(after));
        for owner in old.difference(&new) {
            if let Some(set) = self.dependents.get_mut(owner) {
                set.remove(&(bucket.clone(), key.clone()));
                if set.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        for owner in new.difference(&old) {
            self.dependents.entry(owner.clone()).or_default().insert((bucket.clone(), key.clone()));
        }
    }

    /// Drops every object of a resource that is no longer served.
    pub(crate) fn drop_bucket(&mut self, bucket: &Bucket) {
        let objects: Vec<(Key, Arc<Object>)> =
            self.list(bucket, None, None).map(|(k, o)| (k.clone(), Arc::clone(o))).collect();
        for (key, object) in objects {
            // Nothing else changes it while the store is held.
            let _ = self.remove(bucket, &key, object.value.clone(), object.version);
        }
    }

    /// Stores a new object, or replaces the one that still has `expected` as its version.
    ///
    /// # Errors
    /// Already exists, not found, or conflict when the stored version is not `expected`.
    pub(crate) fn put(
        &mut self,
        bucket: &Bucket,
        key: Key,
        value: Value,
        expected: Option<u64>,
    ) -> ApiResult<Arc<Object>> {
        let current = self.get(bucket, &key);
        match (&current, expected) {
            (Some(_), None) => return Err(ApiError::already_exists(&bucket.0, &bucket.1, &key.1)),
            (None, Some(_)) => return Err(ApiError::not_found(&bucket.0, &bucket.1, &key.1)),
            (Some(found), Some(version)) if found.version != version => {
                return Err(ApiError::conflict(&bucket.0, &bucket.1, &key.1, MODIFIED));
            }
            _ => {}
        }
        self.version += 1;
        let version = self.version;
        let object = Arc::new(Object::new(value, version));
        self.index(bucket, &key, current.as_ref().map(|c| &c.value), Some(&object.value));
        let change = Change { version, object: Arc::clone(&object), previous: current, deleted: false };
        let limit = self.history;
        let collection = self.collection(bucket);
        collection.objects.insert(key, Arc::clone(&object));
        collection.record(change, limit);
        Ok(object)
    }

    /// Removes an object that still has `expected` as its version; `last` is the state that watchers see.
    ///
    /// # Errors
    /// Not found, or conflict when the stored version is not `expected`.
    pub(crate) fn remove(&mut self, bucket: &Bucket, key: &Key, last: Value, expected: u64) -> ApiResult<Arc<Object>> {
        let Some(current) = self.get(bucket, key) else {
            return Err(ApiError::not_found(&bucket.0, &bucket.1, &key.1));
        };
        if current.version != expected {
            return Err(ApiError::conflict(&bucket.0, &bucket.1, &key.1, MODIFIED));
        }
        self.version += 1;
        let version = self.version;
        let object = Arc::new(Object::new(last, version));
        self.index(bucket, key, Some(&current.value), None);
        let change = Change { version, object: Arc::clone(&object), previous: Some(current), deleted: true };
        let limit = self.history;
        let collection = self.collection(bucket);
        collection.objects.remove(key);
        collection.record(change, limit);
        Ok(object)
    }

    /// Changes after `since`, oldest first.
    ///
    /// # Errors
    /// Expired when `since` is older than the history.
    pub(crate) fn changes(&self, bucket: &Bucket, since: u64) -> ApiResult<Vec<Change>> {
        let Some(collection) = self.collections.get(bucket) else { return Ok(Vec::new()) };
        if since < collection.floor {
            return Err(ApiError::expired(format!("too old resource version: {since} ({})", collection.floor)));
        }
        let start = collection.history.partition_point(|c| c.version <= since);
        Ok(collection.history.range(start..).cloned().collect())
    }

    /// Whether a list that began at `version` can still be continued or watched.
    pub(crate) fn has_history_since(&self, bucket: &Bucket, version: u64) -> bool {
        self.collections.get(bucket).is_none_or(|c| version >= c.floor)
    }

    /// Told the latest version of a resource whenever it changes.
    pub(crate) fn subscribe(&mut self, bucket: &Bucket) -> watch::Receiver<u64> {
        self.collection(bucket).latest.subscribe()
    }

    /// Forgets the history of every resource, as a compaction of etcd does.
    pub(crate) fn compact(&mut self) {
        let version = self.version;
        for collection in self.collections.values_mut() {
            collection.history.clear();
            collection.floor = version;
        }
    }
}

impl Collection {
    fn record(&mut self, change: Change, limit: usize) {
        let version = change.version;
        self.history.push_back(change);
        while self.history.len() > limit {
            if let Some(old) = self.history.pop_front() {
                self.floor = old.version;
            }
        }
        self.latest.send_replace(version);
    }
}

/// The message of every optimistic-concurrency conflict.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";
