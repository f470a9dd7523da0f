//! One watch: kube's watcher with back-off, records made on arrival, lists gathered whole.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{self, Config, DefaultBackoff, watcher};
use kube::{Api, Client, Resource};
use mortise_api::{EC2NodeClass, NodeClaim, NodePool};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::tolerant::Tolerant;
use super::{Delta, Event, Kind, Options};
use crate::convert::Converter;
use crate::record::ObjectName;

/// Terminal pods use nothing, so they are not even sent; one that becomes terminal arrives as deleted.
const LIVE_PODS: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Pause of the Pod watch once it has read all there is. Bursts then come in large pieces: a wake-up, a read and a round
/// through the channel for each of a thousand pods cost more than decoding them. Far below the batch window of 1 s.
const PACE: Duration = Duration::from_millis(10);

type Again = watch::Receiver<u64>;

/// Starts the watch of one kind.
pub(super) fn spawn(
    kind: Kind,
    client: &Client,
    options: &Options,
    events: mpsc::Sender<Event>,
    again: Again,
    tasks: &mut JoinSet<()>,
) {
    let config = Config::default().page_size(options.page_size);
    let mut converter = Converter::default();
    macro_rules! narrow {
        ($event:path, $method:ident) => {
            narrow!($event, $method, config)
        };
        ($event:path, $method:ident, $config:expr) => {{
            let read = move |object: &_| Ok(converter.$method(object));
            tasks.spawn(run(kind, Api::all(client.clone()), $config, events, again, read, $event));
        }};
    }
    macro_rules! custom {
        ($event:path, $type:ty, $method:ident) => {{
            let read = move |object: &Tolerant<$type>| match &object.object {
                Ok(k) => Ok(converter.$method(k.clone())),
                Err(message) => Err(Arc::clone(message)),
            };
            tasks.spawn(run(kind, Api::<Tolerant<$type>>::all(client.clone()), config, events, again, read, $event));
        }};
    }
    macro_rules! workload {
        ($event:path, $method:ident) => {
            if options.workloads { narrow!($event, $method) } else { unwatched(events, $event, tasks) }
        };
    }
    match kind {
        Kind::Pod => narrow!(Event::Pod, pod, config.fields(LIVE_PODS)),
        Kind::Node => narrow!(Event::Node, node),
        Kind::DaemonSet => narrow!(Event::DaemonSet, daemonset),
        Kind::Pdb => narrow!(Event::Pdb, pdb),
        Kind::Pvc => narrow!(Event::Pvc, pvc),
        Kind::Pv => narrow!(Event::Pv, pv),
        Kind::StorageClass => narrow!(Event::StorageClass, storage_class),
        Kind::CsiNode => narrow!(Event::CsiNode, csi_node),
        Kind::Namespace => narrow!(Event::Namespace, namespace),
        Kind::Service => workload!(Event::Service, service),
        Kind::ReplicaSet => workload!(Event::ReplicaSet, replica_set),
        Kind::StatefulSet => workload!(Event::StatefulSet, stateful_set),
        Kind::ReplicationController => workload!(Event::ReplicationController, replication_controller),
        Kind::NodePool => custom!(Event::NodePool, NodePool, nodepool_object),
        Kind::NodeClaim => custom!(Event::NodeClaim, NodeClaim, nodeclaim_object),
        Kind::NodeClass => custom!(Event::NodeClass, EC2NodeClass, node_class_object),
        Kind::Policies => match &options.policies {
            Some((namespace, name)) => {
                let config = config.fields(&format!("metadata.name={name}"));
                let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
                let read = |object: &ConfigMap| Ok(crate::policies::data(object));
                tasks.spawn(run(kind, api, config, events, again, read, Event::Policies));
            }
            None => unwatched(events, Event::Policies, tasks),
        },
    }
}

/// A kind that is not watched counts as listed and empty.
fn unwatched<R: Send + Sync + 'static>(
    events: mpsc::Sender<Event>,
    wrap: fn(Delta<R>) -> Event,
    tasks: &mut JoinSet<()>,
) {
    tasks.spawn(async move {
        // A closed channel means that nobody listens any more.
        let _ = events.send(wrap(Delta::replaced([]))).await;
    });
}

/// Watches one kind until the reader is gone.
async fn run<K, R>(
    kind: Kind,
    api: Api<K>,
    config: Config,
    events: mpsc::Sender<Event>,
    mut again: Again,
    mut read: impl FnMut(&K) -> Result<R, Arc<str>> + Send,
    wrap: fn(Delta<R>) -> Event,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    R: Send + Sync,
{
    loop {
        again.mark_unchanged();
        let stream = pin!(watcher(api.clone(), config.clone()));
        match follow(kind, stream, &events, &mut again, &mut read, wrap).await {
            Stop::Relist => {}
            Stop::Closed => return,
        }
    }
}

enum Stop {
    /// A new list was asked for.
    Relist,
    /// Nobody reads the events any more.
    Closed,
}

/// Follows one stream of kube's watcher.
async fn follow<K, R>(
    kind: Kind,
    mut stream: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Unpin + Send,
    events: &mpsc::Sender<Event>,
    again: &mut Again,
    read: &mut (impl FnMut(&K) -> Result<R, Arc<str>> + Send),
    wrap: fn(Delta<R>) -> Event,
) -> Stop
where
    K: Resource<DynamicType = ()>,
{
    let mut backoff = DefaultBackoff::default();
    let mut listed: Vec<Arc<R>> = Vec::new();
    let mut undecodable: Vec<(ObjectName, Arc<str>)> = Vec::new();
    let mut failing = false;
    let mut read_ahead = None;
    loop {
        let next = match read_ahead.take() {
            Some(next) => next,
            None => tokio::select! {
                next = stream.next() => next,
                changed = again.changed() => return if changed.is_ok() { Stop::Relist } else { Stop::Closed },
                () = events.closed() => return Stop::Closed,
            },
        };
        let delta = match next {
            None => return Stop::Relist,
            Some(Ok(event)) => {
                if failing {
                    failing = false;
                    tracing::info!(kind = kind.name(), "watch works again");
                }
                match event {
                    watcher::Event::Init => {
                        listed.clear();
                        undecodable.clear();
                        continue;
                    }
                    watcher::Event::InitApply(object) => {
                        match read(&object) {
                            Ok(record) => listed.push(Arc::new(record)),
                            Err(message) => undecodable.push((name_of(object.meta()), message)),
                        }
                        continue;
                    }
                    watcher::Event::InitDone => Delta::Replaced {
                        objects: std::mem::take(&mut listed),
                        undecodable: std::mem::take(&mut undecodable),
                    },
                    watcher::Event::Apply(object) => match read(&object) {
                        Ok(record) => Delta::Applied(Arc::new(record)),
                        Err(message) => Delta::Undecodable { name: name_of(object.meta()), message },
                    },
                    watcher::Event::Delete(object) => Delta::Deleted(name_of(object.meta())),
                }
            }
            Some(Err(error)) => {
                let pause = backoff.next().unwrap_or(Duration::from_secs(30));
                if failing {
                    tracing::debug!(kind = kind.name(), %error, ?pause, "watch still fails");
                } else {
                    failing = true;
                    tracing::warn!(kind = kind.name(), %error, ?pause, "watch fails; trying again");
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = events.closed() => return Stop::Closed,
                }
                continue;
            }
        };
        if events.send(wrap(delta)).await.is_err() {
            return Stop::Closed;
        }
        if kind == Kind::Pod {
            read_ahead = stream.next().now_or_never();
            if read_ahead.is_none() {
                tokio::time::sleep(PACE).await;
            }
        }
    }
}

fn name_of(meta: &ObjectMeta) -> ObjectName {
    ObjectName::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}
