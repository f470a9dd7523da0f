//! What comes in (the policies ConfigMap) and what goes back when it is refused.

use std::collections::BTreeMap;

/// Name of the key that holds the policy set.
pub(crate) const POLICIES_KEY: &str = "policies.yaml";

/// `data` and `binaryData` of the policies ConfigMap, the latter already decoded from base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigMapData {
    /// `data`: `policies.yaml`.
    pub data: BTreeMap<String, String>,
    /// `binaryData`: inline components, raw or gzip.
    pub binary_data: BTreeMap<String, Vec<u8>>,
}

/// One thing wrong with a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rejection {
    /// Where: a key path such as `policies.yaml: score[1].sha256`.
    pub path: String,
    /// What was found and what to do.
    pub message: String,
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
