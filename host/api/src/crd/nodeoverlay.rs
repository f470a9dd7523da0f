//! Rules of NodeOverlay.

use super::{Rule, requirement};
use crate::labels;

/// Labels of the domain `karpenter.k8s.aws` that depend on the node class and not on the instance type, so that no
/// overlay can select by them.
const OF_THE_CLASS: [&str; 6] = [
    labels::INSTANCE_TENANCY,
    labels::CAPACITY_RESERVATION_ID,
    labels::CAPACITY_RESERVATION_TYPE,
    labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
    labels::PLACEMENT_GROUP_ID,
    labels::PLACEMENT_GROUP_PARTITION,
];

/// All of them.
pub(super) fn rules() -> Vec<Rule> {
    const REQUIREMENT: &str = "spec.requirements[]";
    const KEY: &str = "spec.requirements[].key";
    let mut rules = vec![
        Rule::new(
            "spec",
            "!(has(self.price) && has(self.priceAdjustment))",
            "price and priceAdjustment exclude one another: give one",
        ),
        Rule::new(
            "spec.capacity",
            "!('cpu' in self || 'memory' in self || 'ephemeral-storage' in self || 'pods' in self)",
            "cpu, memory, ephemeral-storage and pods are the instance type's own: only extended resources can be added",
        ),
        Rule::new(
            REQUIREMENT,
            "self.operator != 'NotIn' || (has(self.values) && size(self.values) > 0)",
            "operator NotIn needs at least one value",
        ),
    ];
    let aws = labels::aws_allowed().filter(|key| !OF_THE_CLASS.contains(key));
    rules.extend(requirement::key(KEY, aws));
    rules.extend(requirement::values(REQUIREMENT));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aws_allow_list_has_22_keys() {
        assert_eq!(labels::aws_allowed().filter(|key| !OF_THE_CLASS.contains(key)).count(), 22);
    }
}
