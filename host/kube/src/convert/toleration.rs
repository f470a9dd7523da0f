//! Tolerations and taints.

use std::sync::Arc;

use mortise_engine::taint::{Effect, Taint, Toleration};

use super::Converter;
use crate::objects;

/// An effect by name.
pub(super) fn effect(name: &str) -> Option<Effect> {
    match name {
        "NoSchedule" => Some(Effect::NoSchedule),
        "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
        "NoExecute" => Some(Effect::NoExecute),
        _ => None,
    }
}

impl Converter {
    /// A toleration, or what this version does not understand about it.
    pub(super) fn toleration(&mut self, from: &objects::Toleration) -> Result<Toleration, Arc<str>> {
        let exists = match from.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => false,
            "Exists" => true,
            other => {
                return Err(format!(
                    "spec.tolerations[{}].operator {other:?} is not acted on (Equal and Exists are)",
                    from.key.as_deref().unwrap_or_default()
                )
                .into());
            }
        };
        let wanted = match from.effect.as_deref().unwrap_or_default() {
            "" => None,
            name => match effect(name) {
                Some(known) => Some(known),
                None => return Err(format!("spec.tolerations[].effect {name:?} is not an effect").into()),
            },
        };
        Ok(Toleration {
            key: self.strings.get(from.key.as_deref().unwrap_or_default()),
            exists,
            value: self.strings.get(from.value.as_deref().unwrap_or_default()),
            effect: wanted,
        })
    }

    /// A taint; `None` when its effect is unknown to Kubernetes.
    pub(super) fn taint(&mut self, from: &objects::Taint) -> Option<Taint> {
        Some(Taint {
            key: self.strings.get(&from.key),
            value: self.strings.get(from.value.as_deref().unwrap_or_default()),
            effect: effect(&from.effect)?,
        })
    }
}

/// Whether a toleration covers the taint `karpenter.sh/disrupted:NoSchedule`, which has no value.
pub(super) fn covers_disrupted(t: &Toleration) -> bool {
    let key = (t.key.is_empty() && t.exists) || &*t.key == mortise_api::taints::DISRUPTED;
    key && (t.exists || t.value.is_empty()) && t.effect.is_none_or(|e| e == Effect::NoSchedule)
}
