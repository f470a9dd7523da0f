//! CapacityBuffers in memory: the objects and the templates they name, the pods that stand for them, and what the last
//! round of provisioning made of those. Lives only while the feature gate CapacityBuffer is on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use mortise_api::CapacityBuffer;
use mortise_engine::decision::Schedule;
use mortise_engine::pod::{Pod, PodKey, PodShape};
use mortise_engine::snapshot::Snapshot;
use mortise_kube::convert::Converter;
use mortise_kube::mirror::Mirror;
use mortise_kube::objects::template::kinds::{Deployment, PodTemplate, ReplicaSet, StatefulSet};
use mortise_kube::objects::template::{Workload, WorkloadKind};
use mortise_kube::record::{ObjectName, TemplateRecord};
use tokio::task::JoinSet;

use crate::queue::Queue;

mod outcome;

pub(crate) use outcome::Outcome;

/// What a buffer keeps room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// UID of the buffer.
    pub uid: Arc<str>,
    /// What one pod needs.
    pub shape: Arc<PodShape>,
    /// Number of pods.
    pub replicas: i32,
}

/// Kinds with a pod template, by kind.
type Templates = BTreeMap<&'static str, Mirror<TemplateRecord>>;

/// Everything about CapacityBuffers.
#[derive(Default)]
pub(crate) struct Buffers {
    pub objects: Mirror<CapacityBuffer>,
    templates: Templates,
    wanted: Mutex<BTreeMap<ObjectName, Wanted>>,
    last: Mutex<Last>,
}

/// What the last round made of the buffers.
#[derive(Debug, Default)]
struct Last {
    outcomes: BTreeMap<ObjectName, Outcome>,
    /// Pods that stand for buffers, by the NodeClaim (else the Node) that has room for them.
    hosts: BTreeMap<Arc<str>, u32>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        let kinds = [PodTemplate::KIND, Deployment::KIND, ReplicaSet::KIND, StatefulSet::KIND];
        Self { templates: kinds.map(|kind| (kind, Mirror::default())).into(), ..Self::default() }
    }

    /// Watches buffers and what they name; whoever changed is put into the queue.
    pub(crate) fn watch(self: &Arc<Self>, client: &Client, queue: &Queue<ObjectName>, tasks: &mut JoinSet<()>) {
        let buffers = queue.clone();
        tasks.spawn(self.objects.clone().run(client.clone(), |b: CapacityBuffer| b, move |name| buffers.add(name)));
        self.follow::<PodTemplate>(client, queue, Converter::pod_template, tasks);
        self.follow::<Deployment>(client, queue, Converter::scalable, tasks);
        self.follow::<ReplicaSet>(client, queue, Converter::scalable, tasks);
        self.follow::<StatefulSet>(client, queue, Converter::scalable, tasks);
    }

    fn follow<K: WorkloadKind>(
        self: &Arc<Self>,
        client: &Client,
        queue: &Queue<ObjectName>,
        read: fn(&mut Converter, &Workload<K>) -> TemplateRecord,
        tasks: &mut JoinSet<()>,
    ) {
        let Some(mirror) = self.templates.get(K::KIND).cloned() else { return };
        let (own, queue, mut converter) = (Arc::clone(self), queue.clone(), Converter::default());
        let changed = move |name: ObjectName| own.naming(K::KIND, &name).into_iter().for_each(|b| queue.add(b));
        tasks.spawn(mirror.run(client.clone(), move |object: Workload<K>| read(&mut converter, &object), changed));
    }

    /// Everything has been listed once.
    pub(crate) async fn listed(&self) {
        self.objects.listed().await;
        for mirror in self.templates.values() {
            mirror.listed().await;
        }
    }

    /// A template by kind; `None` also for kinds that cannot be named.
    pub(crate) fn template(&self, kind: &str, name: &ObjectName) -> Option<Arc<TemplateRecord>> {
        self.templates.get(kind)?.get(name)
    }

    /// Buffers that name this object: those of its namespace that name its kind and name.
    fn naming(&self, kind: &str, object: &ObjectName) -> Vec<ObjectName> {
        let names = |b: &CapacityBuffer| {
            let template = b.spec.pod_template_ref.as_ref().map(|r| (PodTemplate::KIND, r.name.as_str()));
            let scalable = b.spec.scalable_ref.as_ref().map(|r| (r.kind.as_str(), r.name.as_str()));
            [template, scalable].into_iter().flatten().any(|(k, n)| k == kind && n == &*object.name)
        };
        let all = self.objects.all().into_iter().filter(|b| names(b)).map(|b| name_of(&b));
        all.filter(|buffer| buffer.namespace == object.namespace).collect()
    }

    /// Sets what a buffer keeps room for; `None` = nothing. Says whether that is news.
    pub(crate) fn want(&self, name: &ObjectName, wanted: Option<Wanted>) -> bool {
        let mut all = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        match wanted {
            Some(wanted) => all.insert(name.clone(), wanted.clone()) != Some(wanted),
            None => all.remove(name).is_some(),
        }
    }

    /// Forgets everything decided, at the beginning of a term.
    pub(crate) fn reset(&self) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Last::default();
    }

    /// Puts the pods that stand for buffers among those that wait, and their number on the nodes that had room for them.
    pub(crate) fn join(&self, snapshot: &mut Snapshot) {
        for (name, wanted) in self.wanted.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let buffer: Arc<str> = name.to_string().into();
            snapshot.pending.extend((1..=wanted.replicas).map(|n| Pod {
                key: PodKey {
                    namespace: Arc::clone(&name.namespace),
                    name: format!("capacity-buffer-{}-{n}", name.name).into(),
                    uid: format!("{}-{n}", wanted.uid).into(),
                },
                shape: Arc::clone(&wanted.shape),
                created_unix_ms: snapshot.now_unix_ms,
                buffer: Some(Arc::clone(&buffer)),
            }));
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.hosts.is_empty() {
            return;
        }
        for node in snapshot.nodes.values_mut() {
            let host = node.node_claim.as_ref().or(node.node_name.as_ref());
            if let Some(count) = host.and_then(|host| last.hosts.get(host)).copied() {
                Arc::make_mut(node).buffer_pods = count;
            }
        }
    }

    /// Keeps what a round made of the buffers, in place of what the one before did. Returns those with news.
    pub(crate) fn judged(&self, snapshot: &Snapshot, plan: &Schedule) -> Vec<ObjectName> {
        let (outcomes, hosts) = outcome::of(snapshot, plan);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeSet<&ObjectName> = outcomes.keys().chain(last.outcomes.keys()).collect();
        let news = known.into_iter().filter(|name| outcomes.get(*name) != last.outcomes.get(*name)).cloned().collect();
        *last = Last { outcomes, hosts };
        news
    }

    /// A new NodeClaim has room for so many of their pods.
    pub(crate) fn hosted(&self, claim: &str, pods: u32) {
        if pods > 0 {
            self.last.lock().unwrap_or_else(PoisonError::into_inner).hosts.insert(claim.into(), pods);
        }
    }

    /// What the last round made of a buffer.
    pub(crate) fn outcome(&self, name: &ObjectName) -> Option<Outcome> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).outcomes.get(name).copied()
    }
}

/// Namespace and name of a buffer.
pub(crate) fn name_of(buffer: &CapacityBuffer) -> ObjectName {
    let meta = &buffer.metadata;
    ObjectName::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests;
