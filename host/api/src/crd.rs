//! The CustomResourceDefinitions, made from the types.
//!
//! Shape, defaults, patterns and bounds stand on the fields themselves. What a derive cannot say stands here as data:
//! each kind has a table of CEL rules ([`Rule`]), which shows the kind's rules on one page, shares those that NodePool
//! and NodeClaim have in common, and lets a test demand a refused manifest for every single rule.
//! The module `shape` then makes the derived schema structural in the way that API servers and `kubectl apply` expect.

mod capacitybuffer;
mod ec2nodeclass;
mod nodeclaim;
mod nodeoverlay;
mod nodepool;
mod requirement;
mod shape;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::{CapacityBuffer, EC2NodeClass, NodeClaim, NodeOverlay, NodePool};

/// Label and taint keys: an optional DNS prefix and a name.
pub const LABEL_KEY: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// Label values.
pub const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// Kubernetes quantities.
pub const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// Schedules of budgets: a macro, or five cron fields (the fields themselves are judged at run time).
pub const SCHEDULE: &str = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|.+\s.+\s.+\s.+\s.+)$";
/// EBS volume sizes: 1 to 59000Gi, 64000G, 58Ti or 64T.
pub const VOLUME_SIZE: &str = r"^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|([1-9]|[1-4][0-9]|5[0-8])Ti|([1-9]|[1-5][0-9]|6[0-4])T)$";

/// A CEL rule that the API server applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where in the object, as in `spec.template.spec.requirements[].key`: `[]` goes to a list's items.
    pub at: String,
    /// The expression that must be true of `self`.
    pub cel: String,
    /// What the user reads when it is not.
    pub message: String,
}

impl Rule {
    /// A rule with a fixed message.
    fn new(at: impl Into<String>, cel: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at: at.into(), cel: cel.into(), message: message.into() }
    }
}

/// Why the CRDs could not be made. A mistake in this crate, never in a user's input.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// The schema has no such place.
    #[error("{kind}: no {at} in the schema, so a rule for it cannot be placed")]
    NoSuchPlace {
        /// Kind whose schema it is.
        kind: String,
        /// The place.
        at: String,
    },
    /// The result is not a CustomResourceDefinition.
    #[error("{kind}: the finished schema is not a CustomResourceDefinition")]
    Shape {
        /// Kind whose schema it is.
        kind: String,
        /// What serde says.
        #[source]
        source: serde_json::Error,
    },
}

/// Every CRD: those that nothing works without, then those of feature gates.
///
/// # Errors
/// When a rule and a schema do not fit together, which a test of this crate would have found.
pub fn all() -> Result<Vec<CustomResourceDefinition>, CrdError> {
    Ok(vec![
        finish(EC2NodeClass::crd(), &ec2nodeclass::rules())?,
        finish(NodeClaim::crd(), &nodeclaim::rules())?,
        finish(NodePool::crd(), &nodepool::rules())?,
        finish(NodeOverlay::crd(), &nodeoverlay::rules())?,
        finish(CapacityBuffer::crd(), &capacitybuffer::rules())?,
    ])
}

/// Every rule as (kind, rule), for tests that want to see each of them refuse something.
pub fn rules() -> Vec<(&'static str, Rule)> {
    let tables = [
        ("EC2NodeClass", ec2nodeclass::rules()),
        ("NodeClaim", nodeclaim::rules()),
        ("NodePool", nodepool::rules()),
        ("NodeOverlay", nodeoverlay::rules()),
        ("CapacityBuffer", capacitybuffer::rules()),
    ];
    tables.into_iter().flat_map(|(kind, rules)| rules.into_iter().map(move |rule| (kind, rule))).collect()
}

/// Shapes the derived CRD and places the rules.
fn finish(crd: CustomResourceDefinition, rules: &[Rule]) -> Result<CustomResourceDefinition, CrdError> {
    let kind = crd.spec.names.kind.clone();
    let unshaped = |source| CrdError::Shape { kind: kind.clone(), source };
    let mut value = serde_json::to_value(&crd).map_err(unshaped)?;
    shape::crd(&mut value);
    let schema = value.pointer_mut("/spec/versions/0/schema/openAPIV3Schema");
    let Some(schema) = schema else {
        return Err(CrdError::NoSuchPlace { kind, at: "openAPIV3Schema".into() });
    };
    shape::schema(schema);
    for rule in rules {
        let place = shape::place(schema, &rule.at)
            .ok_or_else(|| CrdError::NoSuchPlace { kind: kind.clone(), at: rule.at.clone() })?;
        let entry = place.entry("x-kubernetes-validations").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = entry {
            list.push(serde_json::json!({"rule": rule.cel, "message": rule.message}));
        }
    }
    serde_json::from_value(value).map_err(unshaped)
}

/// Schema of a map of quantities by resource name. Users write them as numbers and as text.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "pattern": QUANTITY,
            "x-kubernetes-int-or-string": true
        }
    })
}

#[cfg(test)]
mod tests;
