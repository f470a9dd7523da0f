//! `metadata`, without managed fields and without annotations that nobody reads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::nullable;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    #[serde(deserialize_with = "nullable")]
    annotations: Annotations,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Default)]
struct Annotations(BTreeMap<String, String>);

/// Annotations that make a StorageClass the default one, today's first.
pub const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Whether an annotation is kept: those of our own and Karpenter's domains, KWOK's, and the few of Kubernetes that matter.
pub fn kept_annotation(key: &str) -> bool {
    let domain = key.split('/').next().unwrap_or_default();
    let ours = |d: &str| domain == d || domain.strip_suffix(d).is_some_and(|rest| rest.ends_with('.'));
    ours("karpenter.sh")
        || ours("karpenter.k8s.aws")
        || ours("mortise.dev")
        || ours("kwok.x-k8s.io")
        || key == mortise_api::annotations::POD_DELETION_COST
        || key == "pv.kubernetes.io/bind-completed"
        || DEFAULT_CLASS.contains(&key)
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Annotations;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
                let mut kept = BTreeMap::new();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    if kept_annotation(&key) {
                        kept.insert(key.into_owned(), map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Annotations(kept))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// Decodes `metadata` narrowly.
pub(super) fn narrow<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = Option::<Meta>::deserialize(deserializer)?.unwrap_or_default();
    Ok(ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        generation: meta.generation,
        creation_timestamp: meta.creation_timestamp,
        deletion_timestamp: meta.deletion_timestamp,
        labels: meta.labels,
        annotations: (!meta.annotations.0.is_empty()).then_some(meta.annotations.0),
        finalizers: meta.finalizers,
        owner_references: meta.owner_references,
        ..ObjectMeta::default()
    })
}
