//! What has a pod template: PodTemplates, and workloads that can be scaled.

use std::borrow::Cow;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use super::{PodTemplate, nullable};

/// Names one kind that has a pod template.
pub trait WorkloadKind: Clone + std::fmt::Debug + Default + Send + Sync + 'static {
    /// Group; empty = core.
    const GROUP: &'static str;
    /// Kind.
    const KIND: &'static str;
    /// Name of the kind in paths.
    const PLURAL: &'static str;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $group:literal, $plural:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl WorkloadKind for $name {
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($name);
            const PLURAL: &'static str = $plural;
        }
    )*};
}

/// The kinds.
pub mod kinds {
    use super::WorkloadKind;

    kinds! {
        /// core/v1 PodTemplate.
        PodTemplate, "", "podtemplates";
        /// apps/v1 Deployment.
        Deployment, "apps", "deployments";
        /// apps/v1 ReplicaSet.
        ReplicaSet, "apps", "replicasets";
        /// apps/v1 StatefulSet.
        StatefulSet, "apps", "statefulsets";
    }
}

/// An object with a pod template; a PodTemplate has it beside its metadata, the others in their spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Workload<K> {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// `template` of a PodTemplate.
    #[serde(deserialize_with = "nullable")]
    pub template: PodTemplate,
    /// `spec` of a workload.
    #[serde(deserialize_with = "nullable")]
    pub spec: ScalableSpec,
    #[serde(skip)]
    kind: PhantomData<K>,
}

/// `spec` of a workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalableSpec {
    /// Number of pods; absent counts as 1.
    pub replicas: Option<i32>,
    /// Its pods.
    #[serde(deserialize_with = "nullable")]
    pub template: PodTemplate,
}

impl<K: WorkloadKind> Resource for Workload<K> {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;
    fn kind((): &()) -> Cow<'_, str> {
        K::KIND.into()
    }
    fn group((): &()) -> Cow<'_, str> {
        K::GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        K::PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
