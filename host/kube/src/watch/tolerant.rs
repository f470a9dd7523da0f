//! Objects whose content may not be readable: one odd object must not end the watch of its kind.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// An object of a custom kind that may not be readable: then only its name is known.
#[derive(Clone, Debug)]
pub(crate) struct Tolerant<K> {
    pub(crate) metadata: ObjectMeta,
    pub(crate) object: Result<K, Arc<str>>,
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Tolerant<K> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let metadata = value.get("metadata").and_then(|m| ObjectMeta::deserialize(m).ok()).unwrap_or_default();
        let object = serde_json::from_value::<K>(value).map_err(|error| Arc::from(error.to_string()));
        Ok(Self { metadata, object })
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Tolerant<K> {
    type DynamicType = ();
    type Scope = K::Scope;
    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        K::kind(&())
    }
    fn group((): &()) -> std::borrow::Cow<'_, str> {
        K::group(&())
    }
    fn version((): &()) -> std::borrow::Cow<'_, str> {
        K::version(&())
    }
    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        K::plural(&())
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
