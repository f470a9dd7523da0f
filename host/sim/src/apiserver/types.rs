//! The built-in kinds as Rust types: what does not fit them is refused, fields that they do not know are dropped, and
//! OpenAPI documents are made from them.

use k8s_openapi::api;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

/// What the type of one built-in kind can do.
#[derive(Clone, Copy)]
pub(crate) struct Typed {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    /// Reads into the type and writes back.
    pub(crate) normalise: fn(&Value) -> Result<Value, serde_json::Error>,
    /// Its schema.
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

fn normalise<T: serde::de::DeserializeOwned + serde::Serialize>(value: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde::Deserialize::deserialize(value).map(|typed: T| typed)?)
}

fn schema<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

macro_rules! kinds {
    ($($group:literal $kind:literal $type:path,)*) => {
        const KINDS: &[Typed] = &[$(Typed { group: $group, kind: $kind, normalise: normalise::<$type>, schema: schema::<$type> },)*];
    };
}

kinds! {
    "" "Binding" api::core::v1::Binding,
    "" "ConfigMap" api::core::v1::ConfigMap,
    "" "Endpoints" api::core::v1::Endpoints,
    "" "Event" api::core::v1::Event,
    "" "LimitRange" api::core::v1::LimitRange,
    "" "Namespace" api::core::v1::Namespace,
    "" "Node" api::core::v1::Node,
    "" "PersistentVolumeClaim" api::core::v1::PersistentVolumeClaim,
    "" "PersistentVolume" api::core::v1::PersistentVolume,
    "" "Pod" api::core::v1::Pod,
    "" "PodTemplate" api::core::v1::PodTemplate,
    "" "ReplicationController" api::core::v1::ReplicationController,
    "" "ResourceQuota" api::core::v1::ResourceQuota,
    "" "Secret" api::core::v1::Secret,
    "" "ServiceAccount" api::core::v1::ServiceAccount,
    "" "Service" api::core::v1::Service,
    "apps" "ControllerRevision" api::apps::v1::ControllerRevision,
    "apps" "DaemonSet" api::apps::v1::DaemonSet,
    "apps" "Deployment" api::apps::v1::Deployment,
    "apps" "ReplicaSet" api::apps::v1::ReplicaSet,
    "apps" "StatefulSet" api::apps::v1::StatefulSet,
    "autoscaling" "HorizontalPodAutoscaler" api::autoscaling::v2::HorizontalPodAutoscaler,
    "batch" "CronJob" api::batch::v1::CronJob,
    "batch" "Job" api::batch::v1::Job,
    "coordination.k8s.io" "Lease" api::coordination::v1::Lease,
    "discovery.k8s.io" "EndpointSlice" api::discovery::v1::EndpointSlice,
    "events.k8s.io" "Event" api::events::v1::Event,
    "networking.k8s.io" "Ingress" api::networking::v1::Ingress,
    "networking.k8s.io" "NetworkPolicy" api::networking::v1::NetworkPolicy,
    "policy" "PodDisruptionBudget" api::policy::v1::PodDisruptionBudget,
    "rbac.authorization.k8s.io" "ClusterRoleBinding" api::rbac::v1::ClusterRoleBinding,
    "rbac.authorization.k8s.io" "ClusterRole" api::rbac::v1::ClusterRole,
    "rbac.authorization.k8s.io" "RoleBinding" api::rbac::v1::RoleBinding,
    "rbac.authorization.k8s.io" "Role" api::rbac::v1::Role,
    "scheduling.k8s.io" "PriorityClass" api::scheduling::v1::PriorityClass,
    "storage.k8s.io" "CSIDriver" api::storage::v1::CSIDriver,
    "storage.k8s.io" "CSINode" api::storage::v1::CSINode,
    "storage.k8s.io" "StorageClass" api::storage::v1::StorageClass,
    "storage.k8s.io" "VolumeAttachment" api::storage::v1::VolumeAttachment,
}

/// The type of a built-in kind.
pub(crate) fn typed(group: &str, kind: &str) -> Option<&'static Typed> {
    KINDS.iter().find(|t| t.group == group && t.kind == kind)
}

/// Quantities may be written as numbers; the types want text.
pub(crate) fn quantities_to_text(value: &mut Value) {
    const MAPS: &[&str] = &[
        "requests",
        "limits",
        "capacity",
        "allocatable",
        "overhead",
        "hard",
        "used",
        "min",
        "max",
        "default",
        "defaultRequest",
    ];
    match value {
        Value::Object(fields) => {
            for (name, child) in fields.iter_mut() {
                if MAPS.contains(&name.as_str())
                    && let Value::Object(amounts) = child
                {
                    for amount in amounts.values_mut() {
                        if let Value::Number(number) = amount {
                            *amount = Value::String(number.to_string());
                        }
                    }
                }
                quantities_to_text(child);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(quantities_to_text),
        _ => {}
    }
}

/// Paths that are in `sent` and not in `kept`.
pub(crate) fn dropped(sent: &Value, kept: &Value) -> Vec<String> {
    let mut out = Vec::new();
    collect(sent, kept, "", &mut out);
    out
}

fn collect(sent: &Value, kept: &Value, path: &str, out: &mut Vec<String>) {
    match (sent, kept) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a.iter().filter(|(_, v)| !v.is_null()) {
                let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match b.get(name) {
                    Some(other) => collect(value, other, &at, out),
                    None => out.push(at),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for (at, (x, y)) in a.iter().zip(b).enumerate() {
                collect(x, y, &format!("{path}[{at}]"), out);
            }
        }
        _ => {}
    }
}
