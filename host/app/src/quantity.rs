//! Engine resources as Kubernetes quantities.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mortise_engine::quantity::Resources;

/// Every resource that is not zero, each in its usual notation.
#[must_use]
pub fn quantities(resources: &Resources) -> BTreeMap<String, Quantity> {
    let named = [
        ("cpu", resources.cpu_milli, cpu as fn(i64) -> String),
        ("memory", resources.memory, bytes),
        ("ephemeral-storage", resources.ephemeral_storage, bytes),
        ("pods", resources.pods, |n| n.to_string()),
    ];
    let mut out: BTreeMap<String, Quantity> = named
        .into_iter()
        .filter(|(_, amount, _)| *amount != 0)
        .map(|(name, amount, form)| (name.to_owned(), Quantity(form(amount))))
        .collect();
    out.extend(
        resources.extended.iter().filter(|(_, n)| **n != 0).map(|(k, n)| (k.to_string(), Quantity(n.to_string()))),
    );
    out
}

/// `1500m` or `4`.
fn cpu(milli: i64) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
}

/// The largest binary unit that divides the amount.
fn bytes(amount: i64) -> String {
    for (unit, shift) in [("Gi", 30), ("Mi", 20), ("Ki", 10)] {
        let size = 1_i64 << shift;
        if amount % size == 0 {
            return format!("{}{unit}", amount / size);
        }
    }
    amount.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_notation() {
        let resources = Resources {
            cpu_milli: 3920,
            memory: 7 << 30,
            ephemeral_storage: 1000,
            pods: 58,
            extended: [("nvidia.com/gpu".into(), 1), ("zero".into(), 0)].into_iter().collect(),
        };
        let text: Vec<String> = quantities(&resources).iter().map(|(k, v)| format!("{k}={}", v.0)).collect();
        assert_eq!(text, ["cpu=3920m", "ephemeral-storage=1000", "memory=7Gi", "nvidia.com/gpu=1", "pods=58"]);
    }
}
