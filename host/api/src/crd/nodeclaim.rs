//! Rules of NodeClaim.

use super::{Rule, requirement};
use crate::labels;

/// All of them.
pub(super) fn rules() -> Vec<Rule> {
    let mut rules = vec![Rule::new("spec", "self == oldSelf", "the spec of a NodeClaim cannot change")];
    rules.extend(requirement::key("spec.requirements[].key", labels::aws_allowed()));
    rules.extend(requirement::operators("spec.requirements[]"));
    rules.extend(requirement::node_class_ref("spec.nodeClassRef"));
    rules
}
