//! Taints: the type as written in NodePools and NodeClaims, and the taints that the controller itself sets or ignores.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::open_enum::open_enum;

/// `karpenter.sh/disrupted:NoSchedule`: the node is being disrupted or drained.
pub const DISRUPTED: &str = "karpenter.sh/disrupted";
/// `karpenter.sh/unregistered:NoExecute`: set by the bootstrap, removed at registration.
pub const UNREGISTERED: &str = "karpenter.sh/unregistered";
/// `karpenter.sh/rebooting:NoSchedule`: set before the drain of a reboot.
pub const REBOOTING: &str = "karpenter.sh/rebooting";

/// Taints that go away by themselves while a node starts, as (key, effect); they do not count against a pod as long
/// as the node is not initialized.
pub const EPHEMERAL: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoSchedule"),
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    (UNREGISTERED, "NoExecute"),
];
/// Keys with this prefix are ephemeral too.
pub const EPHEMERAL_PREFIX: &str = "readiness.k8s.io/";

/// Whether a taint goes away by itself while a node starts. The value does not matter.
pub fn is_ephemeral(key: &str, effect: &str) -> bool {
    key.starts_with(EPHEMERAL_PREFIX) || EPHEMERAL.contains(&(key, effect))
}

open_enum! {
    /// Effect of a taint.
    pub enum Effect {
        /// New pods are kept away.
        NoSchedule = "NoSchedule",
        /// New pods are kept away if possible.
        PreferNoSchedule = "PreferNoSchedule",
        /// New pods are kept away and running ones evicted.
        NoExecute = "NoExecute",
    }
}

/// Keeps pods without a matching toleration off the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Taint key.
    #[schemars(length(min = 1), regex(pattern = crate::crd::LABEL_KEY))]
    pub key: String,
    /// Taint value, may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::crd::LABEL_KEY))]
    pub value: Option<String>,
    /// What happens to pods that do not tolerate the taint.
    pub effect: Effect,
    /// When the taint was added. Set by Kubernetes on a Node; it has no effect in a template.
    #[serde(default, deserialize_with = "lenient_time", skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

impl Taint {
    /// A taint without a time.
    pub fn new(key: impl Into<String>, value: Option<&str>, effect: Effect) -> Self {
        Self { key: key.into(), value: value.map(Into::into), effect, time_added: None }
    }

    /// `karpenter.sh/disrupted:NoSchedule`.
    pub fn disrupted() -> Self {
        Self::new(DISRUPTED, None, Effect::NoSchedule)
    }

    /// `karpenter.sh/unregistered:NoExecute`.
    pub fn unregistered() -> Self {
        Self::new(UNREGISTERED, None, Effect::NoExecute)
    }

    /// Same key and effect, which is what makes two taints the same one on a Node.
    pub fn matches(&self, other: &core::Taint) -> bool {
        self.key == other.key && self.effect.as_str() == other.effect
    }
}

impl From<&Taint> for core::Taint {
    fn from(taint: &Taint) -> Self {
        Self {
            key: taint.key.clone(),
            value: taint.value.clone(),
            effect: taint.effect.as_str().into(),
            time_added: taint.time_added.clone(),
        }
    }
}

impl std::fmt::Display for Taint {
    /// `key=value:Effect`, as kubectl writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.value.as_deref() {
            Some(value) if !value.is_empty() => write!(f, "{}={value}:{}", self.key, self.effect),
            _ => write!(f, "{}:{}", self.key, self.effect),
        }
    }
}

/// The API server's `date-time` accepts forms that the parser here does not. The time has no effect, so one that
/// cannot be read is dropped rather than the object with it.
fn lenient_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ephemeral_is_judged_by_key_and_effect() {
        assert!(is_ephemeral("node.kubernetes.io/not-ready", "NoExecute"));
        assert!(!is_ephemeral("node.kubernetes.io/unreachable", "NoExecute"));
        assert!(is_ephemeral("readiness.k8s.io/network", "NoSchedule"));
        assert!(!is_ephemeral(DISRUPTED, "NoSchedule"));
    }

    #[test]
    fn an_odd_time_does_not_lose_the_taint() {
        let taint: Taint = serde_json::from_str(
            r#"{"key":"a","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00.1234567890123Z"}"#,
        )
        .unwrap();
        assert_eq!(taint.time_added, None);
        let taint: Taint =
            serde_json::from_str(r#"{"key":"a","effect":"Later","timeAdded":"2026-01-01T00:00:00Z"}"#).unwrap();
        assert!(taint.time_added.is_some());
        assert_eq!(taint.effect, Effect::Other("Later".into()));
        assert_eq!(taint.to_string(), "a:Later");
    }
}
