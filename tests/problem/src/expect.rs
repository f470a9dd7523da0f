//! What must hold of any right answer to one of the small problems of `tests/parity/problems`.

use std::collections::{BTreeMap, BTreeSet};

use std::sync::Arc;

use mortise_api::requirement::Operator;
use serde::Deserialize;
use serde_json::Value;

use crate::{Answer, Claim, Problem, ReadError};

/// A small problem, and what must hold of its answers.
#[derive(Clone, Debug)]
pub struct Example {
    /// The problem.
    pub problem: Problem,
    /// What must hold.
    pub expect: Expectation,
}

impl Example {
    /// Reads one.
    ///
    /// # Errors
    /// As [`Problem::read`], of either part.
    pub fn read(json: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Parts {
            problem: Value,
            expect: Expectation,
        }
        let parts: Parts = serde_json::from_str(json)?;
        Ok(Self { problem: Problem::read(&parts.problem.to_string())?, expect: parts.expect })
    }
}

/// What must hold of an answer. What is left out may be anything, except where noted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Expectation {
    /// Number of new claims.
    pub nodes: Span,
    /// Number of pods placed, without those of buffers.
    pub placed: usize,
    /// Number of buffers' pods placed.
    pub buffer_pods: usize,
    /// Number of buffers' pods not placed.
    pub unplaced_buffers: usize,
    /// Pods that have an error.
    pub unplaced: Vec<String>,
    /// Nodes that get pods, exactly these.
    pub existing: Option<BTreeMap<String, Vec<String>>>,
    /// Pairs of pods that share no node.
    pub apart: Vec<[String; 2]>,
    /// Pairs of pods that share a node.
    pub together: Vec<[String; 2]>,
    /// How many values of a label the claims are settled on.
    pub domains: BTreeMap<String, usize>,
    /// NodePool of a pod's claim.
    pub pools: BTreeMap<String, String>,
    /// Zones that a pod's claim is among.
    pub zones: BTreeMap<String, Vec<String>>,
    /// Instance types that a pod's claim is among.
    pub types: BTreeMap<String, Vec<String>>,
    /// First instance type of a pod's claim.
    pub cheapest: BTreeMap<String, String>,
    /// Requests of a pod's claim, in the canonical form of quantities.
    pub requests: BTreeMap<String, BTreeMap<String, String>>,
    /// Reservations that a pod's claim holds.
    pub reserved: BTreeMap<String, Vec<String>>,
    /// Karpenter's release that first does so.
    pub since: Option<String>,
    /// Why it must hold.
    pub why: String,
}

/// A number, or the least and the most.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Span {
    /// Exactly.
    One(usize),
    /// From, to.
    Between(usize, usize),
}

impl Default for Span {
    fn default() -> Self {
        Self::One(0)
    }
}

impl Span {
    fn holds(self, number: usize) -> bool {
        match self {
            Self::One(exactly) => number == exactly,
            Self::Between(least, most) => (least..=most).contains(&number),
        }
    }
}

/// An answer, by pod.
struct Placed<'a> {
    host: BTreeMap<&'a str, String>,
    claim: BTreeMap<&'a str, &'a Claim>,
}

impl Expectation {
    /// What of it does not hold, in words; empty for a right answer.
    pub fn breaches(&self, answer: &Answer) -> Vec<String> {
        let mut found = Vec::new();
        let placed = Placed::of(answer, &mut found);
        if let Some(error) = &answer.error {
            found.push(format!("no answer: {error}"));
        }
        self.count(answer, &placed, &mut found);
        self.neighbours(answer, &placed, &mut found);
        self.claims(&placed, &mut found);
        for (key, want) in &self.domains {
            let settled: BTreeSet<_> = answer.claims.iter().filter_map(|claim| settled(claim, key)).collect();
            if settled.len() != *want {
                found.push(format!("claims are settled on {} values of {key}, not {want}", settled.len()));
            }
        }
        found
    }

    fn count(&self, answer: &Answer, placed: &Placed<'_>, found: &mut Vec<String>) {
        let buffers = placed.host.keys().filter(|pod| pod.contains("/capacity-buffer-")).count();
        if !self.nodes.holds(answer.claims.len()) {
            found.push(format!("{} new claims, not {:?}", answer.claims.len(), self.nodes));
        }
        for (what, got, want) in [
            ("pods", placed.host.len() - buffers, self.placed),
            ("buffers' pods", buffers, self.buffer_pods),
            ("buffers' pods not", answer.unplaced_buffers.len(), self.unplaced_buffers),
        ] {
            if got != want {
                found.push(format!("{what} placed: {got}, not {want}"));
            }
        }
        found.extend(
            self.unplaced.iter().filter(|pod| !answer.errors.contains_key(*pod)).map(|pod| format!("{pod}: no error")),
        );
    }

    fn neighbours(&self, answer: &Answer, placed: &Placed<'_>, found: &mut Vec<String>) {
        if let Some(existing) = &self.existing {
            let got: BTreeMap<_, _> = answer.existing.iter().map(|of| (of.node.clone(), of.pods.clone())).collect();
            if got != *existing {
                found.push(format!("existing nodes get {got:?}, not {existing:?}"));
            }
        }
        let host = |pod: &String| placed.host.get(pod.as_str());
        for (pairs, share) in [(&self.apart, false), (&self.together, true)] {
            for [a, b] in pairs {
                if (host(a) == host(b)) != share {
                    found.push(format!("{a} and {b}: on {:?} and {:?}", host(a), host(b)));
                }
            }
        }
    }

    fn claims(&self, placed: &Placed<'_>, found: &mut Vec<String>) {
        let mut check = |pod: &String, what: &str, holds: &dyn Fn(&Claim) -> bool| {
            let claim = placed.claim.get(pod.as_str());
            if !claim.is_some_and(|claim| holds(claim)) {
                found.push(format!("{pod}: {what} of its claim {claim:?}"));
            }
        };
        for (pod, pool) in &self.pools {
            check(pod, "NodePool", &|claim| claim.node_pool == *pool);
        }
        for (pod, zones) in &self.zones {
            check(pod, "zones", &|claim| {
                let got = values(claim, "topology.kubernetes.io/zone");
                !got.is_empty() && got.iter().all(|zone| zones.iter().any(|of| **of == **zone))
            });
        }
        for (pod, types) in &self.types {
            check(pod, "types", &|claim| {
                !claim.instance_types.is_empty() && claim.instance_types.iter().all(|name| types.contains(name))
            });
        }
        for (pod, first) in &self.cheapest {
            check(pod, "cheapest type", &|claim| claim.instance_types.first() == Some(first));
        }
        for (pod, requests) in &self.requests {
            check(pod, "requests", &|claim| {
                requests.iter().all(|(name, want)| claim.requests.get(name).is_some_and(|got| got.0 == *want))
            });
        }
        for (pod, ids) in &self.reserved {
            check(pod, "reservations", &|claim| claim.reservations == *ids);
        }
    }
}

impl<'a> Placed<'a> {
    fn of(answer: &'a Answer, found: &mut Vec<String>) -> Self {
        let mut placed = Self { host: BTreeMap::new(), claim: BTreeMap::new() };
        let new = answer.claims.iter().enumerate().map(|(at, claim)| (format!("claim {at}"), &claim.pods, Some(claim)));
        let old = answer.existing.iter().map(|of| (of.node.clone(), &of.pods, None));
        for (host, pods, claim) in new.chain(old) {
            for pod in pods {
                if placed.host.insert(pod, host.clone()).is_some() {
                    found.push(format!("{pod} is placed twice"));
                }
                if let Some(claim) = claim {
                    placed.claim.insert(pod, claim);
                }
            }
        }
        placed
    }
}

fn values<'a>(claim: &'a Claim, key: &str) -> &'a [Arc<str>] {
    claim.requirements.iter().find(|of| *of.key == *key && of.operator == Operator::In).map_or(&[], |of| &of.values)
}

fn settled<'a>(claim: &'a Claim, key: &str) -> Option<&'a Arc<str>> {
    match values(claim, key) {
        [only] => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<(String, Example)> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../parity/problems");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files
            .map(|file| {
                let json = std::fs::read_to_string(&file).unwrap();
                let example = Example::read(&json).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                (example.problem.name.clone(), example)
            })
            .collect()
    }

    #[test]
    fn every_example_is_read_and_expects_something() {
        let examples = examples();
        assert!(examples.len() >= 20, "{}", examples.len());
        for (name, example) in examples {
            assert!(!example.expect.breaches(&Answer::default()).is_empty(), "{name} expects nothing");
            assert!(!example.expect.why.is_empty(), "{name}: why?");
        }
    }

    #[test]
    fn a_right_answer_breaches_nothing_and_each_flaw_is_named() {
        let (_, example) = examples().into_iter().find(|(name, _)| name == "zone-spread").unwrap();
        let claim = |at: u32| {
            format!(
                r#"{{"nodePool": "default", "instanceTypes": ["small"], "pods": ["default/p-{at}"], "requirements":
                [{{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-{at}"]}}]}}"#
            )
        };
        let right = format!(r#"{{"name": "zone-spread", "claims": [{}, {}, {}]}}"#, claim(1), claim(2), claim(3));
        let breaches = |json: &str| example.expect.breaches(&Answer::read(json).unwrap());
        assert_eq!(breaches(&right), Vec::<String>::new());
        assert!(breaches(&right.replace("zone-3", "zone-2"))[0].contains("2 values"));
        assert!(breaches(&right.replace("p-3", "p-2")).contains(&"default/p-2 is placed twice".to_owned()));
        assert!(breaches(&right.replace(r#""name""#, r#""error": "oh", "name""#))[0].contains("oh"));
    }
}
