//! Taints and tolerations.

use std::fmt;
use std::sync::Arc;

/// Effect of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Effect {
    /// New pods are kept away.
    NoSchedule,
    /// New pods are kept away if possible.
    PreferNoSchedule,
    /// New pods are kept away and running ones evicted.
    NoExecute,
}

/// A taint on a node or in a NodePool template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Taint {
    /// Key.
    pub key: Arc<str>,
    /// Value; empty when none.
    #[serde(default)]
    pub value: Arc<str>,
    /// Effect.
    pub effect: Effect,
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{:?}", self.effect)
    }
}

/// A pod's toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Toleration {
    /// Key; empty with `exists` tolerates every taint.
    #[serde(default)]
    pub key: Arc<str>,
    /// `Exists` operator: any value.
    #[serde(default)]
    pub exists: bool,
    /// Value for the `Equal` operator.
    #[serde(default)]
    pub value: Arc<str>,
    /// Effect; `None` matches all.
    #[serde(default)]
    pub effect: Option<Effect>,
}

impl Toleration {
    /// Whether it covers this taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && ((self.key.is_empty() && self.exists) || self.key == taint.key)
            && (self.exists || self.value == taint.value)
    }
}

/// The first taint that no toleration covers. `PreferNoSchedule` counts like the others unless `ignore_preferred`.
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration], ignore_preferred: bool) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        let ignored = ignore_preferred && taint.effect == Effect::PreferNoSchedule;
        !ignored && !tolerations.iter().any(|toleration| toleration.tolerates(taint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: Effect) -> Taint {
        Taint { key: key.into(), value: value.into(), effect }
    }

    fn toleration(key: &str, exists: bool, value: &str, effect: Option<Effect>) -> Toleration {
        Toleration { key: key.into(), exists, value: value.into(), effect }
    }

    #[test]
    fn tolerations_match_key_value_and_effect() {
        let gpu = taint("gpu", "true", Effect::NoSchedule);
        for (expected, toleration) in [
            (true, toleration("gpu", true, "", None)),
            (true, toleration("gpu", false, "true", Some(Effect::NoSchedule))),
            (true, toleration("", true, "", None)),
            (false, toleration("", false, "true", None)),
            (false, toleration("gpu", false, "false", None)),
            (false, toleration("gpu", true, "", Some(Effect::NoExecute))),
            (false, toleration("cpu", true, "", None)),
        ] {
            assert_eq!(toleration.tolerates(&gpu), expected, "{toleration:?}");
        }
    }

    #[test]
    fn preferred_taints_are_hard_until_ignored() {
        let taints = [taint("old", "", Effect::PreferNoSchedule), taint("gpu", "a", Effect::NoExecute)];
        assert_eq!(untolerated(&taints, &[], false).map(ToString::to_string).as_deref(), Some("old:PreferNoSchedule"));
        assert_eq!(untolerated(&taints, &[], true).map(ToString::to_string).as_deref(), Some("gpu=a:NoExecute"));
        assert!(untolerated(&taints, &[toleration("gpu", true, "", None)], true).is_none());
    }
}
