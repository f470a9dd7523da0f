//! Drift hashes: what a NodeClaim was made from, so that a later change of its NodePool or EC2NodeClass shows.
//!
//! The fields are those that Karpenter hashes, under the same annotation keys, but the algorithm is ours, so the
//! version is too: whoever finds another version than its own restamps the claims instead of judging drift. So taking
//! over a running cluster, and going back, replaces no node.

use serde_json::{Map, Value, json};

use crate::ec2nodeclass::EC2NodeClass;
use crate::nodepool::NodePool;

/// Version of both algorithms here. Changes with the fields or the algorithm, never otherwise: a new version gives up
/// one chance to see drift on every claim.
pub const VERSION: &str = "mortise-v1";

/// Hash of a NodePool's template: labels, annotations, taints, startup taints, node class reference, expiry and grace
/// period. Requirements are left out (a node may still satisfy changed ones), and so is all outside the template.
pub fn node_pool(pool: &NodePool) -> String {
    let template = &pool.spec.template;
    let spec = &template.spec;
    // The length counts, not how it is written: 60m is 1h. One that cannot be read counts as written.
    let seconds = |length: Option<std::time::Duration>, text: &str| length.map_or(json!(text), |d| json!(d.as_secs()));
    let taints = |taints: &[crate::taints::Taint]| -> Value {
        let one =
            |taint: &crate::taints::Taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect});
        taints.iter().map(one).collect()
    };
    digest(json!({
        "labels": template.metadata.labels,
        "annotations": template.metadata.annotations,
        "taints": taints(&spec.taints),
        "startupTaints": taints(&spec.startup_taints),
        "nodeClassRef": spec.node_class_ref,
        "expireAfter": seconds(spec.expire_after.or_never(), spec.expire_after.as_str()),
        "terminationGracePeriod":
            spec.termination_grace_period.as_ref().map(|grace| seconds(grace.get().ok(), grace.as_str())),
    }))
}

/// Hash of what an EC2NodeClass says about its instances, together with the cluster CA that goes into their user data.
/// Left out are the selector terms (drift compares what they resolve to), `ipPrefixCount`, and the word `amiFamily`
/// where the alias says the same.
pub fn ec2_node_class(class: &EC2NodeClass, ca_bundle: &str) -> String {
    const LEFT_OUT: &[&str] = &[
        "amiFamily",
        "amiSelectorTerms",
        "capacityReservationSelectorTerms",
        "ipPrefixCount",
        "kubelet",
        "securityGroupSelectorTerms",
        "subnetSelectorTerms",
    ];
    // A struct of ours always is a JSON object; were it not, the claim would merely not drift.
    let mut spec = serde_json::to_value(&class.spec).unwrap_or_default();
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
    }
    digest(json!({
        "spec": spec,
        "amiFamily": class.spec.resolved_ami_family(),
        "caBundle": ca_bundle,
        // As text: in there lists have an order that matters.
        "kubelet": canonical(json!(class.spec.kubelet), false).to_string(),
    }))
}

/// FNV-1a, 64 bits, of the canonical form, in decimal.
fn digest(value: Value) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let text = canonical(value, true).to_string();
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)).to_string()
}

/// Sorted keys, lists as sets if asked, and nothing empty: an absent list, an empty one and a null are the same. An empty object in place of
/// an absent one differs where it says something, which its own fields then show.
fn canonical(value: Value, sets: bool) -> Value {
    match value {
        Value::Object(map) => {
            let kept =
                map.into_iter().map(|(key, value)| (key, canonical(value, sets))).filter(|(_, value)| !is_empty(value));
            // Sorted here, so that the text does not depend on how the map keeps its keys.
            let sorted: std::collections::BTreeMap<_, _> = kept.collect();
            Value::Object(sorted.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(list) => {
            let mut list: Vec<_> = list.into_iter().map(|value| canonical(value, sets)).collect();
            if sets {
                list.sort_by_cached_key(Value::to_string);
            }
            Value::Array(list)
        }
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
