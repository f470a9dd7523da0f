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
        if self.written.is_none() {
            // What an earlier process left there.
            let found = retry(|| self.api.get_opt(&self.name)).await?;
            self.written = found.map(|map| map.data.unwrap_or_default());
        }
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn the_status_holds_exactly_what_was_written_last() {
        let stored: Arc<Mutex<Option<Value>>> = Arc::default();
        let writes: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (store, log) = (Arc::clone(&stored), Arc::clone(&writes));
        let client = testing::client(move |method, _path, body| {
            let mut stored = store.lock().unwrap();
            let answer = match (method.as_str(), stored.as_mut()) {
                ("POST", None) => {
                    *stored = Some(body.clone());
                    log.lock().unwrap().push(body.clone());
                    testing::answer(201, &body)
                }
                ("GET", Some(map)) => testing::answer(200, map),
                ("PATCH", Some(map)) => {
                    for (key, value) in body["data"].as_object().unwrap() {
                        match value {
                            Value::Null => drop(map["data"].as_object_mut().unwrap().remove(key)),
                            text => map["data"][key] = text.clone(),
                        }
                    }
                    log.lock().unwrap().push(body);
                    testing::answer(200, map)
                }
                _ => testing::status(404, "NotFound", "none"),
            };
            async move { answer }
        });
        let data = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let mut writer = StatusWriter::new(client.clone(), "karpenter", "policies-status");
        assert!(writer.write(data(&[("a", "1"), ("b", "1")])).await.unwrap());
        assert!(!writer.write(data(&[("a", "1"), ("b", "1")])).await.unwrap());
        assert!(writer.write(data(&[("a", "2")])).await.unwrap());
        assert_eq!(stored.lock().unwrap().as_ref().unwrap()["data"], json!({"a": "2"}));
        // Another process finds what is there: nothing to write, then only what differs.
        let mut next = StatusWriter::new(client, "karpenter", "policies-status");
        assert!(!next.write(data(&[("a", "2")])).await.unwrap());
        assert!(next.write(data(&[("c", "3")])).await.unwrap());
        assert_eq!(stored.lock().unwrap().as_ref().unwrap()["data"], json!({"c": "3"}));
        assert_eq!(writes.lock().unwrap().len(), 3);
    }
}
