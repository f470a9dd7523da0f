//! NodeOverlay → the engine's.

use std::sync::Arc;

use mortise_api::nodeoverlay::{LabelRequirement, PriceChange as ApiChange};
use mortise_api::requirement::Requirement as ApiRequirement;
use mortise_api::{NodeOverlay, validation};
use mortise_engine::overlay::{Overlay, PriceChange};
use mortise_engine::quantity::MicroUsd;

use super::custom::{api_requirements, api_resources};

/// The overlay as the engine takes it. Whatever is wrong with it becomes its `invalid`; nothing is guessed.
pub fn overlay(from: &NodeOverlay) -> Overlay {
    let widened: Vec<ApiRequirement> = from.spec.requirements.iter().map(widen).collect();
    let (requirements, mut problems) = api_requirements(&widened);
    let capacity = api_resources(&from.spec.capacity, "spec.capacity", &mut problems);
    let found = validation::node_overlay(from);
    let invalid = match (found.is_usable(), problems.is_empty()) {
        (false, _) => Some(found.message()),
        (true, false) => Some(problems.join("; ")),
        (true, true) => None,
    };
    Overlay {
        name: Arc::from(from.metadata.name.as_deref().unwrap_or_default()),
        weight: from.weight(),
        requirements,
        // One that cannot be read is among the findings.
        price: from.price_change().ok().flatten().map(price),
        capacity,
        invalid: invalid.map(Arc::from),
    }
}

fn widen(from: &LabelRequirement) -> ApiRequirement {
    ApiRequirement {
        key: Arc::clone(&from.key),
        operator: from.operator.clone(),
        values: Arc::clone(&from.values),
        min_values: None,
    }
}

fn price(change: ApiChange) -> PriceChange {
    match change {
        ApiChange::Set(price) => PriceChange::Set(MicroUsd(u64::try_from(price).unwrap_or_default())),
        ApiChange::Add(amount) => PriceChange::Add(amount),
        ApiChange::Scale(share) => PriceChange::Scale(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spec: serde_json::Value) -> Overlay {
        let object = serde_json::json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "o"}, "spec": spec,
        });
        overlay(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn every_part_arrives() {
        let read = read(serde_json::json!({
            "requirements": [{"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"]}],
            "priceAdjustment": "-10%", "capacity": {"example.com/dongle": "2"}, "weight": 7,
        }));
        assert_eq!((&*read.name, read.weight, read.price), ("o", 7, Some(PriceChange::Scale(-100_000))));
        assert_eq!(&*read.requirements[0].key, "kubernetes.io/arch", "old names are read");
        assert_eq!(read.capacity.get("example.com/dongle"), 2);
        assert_eq!(read.invalid, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (spec, says) in [
            (serde_json::json!({"requirements": [], "price": "cheap"}), "spec.price"),
            (serde_json::json!({"requirements": [], "capacity": {"cpu": "1"}}), "spec.capacity[cpu]"),
            (serde_json::json!({"requirements": [], "capacity": {"example.com/x": "1e"}}), "spec.capacity"),
            (serde_json::json!({"requirements": [{"key": "a", "operator": "Near"}]}), "operator"),
        ] {
            let why = read(spec).invalid.unwrap();
            assert!(why.contains(says), "{why}");
        }
    }
}
