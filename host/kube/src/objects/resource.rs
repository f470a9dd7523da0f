//! [`kube::Resource`] for the narrow types, so that `Api` and `watcher` take them.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ClusterResourceScope, NamespaceResourceScope};

use super::{
    CsiNode, DaemonSet, Namespace, Node, Pdb, PersistentVolume, PersistentVolumeClaim, Pod, ReplicaSet,
    ReplicationController, Service, StatefulSet, StorageClass,
};

macro_rules! resource {
    ($($type:ty: $group:literal, $version:literal, $kind:literal, $plural:literal, $scope:ty;)+) => {$(
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;
            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }
            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    )+};
}

resource! {
    Pod: "", "v1", "Pod", "pods", NamespaceResourceScope;
    Node: "", "v1", "Node", "nodes", ClusterResourceScope;
    DaemonSet: "apps", "v1", "DaemonSet", "daemonsets", NamespaceResourceScope;
    Pdb: "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", NamespaceResourceScope;
    PersistentVolume: "", "v1", "PersistentVolume", "persistentvolumes", ClusterResourceScope;
    PersistentVolumeClaim: "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", NamespaceResourceScope;
    StorageClass: "storage.k8s.io", "v1", "StorageClass", "storageclasses", ClusterResourceScope;
    CsiNode: "storage.k8s.io", "v1", "CSINode", "csinodes", ClusterResourceScope;
    Namespace: "", "v1", "Namespace", "namespaces", ClusterResourceScope;
    Service: "", "v1", "Service", "services", NamespaceResourceScope;
    ReplicationController: "", "v1", "ReplicationController", "replicationcontrollers", NamespaceResourceScope;
    ReplicaSet: "apps", "v1", "ReplicaSet", "replicasets", NamespaceResourceScope;
    StatefulSet: "apps", "v1", "StatefulSet", "statefulsets", NamespaceResourceScope;
}
