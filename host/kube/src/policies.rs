//! The policy ConfigMap as data, and the writer of its status ConfigMap. What the data means is the policy host's business.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};

use crate::record::PolicyData;
use crate::status::{WriteError, retry};

/// What is kept of the ConfigMap.
pub fn data(map: &ConfigMap) -> PolicyData {
    PolicyData {
        uid: Arc::from(map.metadata.uid.as_deref().unwrap_or_default()),
        resource_version: Arc::from(map.metadata.resource_version.as_deref().unwrap_or_default()),
        data: map.data.clone().unwrap_or_default(),
        binary_data: map.binary_data.iter().flatten().map(|(k, v)| (k.clone(), v.0.clone())).collect(),
    }
}

/// Writes the status ConfigMap, and only when something in it changes.
pub struct StatusWriter {
    api: Api<ConfigMap>,
    namespace: String,
    name: String,
    written: Option<BTreeMap<String, String>>,
}

impl StatusWriter {
    /// For the ConfigMap of this name.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            written: None,
        }
    }

    /// Makes the ConfigMap hold `data`, creating it when there is none. Keys of earlier writes that are not in `data`
    /// are removed. Returns whether a write was needed.
    ///
    /// # Errors
    /// The API server refused, or could not be reached after several attempts.
    pub async fn write(&mut self, data: BTreeMap<String, String>) -> Result<bool, WriteError> {
        if self.written.as_ref() == Some(&data) {
            return Ok(false);
        }
        let mut patch_data: BTreeMap<&str, Option<&str>> =
            self.written.iter().flatten().map(|(k, _)| (k.as_str(), None)).collect();
        patch_data.extend(data.iter().map(|(k, v)| (k.as_str(), Some(v.as_str()))));
        let patch = serde_json::json!({ "data": patch_data });
        let fresh = ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                labels: Some(
                    [("app.kubernetes.io/managed-by", "mortise"), ("app.kubernetes.io/component", "policies")]
                        .map(|(k, v)| (k.to_owned(), v.to_owned()))
                        .into(),
                ),
                ..ObjectMeta::default()
            },
            data: Some(data.clone()),
            ..ConfigMap::default()
        };
        retry(|| async {
            match self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    self.api.create(&PostParams::default(), &fresh).await
                }
                other => other,
            }
        })
        .await?;
        self.written = Some(data);
        Ok(true)
    }
}
