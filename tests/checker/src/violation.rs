//! What is wrong with an answer.

use std::fmt;

/// The rule that an answer breaks. Each is a module of the same name, which states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Every pod is somewhere once.
    Accounting,
    /// A claim is a narrowing of its pool, and its instance types can be had.
    InstanceTypes,
    /// Requests are within what is allocatable.
    Fit,
    /// Taints are tolerated.
    Taints,
    /// Node selector and required node affinity hold.
    NodeAffinity,
    /// Volumes can be bound, reached, and attached.
    Volumes,
    /// Host ports are free.
    Ports,
    /// Topology spread holds.
    Spread,
    /// Pod affinity and anti-affinity hold.
    PodAffinity,
    /// NodePools stay within their limits.
    Limits,
    /// Capacity reservations are not exceeded.
    Reservations,
    /// `minValues` are kept.
    MinValues,
}

/// What is wrong, with the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is more of something than may be.
    Exceeds {
        /// What.
        what: String,
        /// How much there is.
        found: String,
        /// How much there may be.
        allowed: String,
    },
    /// There is less of something than must be.
    Lacks {
        /// What.
        what: String,
        /// How much there is.
        found: String,
        /// How much there must be.
        needed: String,
    },
    /// Something that is needed is not there.
    Missing(String),
    /// Something is there that must not be.
    Conflict(String),
}

/// One thing that is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that is broken.
    pub rule: Rule,
    /// Pod concerned, `<namespace>/<name>`, if it is about one.
    pub pod: Option<String>,
    /// Node name, `claim <index>`, or `NodePool <name>`, if it is about one.
    pub place: Option<String>,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exceeds { what, found, allowed } => write!(f, "{what}: {found} of at most {allowed}"),
            Self::Lacks { what, found, needed } => write!(f, "{what}: {found} of at least {needed}"),
            Self::Missing(what) | Self::Conflict(what) => f.write_str(what),
        }
    }
}

impl fmt::Display for Violation {
    /// `Fit: default/p on claim 0: cpu of c-4x in zone-1 (spot): 5 of at most 3.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.rule)?;
        match (&self.pod, &self.place) {
            (Some(pod), Some(place)) => write!(f, "{pod} on {place}: ")?,
            (Some(one), None) | (None, Some(one)) => write!(f, "{one}: ")?,
            (None, None) => {}
        }
        self.fault.fmt(f)
    }
}

/// What a rule found.
#[derive(Debug)]
pub(crate) struct Findings {
    rule: Rule,
    /// Violations so far.
    pub(crate) all: Vec<Violation>,
}

impl Findings {
    /// Nothing yet.
    pub(crate) fn of(rule: Rule) -> Self {
        Self { rule, all: Vec::new() }
    }

    /// Adds one; an equal one is not repeated.
    pub(crate) fn add(&mut self, pod: Option<&str>, place: Option<&str>, fault: Fault) {
        let violation = Violation { rule: self.rule, pod: pod.map(Into::into), place: place.map(Into::into), fault };
        if !self.all.contains(&violation) {
            self.all.push(violation);
        }
    }
}

/// A [`Fault::Exceeds`].
pub(crate) fn exceeds(what: impl Into<String>, found: impl ToString, allowed: impl ToString) -> Fault {
    Fault::Exceeds { what: what.into(), found: found.to_string(), allowed: allowed.to_string() }
}

/// A [`Fault::Lacks`].
pub(crate) fn lacks(what: impl Into<String>, found: impl ToString, needed: impl ToString) -> Fault {
    Fault::Lacks { what: what.into(), found: found.to_string(), needed: needed.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_names_rule_pod_place_and_numbers() {
        let mut findings = Findings::of(Rule::Fit);
        for _ in 0..2 {
            findings.add(Some("default/p"), Some("claim 0"), exceeds("cpu of c-4x", 5, "3.9"));
        }
        let text: Vec<String> = findings.all.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["Fit: default/p on claim 0: cpu of c-4x: 5 of at most 3.9"]);
    }
}
