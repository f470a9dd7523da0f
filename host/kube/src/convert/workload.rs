//! Namespaces, Services and the workloads that own pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use mortise_engine::selector::LabelSelector;

use super::{Converter, equals, label_selector};
use crate::objects::{self, Namespace, ReplicaSet, ReplicationController, Service, StatefulSet};
use crate::record::{NamespaceRecord, ServiceRecord, WorkloadRecord};

impl Converter {
    /// What is kept of a Namespace.
    pub fn namespace(&mut self, namespace: &Namespace) -> NamespaceRecord {
        NamespaceRecord {
            name: self.strings.get(namespace.metadata.name.as_deref().unwrap_or_default()),
            labels: Arc::new(self.map(namespace.metadata.labels.as_ref())),
        }
    }

    /// What is kept of a Service.
    pub fn service(&mut self, service: &Service) -> ServiceRecord {
        ServiceRecord { name: self.name(&service.metadata), selector: self.map(service.spec.selector.as_ref()) }
    }

    /// What is kept of a ReplicaSet.
    pub fn replica_set(&mut self, set: &ReplicaSet) -> WorkloadRecord {
        self.workload(&set.metadata, set.spec.selector.as_ref())
    }

    /// What is kept of a StatefulSet.
    pub fn stateful_set(&mut self, set: &StatefulSet) -> WorkloadRecord {
        self.workload(&set.metadata, set.spec.selector.as_ref())
    }

    /// What is kept of a ReplicationController.
    pub fn replication_controller(&mut self, controller: &ReplicationController) -> WorkloadRecord {
        let selector: Option<&BTreeMap<String, String>> = controller.spec.selector.as_ref();
        let selector = selector.map(|labels| LabelSelector {
            requirements: labels.iter().map(|(k, v)| equals(self.strings.get(k), self.strings.get(v))).collect(),
        });
        WorkloadRecord { name: self.name(&controller.metadata), selector }
    }

    fn workload(&mut self, meta: &ObjectMeta, selector: Option<&objects::LabelSelector>) -> WorkloadRecord {
        WorkloadRecord {
            name: self.name(meta),
            selector: selector.and_then(|from| label_selector(&mut self.strings, "spec.selector", from).ok()),
        }
    }
}
