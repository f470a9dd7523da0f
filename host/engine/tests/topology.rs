//! Pods that look at one another, in random small worlds: an independent naive check of every plan, and what must not
//! change it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may stop")]

#[path = "property/generate.rs"]
mod generate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mortise_engine::decision::Schedule;
use mortise_engine::pod::{Pod, PodKey, PodShape, PodTerm};
use mortise_engine::policy::NoPolicy;
use mortise_engine::requirement::{Requirements, key};
use mortise_engine::schedule::schedule;
use mortise_engine::selector::LabelSelector;
use mortise_engine::snapshot::{Options, Snapshot};
use proptest::prelude::*;

/// A pod at its place.
struct Placed<'a> {
    shape: &'a PodShape,
    /// Name of the node, or number of the claim.
    host: String,
    labels: Place<'a>,
}

/// What is known of the labels of a place.
enum Place<'a> {
    Node(&'a BTreeMap<Arc<str>, Arc<str>>),
    Claim(Requirements, &'a BTreeMap<Arc<str>, Arc<str>>),
}

impl Placed<'_> {
    /// The one value of a key, if it is known.
    fn domain(&self, name: &str) -> Option<String> {
        if name == key::HOSTNAME {
            return Some(self.host.clone());
        }
        match &self.labels {
            Place::Node(labels) => labels.get(name).map(ToString::to_string),
            Place::Claim(requirements, labels) => {
                let values = requirements.get(name).filter(|values| !values.complement && values.values.len() == 1);
                let pinned = values.and_then(|values| values.values.first()).map(ToString::to_string);
                pinned.or_else(|| labels.get(name).map(ToString::to_string))
            }
        }
    }

    /// Both may come to be in one domain.
    fn may_meet(&self, other: &Self, name: &str) -> bool {
        if self.host == other.host {
            return name == key::HOSTNAME || self.may_have(name);
        }
        match (self.domain(name), other.domain(name)) {
            (Some(mine), Some(theirs)) => mine == theirs,
            (Some(value), None) => other.may_be(name, &value),
            (None, Some(value)) => self.may_be(name, &value),
            (None, None) => false,
        }
    }

    fn may_have(&self, name: &str) -> bool {
        match &self.labels {
            Place::Node(labels) => labels.contains_key(name),
            Place::Claim(..) => self.domain(name).is_some(),
        }
    }

    fn may_be(&self, name: &str, value: &str) -> bool {
        match &self.labels {
            Place::Node(_) => false,
            Place::Claim(requirements, _) => {
                let known = [key::ZONE, key::CAPACITY_TYPE, key::ARCH].contains(&name);
                requirements.get(name).map_or(known, |values| values.has(value))
            }
        }
    }
}

fn placed<'a>(snapshot: &'a Snapshot, result: &'a Schedule) -> Vec<Placed<'a>> {
    let shape = |pod: &PodKey| -> &'a PodShape {
        let pending = snapshot.pending.iter().find(|one| one.key == *pod).map(|one| &one.shape);
        let moving = || snapshot.nodes.values().flat_map(|node| &node.pods).find(|one| one.key == *pod);
        pending.unwrap_or_else(|| &moving().unwrap().shape)
    };
    let mut out = Vec::new();
    for (at, claim) in result.claims.iter().enumerate() {
        for pod in &claim.pods {
            let labels = Place::Claim(Requirements::new(&claim.requirements), &claim.labels);
            out.push(Placed { shape: shape(pod), host: format!("claim {at}"), labels });
        }
    }
    for (name, pods) in &result.nominations {
        let labels = &snapshot.nodes[name].labels;
        out.extend(pods.iter().map(|pod| Placed {
            shape: shape(pod),
            host: name.to_string(),
            labels: Place::Node(labels),
        }));
    }
    for (name, node) in &snapshot.nodes {
        let running = node.pods.iter().filter(|_| !node.deleting).map(|pod| Placed {
            shape: &pod.shape,
            host: name.to_string(),
            labels: Place::Node(&node.labels),
        });
        out.extend(running);
    }
    out
}

fn selects(selector: &Option<LabelSelector>, shape: &PodShape) -> bool {
    selector.as_ref().is_some_and(|selector| selector.matches(&shape.labels))
}

fn meant(term: &PodTerm, shape: &PodShape) -> bool {
    // Every pod of these worlds is in one namespace.
    selects(&term.selector, shape)
}

fn check(snapshot: &Snapshot, result: &Schedule) -> Result<(), TestCaseError> {
    let all = placed(snapshot, result);
    let running = all.len()
        - result.claims.iter().map(|claim| claim.pods.len()).sum::<usize>()
        - result.nominations.iter().map(|(_, pods)| pods.len()).sum::<usize>();
    let new = all.len() - running;
    for (at, pod) in all.iter().enumerate() {
        for term in &pod.shape.pod_anti_affinity {
            for (other_at, other) in all.iter().enumerate().filter(|(_, other)| meant(term, other.shape)) {
                // What ran together before is not ours to part.
                if at != other_at && (at < new || other_at < new) {
                    prop_assert!(
                        !pod.may_meet(other, &term.topology_key),
                        "{:?} on {} and {:?} on {} meet in {}",
                        pod.shape.labels,
                        pod.host,
                        other.shape.labels,
                        other.host,
                        term.topology_key
                    );
                }
            }
        }
        for term in pod.shape.pod_affinity.iter().filter(|term| at < new && !meant(term, pod.shape)) {
            let domain = pod.domain(&term.topology_key);
            let joined = all.iter().any(|other| meant(term, other.shape) && other.domain(&term.topology_key) == domain);
            let open = domain.is_none() && all.iter().any(|other| meant(term, other.shape));
            prop_assert!(joined || open, "{} joins nobody in {}", pod.host, term.topology_key);
        }
    }
    check_spread(&all, new)
}

/// Where all pods that count have the constraint themselves, and none ran before, the domains with pods are even.
fn check_spread(all: &[Placed<'_>], new: usize) -> Result<(), TestCaseError> {
    for spread in all.iter().flat_map(|pod| &pod.shape.spread).filter(|spread| !spread.schedule_anyway) {
        let counted: Vec<usize> = (0..all.len()).filter(|at| selects(&spread.selector, all[*at].shape)).collect();
        let strict = |at: &usize| {
            *at < new && all[*at].shape.spread.contains(spread) && {
                let first = all[counted[0]].shape;
                let shape = all[*at].shape;
                (&shape.node_selector, &shape.required_affinity, &shape.tolerations)
                    == (&first.node_selector, &first.required_affinity, &first.tolerations)
            }
        };
        if counted.is_empty() || !counted.iter().all(strict) {
            continue;
        }
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for at in counted {
            let domain = all[at].domain(&spread.topology_key);
            prop_assert!(domain.is_some(), "a spread pod has no domain in {}", spread.topology_key);
            *counts.entry(domain.unwrap()).or_default() += 1;
        }
        let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
        prop_assert!(most - least <= spread.max_skew, "{:?} of {:?}", counts, spread);
    }
    Ok(())
}

fn text(result: &Schedule) -> String {
    serde_json::to_string(result).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn plans_keep_the_rules(snapshot in generate::social()) {
        let result = schedule(&snapshot, &Options::default(), &NoPolicy);
        check(&snapshot, &result)?;
        let places = result.claims.iter().flat_map(|claim| &claim.pods);
        let places = places.chain(result.nominations.iter().flat_map(|(_, pods)| pods));
        let seen: BTreeSet<&PodKey> = places.chain(result.unplaced.iter().map(|(pod, _)| pod)).collect();
        prop_assert_eq!(seen.len(), snapshot.pending.len());
    }

    #[test]
    fn the_order_of_input_does_not_matter(snapshot in generate::social()) {
        let result = schedule(&snapshot, &Options::default(), &NoPolicy);
        let mut reversed = snapshot;
        reversed.pending.reverse();
        reversed.nodepools.reverse();
        prop_assert_eq!(text(&result), text(&schedule(&reversed, &Options::default(), &NoPolicy)));
    }

    #[test]
    fn folding_changes_nothing(snapshot in generate::social()) {
        let folded = schedule(&snapshot, &Options::default(), &NoPolicy);
        let mut single = snapshot;
        for (at, pod) in single.pending.iter_mut().enumerate() {
            let mut shape = (*pod.shape).clone();
            shape.labels.insert("app-of-nobody".into(), at.to_string().into());
            pod.shape = Arc::new(shape);
        }
        prop_assert_eq!(text(&folded), text(&schedule(&single, &Options::default(), &NoPolicy)));
    }

    #[test]
    fn a_preference_about_pods_keeps_no_pod_pending(snapshot in generate::social()) {
        let mut soft = snapshot.clone();
        let mut plain = snapshot;
        for (soft, plain) in soft.pending.iter_mut().zip(&mut plain.pending) {
            let mut shape = (*soft.shape).clone();
            shape.spread.iter_mut().for_each(|spread| spread.schedule_anyway = true);
            let terms = |list: &mut Vec<PodTerm>| std::mem::take(list).into_iter().map(|term| (1, term)).collect::<Vec<_>>();
            shape.preferred_pod_affinity.extend(terms(&mut shape.pod_affinity));
            shape.preferred_pod_anti_affinity.extend(terms(&mut shape.pod_anti_affinity));
            soft.shape = Arc::new(shape.clone());
            shape.spread.clear();
            shape.preferred_pod_affinity.clear();
            shape.preferred_pod_anti_affinity.clear();
            plain.shape = Arc::new(shape);
        }
        // Each alone: together they may compete for limits.
        for (soft_pod, plain_pod) in soft.pending.iter().zip(&plain.pending) {
            let alone = |snapshot: &Snapshot, pod: &Pod| {
                let world = Snapshot { pending: vec![pod.clone()], ..snapshot.clone() };
                schedule(&world, &Options::default(), &NoPolicy).unplaced.len()
            };
            prop_assert_eq!(alone(&soft, soft_pod), alone(&plain, plain_pod));
        }
    }

    #[test]
    fn an_unrelated_broken_pod_changes_nothing(snapshot in generate::social()) {
        let before = schedule(&snapshot, &Options::default(), &NoPolicy);
        let mut broken = snapshot;
        let term = PodTerm { topology_key: key::ZONE.into(), selector: None, ..PodTerm::default() };
        broken.pending.push(Pod {
            key: PodKey { namespace: "elsewhere".into(), name: "broken".into(), uid: "0".into() },
            shape: Arc::new(PodShape {
                namespace: "elsewhere".into(),
                labels: BTreeMap::from([("app".into(), "web".into())]),
                pod_affinity: vec![term],
                ..PodShape::default()
            }),
            created_unix_ms: 0,
            buffer: None,
        });
        let after = schedule(&broken, &Options::default(), &NoPolicy);
        prop_assert_eq!(&before.claims, &after.claims);
        prop_assert_eq!(&before.nominations, &after.nominations);
        prop_assert_eq!(before.unplaced.len() + 1, after.unplaced.len());
    }
}
