//! Rules of NodeClaim.

use super::{Rule, requirement};

/// All of them.
pub(super) fn rules() -> Vec<Rule> {
    let mut rules = vec![Rule::new("spec", "self == oldSelf", "the spec of a NodeClaim cannot change")];
    rules.extend(requirement::key("spec.requirements[].key"));
    rules.extend(requirement::operators("spec.requirements[]"));
    rules.extend(requirement::node_class_ref("spec.nodeClassRef"));
    rules
}
