//! NodePool, NodeClaim and EC2NodeClass: stripped when they arrive, turned into engine types when a snapshot is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mortise_api::requirement::{Operator as ApiOperator, Requirement as ApiRequirement};
use mortise_api::taints::{Effect as ApiEffect, Taint as ApiTaint};
use mortise_api::{EC2NodeClass, NodeClaim, NodePool, labels};
use mortise_engine::quantity::{Resources, base_units};
use mortise_engine::requirement::{Operator, Requirement};
use mortise_engine::taint::{Effect, Taint};

use super::Converter;
use crate::intern::Strings;

impl Converter {
    /// A NodePool without what nobody reads.
    pub fn nodepool_object(&mut self, mut pool: NodePool) -> NodePool {
        pool.metadata.managed_fields = None;
        self.share(&mut pool.spec.template.spec.requirements);
        pool
    }

    /// A NodeClaim without what nobody reads. Its lists of several hundred instance types are shared with other claims.
    pub fn nodeclaim_object(&mut self, mut claim: NodeClaim) -> NodeClaim {
        claim.metadata.managed_fields = None;
        self.share(&mut claim.spec.requirements);
        claim
    }

    /// An EC2NodeClass without what nobody reads.
    pub fn node_class_object(&mut self, mut class: EC2NodeClass) -> EC2NodeClass {
        class.metadata.managed_fields = None;
        class
    }

    fn share(&mut self, requirements: &mut [ApiRequirement]) {
        for r in requirements {
            r.key = self.strings.get(&r.key);
            let values: Vec<Arc<str>> = r.values.iter().map(|v| self.strings.get(v)).collect();
            r.values = self.lists.list(values);
        }
    }
}

/// A requirement as the engine takes it; the message names what it does not understand.
///
/// # Errors
/// An operator that is none.
pub fn api_requirement(from: &ApiRequirement) -> Result<Requirement, String> {
    let operator = match &from.operator {
        ApiOperator::In => Operator::In,
        ApiOperator::NotIn => Operator::NotIn,
        ApiOperator::Exists => Operator::Exists,
        ApiOperator::DoesNotExist => Operator::DoesNotExist,
        ApiOperator::Gt => Operator::Gt,
        ApiOperator::Lt => Operator::Lt,
        ApiOperator::Gte => Operator::Gte,
        ApiOperator::Lte => Operator::Lte,
        ApiOperator::Other(word) => {
            return Err(format!("requirement on {:?} has the unknown operator {word:?}", from.key));
        }
    };
    let key = labels::normalize(&from.key);
    Ok(Requirement {
        key: if key == &*from.key { Arc::clone(&from.key) } else { Arc::from(key) },
        operator,
        values: match operator {
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
            _ => from.values.to_vec(),
        },
        min_values: from.min_values.and_then(|n| u32::try_from(n).ok()),
    })
}

/// Every requirement that is understood, and a message for each that is not.
pub fn api_requirements(from: &[ApiRequirement]) -> (Vec<Requirement>, Vec<String>) {
    let mut problems = Vec::new();
    let understood = from.iter().filter_map(|r| api_requirement(r).map_err(|p| problems.push(p)).ok()).collect();
    (understood, problems)
}

/// Requirements for a NodeClaim's spec.
pub fn to_api_requirements(from: &[Requirement]) -> Vec<ApiRequirement> {
    from.iter()
        .map(|r| ApiRequirement {
            key: Arc::clone(&r.key),
            operator: match r.operator {
                Operator::In => ApiOperator::In,
                Operator::NotIn => ApiOperator::NotIn,
                Operator::Exists => ApiOperator::Exists,
                Operator::DoesNotExist => ApiOperator::DoesNotExist,
                Operator::Gt => ApiOperator::Gt,
                Operator::Lt => ApiOperator::Lt,
                Operator::Gte => ApiOperator::Gte,
                Operator::Lte => ApiOperator::Lte,
            },
            values: r.values.iter().cloned().collect(),
            min_values: r.min_values.and_then(|n| i32::try_from(n).ok()),
        })
        .collect()
}

/// A taint as the engine takes it; `None` when its effect is unknown.
pub fn api_taint(strings: &mut Strings, from: &ApiTaint) -> Option<Taint> {
    let effect = match &from.effect {
        ApiEffect::NoSchedule => Effect::NoSchedule,
        ApiEffect::PreferNoSchedule => Effect::PreferNoSchedule,
        ApiEffect::NoExecute => Effect::NoExecute,
        ApiEffect::Other(_) => return None,
    };
    Some(Taint { key: strings.get(&from.key), value: strings.get(from.value.as_deref().unwrap_or_default()), effect })
}

/// Amounts of a map of API quantities. What does not parse is named in `problems` and counts as zero.
pub fn api_resources(from: &BTreeMap<String, Quantity>, field: &str, problems: &mut Vec<String>) -> Resources {
    let mut amounts = Resources::default();
    for (name, amount) in amounts_of(from, field, problems) {
        amounts.set(name, amount);
    }
    amounts
}

/// Name and amount in base units of each quantity; what does not parse is named in `problems`.
pub(crate) fn amounts_of<'a>(
    from: &'a BTreeMap<String, Quantity>,
    field: &str,
    problems: &mut Vec<String>,
) -> Vec<(&'a str, i64)> {
    let mut amounts = Vec::with_capacity(from.len());
    for (name, text) in from {
        match text.0.parse() {
            Ok(quantity) => amounts.push((name.as_str(), base_units(name, quantity))),
            Err(error) => problems.push(format!("{field}[{name}]: {error}")),
        }
    }
    amounts
}
