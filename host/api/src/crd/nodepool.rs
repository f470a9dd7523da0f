//! Rules of NodePool.

use super::{Rule, requirement};
use crate::labels;
use crate::nodepool::ConsolidationPolicy;

/// All of them.
pub(super) fn rules() -> Vec<Rule> {
    const REQUIREMENTS: &str = "spec.template.spec.requirements[]";
    const KEY: &str = "spec.template.spec.requirements[].key";
    const CLASS: &str = "spec.template.spec.nodeClassRef";
    const POLICY: &str = "spec.disruption.consolidationPolicy";
    let mut rules = vec![
        Rule::new(
            "spec",
            "has(self.replicas) == has(oldSelf.replicas)",
            "replicas cannot be added to a NodePool nor taken from it: create another NodePool",
        ),
        Rule::new(
            "spec",
            "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits)",
            "with replicas the only limit is limits.nodes",
        ),
        Rule::new("spec", "!has(self.replicas) || !has(self.weight)", "with replicas there is no weight"),
        Rule::new(
            POLICY,
            "self != 'WhenUnderutilized'",
            "WhenUnderutilized is the name of v1beta1: write WhenEmptyOrUnderutilized",
        ),
        Rule::new(
            POLICY,
            format!("self in ['{}', 'WhenUnderutilized']", ConsolidationPolicy::VALUES.join("', '")),
            format!("supported values: {}", ConsolidationPolicy::VALUES.join(", ")),
        ),
        Rule::new(
            "spec.disruption.budgets[]",
            "has(self.schedule) == has(self.duration)",
            "schedule and duration go together: give both or neither",
        ),
        Rule::new(
            KEY,
            format!("self != '{}'", labels::NODEPOOL),
            "karpenter.sh/nodepool is set by the controller, to the name of this NodePool",
        ),
        Rule::new(CLASS, "self.group == oldSelf.group", "group cannot change: create another NodePool"),
        Rule::new(CLASS, "self.kind == oldSelf.kind", "kind cannot change: create another NodePool"),
    ];
    rules.extend(requirement::labels("spec.template.metadata.labels"));
    rules.extend(requirement::key(KEY, labels::aws_allowed()));
    rules.extend(requirement::operators(REQUIREMENTS));
    rules.extend(requirement::node_class_ref(CLASS));
    rules
}
