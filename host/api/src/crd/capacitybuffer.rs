//! Rules of CapacityBuffer.

use super::Rule;

/// All of them.
pub(super) fn rules() -> Vec<Rule> {
    vec![
        Rule::new(
            "spec",
            "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            "podTemplateRef says what a pod needs, not how many there are: give replicas or limits too",
        ),
        Rule::new(
            "spec",
            "!(has(self.podTemplateRef) && has(self.scalableRef))",
            "podTemplateRef and scalableRef exclude one another: give one",
        ),
    ]
}
