//! A recorded call.

use std::collections::BTreeMap;
use std::time::Instant;

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Not answered yet.
    Open,
    /// Answered with this HTTP status.
    Answered(u16),
    /// The connection was closed without an answer; `reached` tells whether AWS had carried the call out.
    Dropped {
        /// AWS carried it out.
        reached: bool,
    },
}

/// One call of the controller.
#[derive(Debug, Clone)]
pub struct Call {
    /// `CreateFleet`, `DescribeInstances`, …; `CreateFleet (dry run)` if only permissions were asked.
    pub operation: String,
    /// Parameters of the query protocol; for others the body under the key `body`.
    pub parameters: BTreeMap<String, String>,
    /// When it arrived.
    pub at: Instant,
    /// What became of it.
    pub outcome: Outcome,
    /// Instances that it started.
    pub instances: Vec<String>,
    /// The answer was a replay for a client token seen before.
    pub replayed: bool,
}

impl Call {
    /// A parameter, or nothing.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    /// Values of all parameters whose name ends so, in the order of their names.
    pub fn values_of(&self, suffix: &str) -> Vec<&str> {
        self.parameters.iter().filter(|(name, _)| name.ends_with(suffix)).map(|(_, value)| value.as_str()).collect()
    }

    /// The tags that a request gives to a kind of resource (`instance`).
    pub fn tags(&self, resource: &str) -> BTreeMap<String, String> {
        let mut tags = BTreeMap::new();
        for (name, value) in &self.parameters {
            let Some(stem) = name.strip_suffix(".ResourceType").filter(|stem| stem.starts_with("TagSpecification"))
            else {
                continue;
            };
            if value != resource {
                continue;
            }
            for (key_name, key) in &self.parameters {
                let Some(tag) = key_name.strip_suffix(".Key").filter(|tag| tag.starts_with(&format!("{stem}."))) else {
                    continue;
                };
                tags.insert(key.clone(), self.parameter(&format!("{tag}.Value")).to_owned());
            }
        }
        tags
    }
}
