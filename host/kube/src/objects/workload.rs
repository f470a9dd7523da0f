//! Namespaces, and what default topology spread looks at: Services and the owners of pods.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{LabelSelector, nullable};

/// A Namespace: only its labels matter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
}

/// `spec` of an object that selects pods by equality of labels.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EqualitySpec {
    /// Labels that the pods have; `None` and empty select none.
    pub selector: Option<BTreeMap<String, String>>,
}

/// `spec` of a workload that selects pods by a label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkloadSpec {
    /// Which pods are its own.
    pub selector: Option<LabelSelector>,
}

macro_rules! selecting {
    ($($(#[$doc:meta])* $name:ident: $spec:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default)]
        pub struct $name {
            /// Metadata, without managed fields.
            #[serde(deserialize_with = "super::meta::narrow")]
            pub metadata: ObjectMeta,
            /// Specification.
            #[serde(deserialize_with = "nullable")]
            pub spec: $spec,
        }
    )+};
}

selecting! {
    /// A Service.
    Service: EqualitySpec;
    /// A ReplicationController.
    ReplicationController: EqualitySpec;
    /// A ReplicaSet.
    ReplicaSet: WorkloadSpec;
    /// A StatefulSet.
    StatefulSet: WorkloadSpec;
}
