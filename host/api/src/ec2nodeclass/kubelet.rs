//! The kubelet settings that the controller itself understands. All others go to the kubelet as they are.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The settings that change what a node offers or how it is bootstrapped.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedKubelet {
    /// DNS servers of pods.
    #[serde(rename = "clusterDNS")]
    pub cluster_dns: Vec<String>,
    /// Most pods that the node runs.
    pub max_pods: Option<MaxPods>,
    /// Most pods per vCPU.
    pub pods_per_core: Option<i32>,
    /// Reserved for the system, by resource name: quantity or expression.
    pub system_reserved: BTreeMap<String, String>,
    /// Reserved for Kubernetes, by resource name: quantity or expression.
    pub kube_reserved: BTreeMap<String, String>,
    /// Thresholds at which pods are evicted at once: percentage or quantity, by signal.
    pub eviction_hard: BTreeMap<String, String>,
    /// Thresholds at which pods are evicted after a grace period.
    pub eviction_soft: BTreeMap<String, String>,
    /// The grace periods of `evictionSoft`.
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// Longest grace of a pod evicted by a soft threshold, seconds.
    pub eviction_max_pod_grace_period: Option<i32>,
    /// Disk use at which images are always collected, percent.
    #[serde(rename = "imageGCHighThresholdPercent")]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// Disk use down to which images are collected, percent.
    #[serde(rename = "imageGCLowThresholdPercent")]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether CPU limits are enforced by quota.
    #[serde(rename = "cpuCFSQuota")]
    pub cpu_cfs_quota: Option<bool>,
}

/// `maxPods`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum MaxPods {
    /// A number.
    Count(i64),
    /// A CEL expression. Any text is one, even a quoted number.
    Expression(String),
}

impl ManagedKubelet {
    /// Names of these settings in the object. Families other than AL2023 and Custom take no others.
    pub const FIELDS: &'static [&'static str] = &[
        "clusterDNS",
        "cpuCFSQuota",
        "evictionHard",
        "evictionMaxPodGracePeriod",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "kubeReserved",
        "maxPods",
        "podsPerCore",
        "systemReserved",
    ];

    /// Reads them from `spec.kubelet`.
    ///
    /// # Errors
    /// When one has the wrong type, which validation reports field by field.
    pub fn read(kubelet: &BTreeMap<String, Value>) -> Result<Self, serde_json::Error> {
        let managed = kubelet.iter().filter(|(key, _)| Self::FIELDS.contains(&key.as_str()));
        serde_json::from_value(Value::Object(managed.map(|(key, value)| (key.clone(), value.clone())).collect()))
    }
}
