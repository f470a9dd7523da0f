//! Kinds that only a feature gate needs, each kept beside the cluster state and watched only while its gate is on.
//!
//! As with the other kinds, a list is taken in whole, an object that cannot be read leaves what was known of it, and the
//! watch goes on for ever. What is different is that nothing waits for them: without its gate a kind may not even exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{self, Config, DefaultBackoff, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::record::ObjectName;
use crate::watch::Tolerant;

/// All objects of one kind, by namespace and name. Clones share them.
#[derive(Debug)]
pub struct Mirror<R> {
    objects: Arc<Mutex<BTreeMap<ObjectName, Arc<R>>>>,
    listed: watch::Sender<bool>,
}

impl<R> Clone for Mirror<R> {
    fn clone(&self) -> Self {
        Self { objects: Arc::clone(&self.objects), listed: self.listed.clone() }
    }
}

impl<R> Default for Mirror<R> {
    fn default() -> Self {
        Self { objects: Arc::default(), listed: watch::Sender::new(false) }
    }
}

impl<R: PartialEq + Send + Sync + 'static> Mirror<R> {
    /// One object.
    pub fn get(&self, name: &ObjectName) -> Option<Arc<R>> {
        self.with(|objects| objects.get(name).cloned())
    }

    /// Every object, by namespace and name.
    pub fn all(&self) -> Vec<Arc<R>> {
        self.with(|objects| objects.values().cloned().collect())
    }

    /// Names of every object.
    pub fn names(&self) -> Vec<ObjectName> {
        self.with(|objects| objects.keys().cloned().collect())
    }

    /// Takes these for all that there are, as a list would.
    pub fn fill(&self, all: impl IntoIterator<Item = (ObjectName, R)>) {
        self.with(|objects| *objects = all.into_iter().map(|(name, object)| (name, Arc::new(object))).collect());
        self.listed.send_replace(true);
    }

    /// Waits until the kind has been listed once.
    pub async fn listed(&self) {
        // The sender lives as long as this.
        let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
    }

    /// Takes an object as just written by us, unless it is gone meanwhile.
    pub fn own(&self, name: &ObjectName, object: Arc<R>) {
        self.with(|objects| {
            if let Some(held) = objects.get_mut(name) {
                *held = object;
            }
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<ObjectName, Arc<R>>) -> T) -> T {
        look(&mut self.objects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Watches the kind until dropped, and reports the name of everything that changed or went.
    pub async fn run<K>(self, client: Client, mut read: impl FnMut(K) -> R + Send, changed: impl Fn(ObjectName) + Send)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let api: Api<Tolerant<K>> = Api::all(client);
        let mut stream = pin!(watcher(api, Config::default()));
        let (mut backoff, mut failing) = (DefaultBackoff::default(), false);
        let (mut kept, mut fresh) = (BTreeSet::new(), Vec::new());
        while let Some(event) = stream.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    let pause = backoff.next().unwrap_or(Duration::from_secs(30));
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(kind = %K::kind(&()), %error, "watch fails; trying again");
                    }
                    tokio::time::sleep(pause).await;
                    continue;
                }
            };
            if std::mem::take(&mut failing) {
                backoff = DefaultBackoff::default();
                tracing::info!(kind = %K::kind(&()), "watch works again");
            }
            match event {
                watcher::Event::Init => {
                    kept = BTreeSet::new();
                    fresh = Vec::new();
                }
                watcher::Event::InitApply(object) => {
                    let name = name_of(&object.metadata);
                    kept.insert(name.clone());
                    fresh.extend(readable(&name, object).map(|k| (name, Arc::new(read(k)))));
                }
                watcher::Event::InitDone => {
                    let gone: Vec<ObjectName> = self.names().into_iter().filter(|n| !kept.contains(n)).collect();
                    let new: Vec<ObjectName> = self.with(|objects| {
                        objects.retain(|name, _| kept.contains(name));
                        let put = fresh.drain(..).filter_map(|(name, object)| put(objects, name, object));
                        put.collect()
                    });
                    self.listed.send_replace(true);
                    gone.into_iter().chain(new).for_each(&changed);
                }
                watcher::Event::Apply(object) => {
                    let name = name_of(&object.metadata);
                    if let Some(k) = readable(&name, object) {
                        let object = Arc::new(read(k));
                        let new = self.with(|objects| put(objects, name, object));
                        new.into_iter().for_each(&changed);
                    }
                }
                watcher::Event::Delete(object) => {
                    let name = name_of(&object.metadata);
                    if self.with(|objects| objects.remove(&name)).is_some() {
                        changed(name);
                    }
                }
            }
        }
    }
}

/// Puts an object in and returns its name if that changed anything.
fn put<R: PartialEq>(
    objects: &mut BTreeMap<ObjectName, Arc<R>>,
    name: ObjectName,
    object: Arc<R>,
) -> Option<ObjectName> {
    if objects.get(&name).is_some_and(|held| *held == object) {
        return None;
    }
    objects.insert(name.clone(), object);
    Some(name)
}

fn readable<K: Resource<DynamicType = ()>>(name: &ObjectName, object: Tolerant<K>) -> Option<K> {
    object
        .object
        .map_err(|message| {
            tracing::error!(kind = %K::kind(&()), name = %name, error = %message, "an object cannot be read; what was known of it stays");
        })
        .ok()
}

fn name_of(meta: &ObjectMeta) -> ObjectName {
    ObjectName::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests;
