//! NodeOverlay.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::nodepool::{key_error, operator_values};
use super::{Findings, is_qualified_name};
use crate::labels;
use crate::nodeoverlay::{NodeOverlay, PriceError};

/// Resources that instance types themselves define, so that no overlay may add them: Kubernetes' own and those of the
/// devices that the provider knows.
const OF_THE_TYPE: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "pods",
    "nvidia.com/gpu",
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "habana.ai/gaudi",
    "vpc.amazonaws.com/efa",
    "vpc.amazonaws.com/pod-eni",
    "vpc.amazonaws.com/PrivateIPv4Address",
];

/// Everything that is wrong with a NodeOverlay.
pub fn node_overlay(overlay: &NodeOverlay) -> Findings {
    let mut findings = Findings::default();
    let spec = &overlay.spec;
    for (i, requirement) in spec.requirements.iter().enumerate() {
        let field = format!("spec.requirements[{i}]");
        let key = labels::normalize(&requirement.key);
        // Unlike a NodePool, an overlay may select by the name of a NodePool.
        if let Some(message) = key_error(key).filter(|_| key != labels::NODEPOOL) {
            findings.error(format!("{field}.key"), &requirement.key, message);
        }
        operator_values(&field, &requirement.operator, &requirement.values, &mut findings);
        if requirement.operator == crate::requirement::Operator::NotIn && requirement.values.is_empty() {
            findings.error(format!("{field}.values"), "", "operator NotIn needs at least one value");
        }
    }
    match overlay.price_change() {
        Ok(_) => {}
        Err(error @ PriceError::Both) => findings.error("spec.price", "", error.to_string()),
        Err(error) => {
            let (field, found) = match &spec.price {
                Some(price) => ("spec.price", price.as_str()),
                None => ("spec.priceAdjustment", spec.price_adjustment.as_deref().unwrap_or_default()),
            };
            findings.error(field, found, error.to_string());
        }
    }
    for (name, Quantity(amount)) in &spec.capacity {
        let field = format!("spec.capacity[{name}]");
        if OF_THE_TYPE.contains(&name.as_str()) || name.starts_with("hugepages-") {
            findings.error(field, amount, "is the instance type's own: only other extended resources can be added");
        } else if !is_qualified_name(name) {
            findings.error(field, amount, "is no resource name: write one such as example.com/device");
        } else if amount.starts_with('-') {
            findings.error(field, amount, "is less than nothing: an overlay can only add");
        }
    }
    findings
}
