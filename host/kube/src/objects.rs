//! Narrow copies of Kubernetes objects: only the fields that are used are decoded, the rest is skipped in the text.
//!
//! A Pod of 6 KB with its managed fields costs a few microseconds this way, a tenth of decoding it whole. Every field is
//! optional and an unexpected `null` counts as absent, so that one odd object never ends a watch.

mod daemonset;
mod meta;
mod node;
mod pdb;
mod pod;
mod resource;
pub mod template;
mod volume;
mod workload;

pub use daemonset::{DaemonSet, DaemonSetSpec, PodTemplate};
pub use meta::{DEFAULT_CLASS, kept_annotation};
pub use node::{Condition, Node, NodeInfo, NodeSpec, NodeStatus, Taint};
pub use pdb::{Expression, LabelSelector, Pdb, PdbSpec, PdbStatus};
pub use pod::{
    ActualResources, Affinity, ClaimTemplate, Container, ContainerPort, ContainerStatus, EphemeralVolume, NodeAffinity,
    NodeSelector, NodeSelectorTerm, Pod, PodAffinity, PodAffinityTerm, PodSpec, PodStatus, PreferredTerm, PvcVolume,
    ResourceList, ResourceNeeds, SpreadConstraint, Toleration, Volume, WeightedPodAffinityTerm,
};
pub use volume::{
    CsiDriver, CsiNode, CsiNodeSpec, CsiSource, PersistentVolume, PersistentVolumeClaim, PvSpec, PvcSpec, PvcStatus,
    StorageClass, TopologyExpression, TopologyTerm, VolumeAffinity, VolumeCount,
};
pub use workload::{EqualitySpec, Namespace, ReplicaSet, ReplicationController, Service, StatefulSet, WorkloadSpec};

use serde::de::{Deserialize, Deserializer};

/// A number or text where Kubernetes allows either (quantities, budgets), as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scalar(pub String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Scalar;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text or a number")
            }
            fn visit_str<E>(self, v: &str) -> Result<Scalar, E> {
                Ok(Scalar(v.to_owned()))
            }
            fn visit_string<E>(self, v: String) -> Result<Scalar, E> {
                Ok(Scalar(v))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Scalar, E> {
                Ok(Scalar(v.to_string()))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Scalar, E> {
                Ok(Scalar(v.to_string()))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Scalar, E> {
                Ok(Scalar(v.to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// `null` as the default value.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
