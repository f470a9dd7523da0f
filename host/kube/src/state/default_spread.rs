//! Default topology spread: constraints of the cluster for pods that have none of their own (karpenter-algorithms §3.14).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mortise_engine::pod::Spread;
use mortise_engine::requirement::Requirement;
use mortise_engine::selector::LabelSelector;

use super::{Change, ClusterState};
use crate::convert::equals;
use crate::record::{Map, ObjectName, Owner, PodRecord, ServiceRecord, WorkloadRecord};
use crate::watch::{Delta, Kind};

type Workloads = BTreeMap<ObjectName, Arc<WorkloadRecord>>;

/// The constraints, and what tells the pods that are spread together.
#[derive(Debug, Default)]
pub(super) struct DefaultSpread {
    constraints: Vec<Spread>,
    services: BTreeMap<ObjectName, Arc<ServiceRecord>>,
    replica_sets: Workloads,
    stateful_sets: Workloads,
    replication_controllers: Workloads,
    /// What changed since nodes were last built.
    changed: Changed,
}

/// Pods whose defaults may be others now.
#[derive(Debug, Default)]
pub(super) struct Changed {
    namespaces: BTreeSet<Arc<str>>,
    owners: BTreeSet<(Kind, ObjectName)>,
}

impl Changed {
    pub(super) fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.owners.is_empty()
    }

    pub(super) fn concerns(&self, pod: &PodRecord) -> bool {
        let owner = |kind: Kind, name: &Arc<str>| {
            let name = ObjectName { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
            self.owners.contains(&(kind, name))
        };
        self.namespaces.contains(&pod.key.namespace)
            || match &pod.owner {
                Owner::ReplicaSet(name) => owner(Kind::ReplicaSet, name),
                Owner::StatefulSet(name) => owner(Kind::StatefulSet, name),
                Owner::ReplicationController(name) => owner(Kind::ReplicationController, name),
                Owner::Other | Owner::DaemonSet(_) | Owner::Node => false,
            }
    }
}

impl DefaultSpread {
    /// Whether a pod takes the defaults, if it turns out that there is anything it is spread with.
    pub(super) fn applies(&self, pod: &PodRecord) -> bool {
        !self.constraints.is_empty()
            && pod.shape.spread.is_empty()
            && !matches!(pod.owner, Owner::DaemonSet(_) | Owner::Node)
    }

    /// The constraints for a pod, with the selector of its Services and its owner; none without a selector.
    pub(super) fn constraints(&self, namespace: &Arc<str>, owner: &Owner, labels: &Map) -> Vec<Spread> {
        let requirements = self.selector(namespace, owner, labels);
        if requirements.is_empty() {
            return Vec::new();
        }
        let selector = LabelSelector { requirements };
        self.constraints.iter().map(|c| Spread { selector: Some(selector.clone()), ..c.clone() }).collect()
    }

    fn selector(&self, namespace: &Arc<str>, owner: &Owner, labels: &Map) -> Vec<Requirement> {
        let first = ObjectName { namespace: Arc::clone(namespace), name: Arc::from("") };
        let mut equal: BTreeMap<&Arc<str>, &Arc<str>> = BTreeMap::new();
        for (name, service) in self.services.range(first..) {
            if name.namespace != *namespace {
                break;
            }
            let selects =
                !service.selector.is_empty() && service.selector.iter().all(|(k, v)| labels.get(k) == Some(v));
            if selects {
                equal.extend(&service.selector);
            }
        }
        let find = |workloads: &Workloads, name: &Arc<str>| {
            let name = ObjectName { namespace: Arc::clone(namespace), name: Arc::clone(name) };
            workloads.get(&name).and_then(|workload| workload.selector.clone())
        };
        let own = match owner {
            Owner::ReplicaSet(name) => find(&self.replica_sets, name),
            Owner::StatefulSet(name) => find(&self.stateful_sets, name),
            Owner::ReplicationController(name) => find(&self.replication_controllers, name),
            Owner::Other | Owner::DaemonSet(_) | Owner::Node => None,
        };
        let mut requirements: Vec<Requirement> =
            equal.into_iter().map(|(k, v)| equals(Arc::clone(k), Arc::clone(v))).collect();
        for requirement in own.into_iter().flat_map(|selector| selector.requirements) {
            if !requirements.contains(&requirement) {
                requirements.push(requirement);
            }
        }
        requirements
    }

    fn workloads(&mut self, kind: Kind) -> &mut Workloads {
        match kind {
            Kind::ReplicaSet => &mut self.replica_sets,
            Kind::StatefulSet => &mut self.stateful_sets,
            _ => &mut self.replication_controllers,
        }
    }

    pub(super) fn take_changed(&mut self) -> Changed {
        let changed = std::mem::take(&mut self.changed);
        if self.constraints.is_empty() { Changed::default() } else { changed }
    }
}

impl ClusterState {
    /// Sets the default constraints; their selectors are filled in by pod. None from the start.
    pub fn set_default_spread(&mut self, constraints: Vec<Spread>) {
        self.default_spread.constraints = constraints;
        for slot in self.slots.iter_mut() {
            slot.built = None;
        }
    }

    pub(super) fn apply_services(&mut self, delta: Delta<ServiceRecord>, out: &mut Vec<Change>) {
        let name = |service: &ServiceRecord| service.name.clone();
        let changed =
            self.keyed(Kind::Service, delta, |s| &mut s.default_spread.services, name, PartialEq::eq, |n| n, out);
        self.default_spread.changed.namespaces.extend(changed.into_iter().map(|n| n.namespace));
    }

    pub(super) fn apply_workloads(&mut self, kind: Kind, delta: Delta<WorkloadRecord>, out: &mut Vec<Change>) {
        let name = |workload: &WorkloadRecord| workload.name.clone();
        let changed = self.keyed(kind, delta, |s| s.default_spread.workloads(kind), name, PartialEq::eq, |n| n, out);
        self.default_spread.changed.owners.extend(changed.into_iter().map(|name| (kind, name)));
    }
}
