//! What a node may turn out to be: one instance type by one offering, with the labels that its requirements leave.

use std::collections::BTreeMap;

use mortise_problem::api::NodePool;
use mortise_problem::api::labels::{
    CAPACITY_RESERVATION_ID, CAPACITY_TYPE, HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED, ZONE,
    capacity_type, normalize,
};
use mortise_problem::api::requirement::Requirement;
use mortise_problem::{InstanceType, Offering, Problem};

use super::quantity::{Resources, resources};
use super::values::{Labels, Values, narrow};

/// What a node is or may turn out to be.
#[derive(Clone, Debug)]
pub(crate) struct Machine<'a> {
    /// For messages: `c-4x in zone-1 (spot)`.
    pub(crate) name: String,
    /// What it is made from, for a node that is still to be made.
    pub(crate) made_from: Option<(&'a InstanceType, &'a Offering)>,
    /// What its labels may be.
    pub(crate) labels: Labels,
    /// What it has for pods.
    pub(crate) allocatable: Resources,
    /// CSI attach limits by driver; a driver that is not there or has `None` is unbounded.
    pub(crate) attach_limits: BTreeMap<String, Option<u32>>,
}

/// What a requirement admits.
pub(crate) fn admitted(requirement: &Requirement) -> Values {
    Values::required(requirement.operator.as_str(), requirement.values.iter().map(|value| &**value))
}

/// Labels that every node of a pool has.
pub(crate) fn pool_labels(pool: &NodePool) -> BTreeMap<String, String> {
    let mut all = pool.spec.template.metadata.labels.clone();
    let class = &pool.spec.template.spec.node_class_ref;
    all.insert(NODEPOOL.into(), pool_name(pool).into());
    all.insert(format!("{}/{}", class.group, class.kind.to_lowercase()), class.name.clone());
    all
}

/// Name of a pool.
pub(crate) fn pool_name(pool: &NodePool) -> &str {
    pool.metadata.name.as_deref().unwrap_or_default()
}

/// What labels nodes of the pool may have within further requirements.
pub(crate) fn template_labels(pool: &NodePool, requirements: &[Requirement]) -> Labels {
    let mut labels = Labels::new();
    for (key, value) in pool_labels(pool) {
        narrow(&mut labels, &key, &Values::one(&value));
    }
    for requirement in pool.spec.template.spec.requirements.iter().chain(requirements) {
        narrow(&mut labels, &requirement.key, &admitted(requirement));
    }
    labels
}

/// Every way to make a node of an instance type for a pool within further requirements, by an available offering.
pub(crate) fn machines<'a>(
    pool: &NodePool,
    requirements: &[Requirement],
    instance_type: &'a InstanceType,
    hostname: &str,
) -> Vec<Machine<'a>> {
    let mut base = template_labels(pool, requirements);
    for key in [REGISTERED, INITIALIZED] {
        narrow(&mut base, key, &Values::one("true"));
    }
    base.insert(HOSTNAME.into(), Values::one(hostname));
    narrow(&mut base, INSTANCE_TYPE, &Values::one(&instance_type.name));
    let mut all = Vec::new();
    for offering in instance_type.offerings.iter().filter(|offering| offering.available) {
        let mut labels = base.clone();
        for requirement in &offering.requirements {
            narrow(&mut labels, &requirement.key, &admitted(requirement));
        }
        if reservation(offering).is_none() {
            narrow(&mut labels, CAPACITY_RESERVATION_ID, &Values::none());
        }
        // What an offering says of a label is what its nodes have; the type names the values of all its offerings.
        let of_offering = |key: &str| {
            key == CAPACITY_RESERVATION_ID || offering.requirements.iter().any(|r| normalize(&r.key) == key)
        };
        for requirement in instance_type.requirements.iter().filter(|r| !of_offering(normalize(&r.key))) {
            narrow(&mut labels, &requirement.key, &admitted(requirement));
        }
        if labels.values().any(Values::is_empty) {
            continue;
        }
        all.push(Machine {
            name: format!(
                "{} in {} ({})",
                instance_type.name,
                only_value(offering, ZONE).unwrap_or("any zone"),
                only_value(offering, CAPACITY_TYPE).unwrap_or("any capacity type")
            ),
            made_from: Some((instance_type, offering)),
            labels,
            allocatable: allocatable(instance_type),
            attach_limits: instance_type.volume_limits.iter().map(|(d, n)| (d.clone(), Some(*n))).collect(),
        });
    }
    all
}

/// Capacity less overhead, never negative. Memory set aside as huge pages is no longer there as memory.
pub(crate) fn allocatable(instance_type: &InstanceType) -> Resources {
    let mut all = resources(&instance_type.capacity);
    let huge: i128 = all.iter().filter(|(name, _)| name.starts_with("hugepages-")).map(|(_, amount)| *amount).sum();
    if let Some(memory) = all.get_mut("memory") {
        *memory -= huge;
    }
    for (name, amount) in resources(&instance_type.overhead) {
        if let Some(left) = all.get_mut(&name) {
            *left -= amount;
        }
    }
    for amount in all.values_mut() {
        *amount = (*amount).max(0);
    }
    all
}

/// The value of a label that an offering pins.
pub(crate) fn only_value<'o>(offering: &'o Offering, key: &str) -> Option<&'o str> {
    let requirement = offering.requirements.iter().find(|requirement| &*requirement.key == key)?;
    requirement.values.first().map(|value| &**value)
}

/// The reservation that an offering draws on: its id, or an empty one if it names none. `None` = not reserved.
pub(crate) fn reservation(offering: &Offering) -> Option<&str> {
    (only_value(offering, CAPACITY_TYPE) == Some(capacity_type::RESERVED))
        .then(|| only_value(offering, CAPACITY_RESERVATION_ID).unwrap_or_default())
}

/// The instance type of a name.
pub(crate) fn instance_type<'a>(problem: &'a Problem, name: &str) -> Option<&'a InstanceType> {
    problem.instance_types.iter().find(|instance_type| instance_type.name == name)
}

/// The pool of a name.
pub(crate) fn pool<'a>(problem: &'a Problem, name: &str) -> Option<&'a NodePool> {
    problem.node_pools.iter().find(|pool| pool_name(pool) == name)
}

/// Whether new nodes for pods may be made from it: a pool with replicas makes its own, one being deleted makes none.
pub(crate) fn is_usable(pool: &NodePool) -> bool {
    !pool.is_static() && pool.metadata.deletion_timestamp.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, reserved};
    use serde_json::json;

    #[test]
    fn only_reserved_offerings_have_a_reservation() {
        let mut case = reserved(Case::new(), 1);
        let named = json!({"key": CAPACITY_RESERVATION_ID, "operator": "In", "values": ["r-1"]});
        case.problem["instanceTypes"][0]["requirements"].as_array_mut().unwrap().push(named);
        let problem = case.problem();
        let ways = |requirements: &[Requirement]| {
            machines(&problem.node_pools[0], requirements, &problem.instance_types[0], "n").len()
        };
        assert_eq!(ways(&[]), 3);
        assert_eq!(ways(&[Requirement::new(CAPACITY_RESERVATION_ID, "In".into(), ["r-1"])]), 1);
    }
}
