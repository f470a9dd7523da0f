//! Whether a pod that an answer leaves pending could have gone somewhere, the rest of the answer as it is.

use std::collections::BTreeSet;

use mortise_problem::api::labels::{CAPACITY_RESERVATION_ID, CAPACITY_TYPE, HOSTNAME, ZONE, capacity_type, normalize};
use mortise_problem::api::requirement::{Operator, Requirement};
use mortise_problem::k8s_openapi::api::core::v1::Pod;
use mortise_problem::{Answer, Claim, Existing, Problem};

use crate::model::complete;
use crate::model::machine::{is_usable, pool_name, reservation};
use crate::model::pod::{affinity_terms, asks_for_devices};
use crate::model::selector::term_matches;
use crate::model::world::World;
use crate::rules::{self, pod_affinity, reservations, spread};
use crate::violation::{Rule, Violation};

/// Where a pod could go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// On a node that exists or is in flight.
    Node(String),
    /// On a claim of the answer, by index.
    Claim(usize),
    /// On a new claim.
    New {
        /// Of this NodePool.
        node_pool: String,
        /// With these instance types left.
        instance_types: Vec<String>,
    },
}

/// Looks for a place for a pod, `<namespace>/<name>`, that the answer does not place: each node, each claim, and a new
/// claim of each NodePool, narrowed to the pod's requirements and, where topology asks for it, to each single domain. A
/// place is one if nothing is wrong with the answer that was not wrong before. A claim has to have room for every
/// DaemonSet that may run on nodes of its NodePool: nobody is expected to find the zone or market where one stays away.
/// `None` = there is none, or it cannot be judged (no such pod; it asks for ResourceClaims).
pub fn can_place(problem: &Problem, answer: &Answer, pod: &str) -> Option<Where> {
    let problem = &complete(problem);
    let mut without = answer.clone();
    without.errors.remove(pod);
    without.unplaced_buffers.retain(|buffer| buffer != pod);
    let world = World::new(problem, &without);
    let found = *world.pods.get(pod).filter(|pod| !asks_for_devices(pod))?;
    let mut before = rules::check(&world);
    before.retain(|v| v.rule != Rule::Accounting || v.pod.as_deref() != Some(pod));
    let search = Search { problem, without: &without, before, key: pod, pod: found, world: &world };
    search.nodes().or_else(|| search.claims()).or_else(|| search.new_claims())
}

struct Search<'a> {
    problem: &'a Problem,
    without: &'a Answer,
    before: Vec<Violation>,
    key: &'a str,
    pod: &'a Pod,
    world: &'a World<'a>,
}

impl Search<'_> {
    fn is_no_worse(&self, world: &World<'_>) -> bool {
        rules::check(world).iter().all(|violation| self.before.contains(violation))
    }

    fn nodes(&self) -> Option<Where> {
        let nodes = self.world.places.iter().filter(|place| place.claim.is_none() && !place.going);
        nodes.map(|place| &place.name).find_map(|name| {
            let mut answer = self.without.clone();
            match answer.existing.iter_mut().find(|existing| existing.node == *name) {
                Some(existing) => existing.pods.push(self.key.into()),
                None => answer.existing.push(Existing { node: name.clone(), pods: vec![self.key.into()] }),
            }
            self.is_no_worse(&World::new(self.problem, &answer)).then(|| Where::Node(name.clone()))
        })
    }

    fn claims(&self) -> Option<Where> {
        (0..self.without.claims.len()).find_map(|index| {
            let claim = self.without.claims.get(index)?;
            self.narrowed(claim, index).map(|_| Where::Claim(index))
        })
    }

    fn new_claims(&self) -> Option<Where> {
        let index = self.without.claims.len();
        self.problem.node_pools.iter().filter(|pool| is_usable(pool)).find_map(|pool| {
            let name = pool_name(pool);
            let offered = self.problem.instance_types.iter().map(|kind| &kind.name);
            let open = Claim {
                node_pool: name.to_owned(),
                requirements: pool.spec.template.spec.requirements.clone(),
                instance_types: offered.filter(|kind| self.problem.is_offered(name, kind)).cloned().collect(),
                ..Claim::default()
            };
            let (reserved, held) = (self.reserved(&open), open.clone());
            let claim = self.narrowed(&held, index).or_else(|| self.narrowed(&reserved?, index))?;
            Some(Where::New { node_pool: claim.node_pool, instance_types: claim.instance_types })
        })
    }

    /// The claim with every reservation that has an instance left, if there is one.
    fn reserved(&self, open: &Claim) -> Option<Claim> {
        let offerings = self.problem.instance_types.iter().flat_map(|kind| &kind.offerings);
        let ids: BTreeSet<&str> = offerings.filter(|o| o.available).filter_map(reservation).collect();
        let holders = |id: &str| self.without.claims.iter().filter(|c| c.reservations.iter().any(|r| r == id)).count();
        let free: Vec<String> = ids
            .into_iter()
            .filter(|id| holders(id) < usize::try_from(reservations::left(self.world, id)).unwrap_or(0))
            .map(str::to_owned)
            .collect();
        let mut claim = open.clone();
        claim.requirements.push(Requirement::new(CAPACITY_TYPE, Operator::In, [capacity_type::RESERVED]));
        claim.requirements.push(Requirement::new(
            CAPACITY_RESERVATION_ID,
            Operator::In,
            free.iter().map(String::as_str),
        ));
        claim.reservations = free;
        (!claim.reservations.is_empty()).then_some(claim)
    }

    /// The claim with the pod on it, narrowed until nothing is wrong.
    fn narrowed(&self, claim: &Claim, index: usize) -> Option<Claim> {
        for own in self.pod_requirements() {
            let mut with = claim.clone();
            with.pods.push(self.key.into());
            with.requests.clear();
            with.requirements.extend(own);
            for pins in self.pins(&with, index) {
                let mut pinned = with.clone();
                pinned.requirements.extend(pins);
                let all = std::mem::take(&mut pinned.instance_types);
                pinned.instance_types = all.into_iter().filter(|kind| self.type_holds(&pinned, index, kind)).collect();
                if pinned.instance_types.is_empty() {
                    continue;
                }
                let held = std::mem::take(&mut pinned.reservations);
                pinned.reservations = held.into_iter().filter(|id| self.can_draw(&pinned, index, id)).collect();
                let answer = self.with_claim(&pinned, index);
                if self.is_no_worse(&self.world.with_claim(&answer, index)) {
                    return Some(pinned);
                }
            }
        }
        None
    }

    fn with_claim(&self, claim: &Claim, index: usize) -> Answer {
        let mut answer = self.without.clone();
        match answer.claims.get_mut(index) {
            Some(old) => *old = claim.clone(),
            None => answer.claims.push(claim.clone()),
        }
        answer
    }

    /// Whether nothing is wrong with the claim as far as it is about one instance type.
    fn type_holds(&self, claim: &Claim, index: usize, kind: &str) -> bool {
        let alone = Claim { instance_types: vec![kind.to_owned()], ..claim.clone() };
        let answer = self.with_claim(&alone, index);
        let world = self.world.with_claim(&answer, index);
        let place = format!("claim {index}");
        let about =
            |violation: &Violation| violation.place.as_deref() == Some(&place) || violation.rule == Rule::Limits;
        [
            rules::instance_types::check,
            rules::fit::check,
            rules::taints::check,
            rules::node_affinity::check,
            rules::volumes::check,
            rules::ports::check,
            rules::limits::check,
        ]
        .iter()
        .flat_map(|rule| rule(&world))
        .filter(about)
        .all(|violation| self.before.contains(&violation))
            && self.type_holds_all_daemons(&alone, index, &place)
    }

    /// Whether the type has room on a node of the NodePool about which nothing is decided.
    fn type_holds_all_daemons(&self, alone: &Claim, index: usize, place: &str) -> bool {
        if self.world.daemons.is_empty() {
            return true;
        }
        let open = Claim { requirements: Vec::new(), ..alone.clone() };
        let answer = self.with_claim(&open, index);
        let world = self.world.with_claim(&answer, index);
        rules::fit::check(&world).iter().all(|violation| violation.place.as_deref() != Some(place))
    }

    fn can_draw(&self, claim: &Claim, index: usize, id: &str) -> bool {
        let answer = self.with_claim(claim, index);
        let world = self.world.with_claim(&answer, index);
        let own = world.places.iter().filter(|place| place.claim == Some(index));
        own.flat_map(|place| &place.machines)
            .filter_map(|machine| machine.made_from)
            .any(|(_, offering)| reservation(offering) == Some(id))
    }

    /// The pod's own requirements, once for each term of its node affinity.
    fn pod_requirements(&self) -> Vec<Vec<Requirement>> {
        let selector = self.pod.spec.iter().flat_map(|spec| spec.node_selector.iter().flatten());
        let fixed: Vec<Requirement> =
            selector.map(|(key, value)| Requirement::new(normalize(key), Operator::In, [value.as_str()])).collect();
        let Some(terms) = affinity_terms(self.pod) else { return vec![fixed] };
        let of_term = |expressions: &[mortise_problem::k8s_openapi::api::core::v1::NodeSelectorRequirement]| {
            let required = expressions.iter().map(|e| {
                let values = e.values.iter().flatten().map(String::as_str);
                Requirement::new(normalize(&e.key), Operator::from(e.operator.as_str()), values)
            });
            fixed.iter().cloned().chain(required).collect()
        };
        terms.iter().map(|term| of_term(term.match_expressions.as_deref().unwrap_or_default())).collect()
    }

    /// Requirements that pin the labels that topology is about to single values: none first, then every combination.
    fn pins(&self, claim: &Claim, index: usize) -> Vec<Vec<Requirement>> {
        let answer = self.with_claim(claim, index);
        let world = self.world.with_claim(&answer, index);
        let mut all: Vec<Vec<Requirement>> = vec![Vec::new()];
        for key in self.topology_keys() {
            let own = world.places.iter().filter(|place| place.claim == Some(index));
            let values: BTreeSet<String> = own.flat_map(|place| place.domains(&key).values).collect();
            let pinned = all.iter().flat_map(|pins| {
                values.iter().map(|value| {
                    let pin = Requirement::new(&key, Operator::In, [value.as_str()]);
                    pins.iter().cloned().chain([pin]).collect::<Vec<_>>()
                })
            });
            let pinned: Vec<Vec<Requirement>> = pinned.collect();
            all.extend(pinned);
        }
        all
    }

    /// Labels, but for the hostname, that decide whether the pod may be near others or reach its volumes.
    fn topology_keys(&self) -> BTreeSet<String> {
        let others = self.problem.pods.iter().flat_map(|owner| {
            let about = move |term: &&_| term_matches(self.problem, term, owner, self.pod);
            pod_affinity::anti_terms(owner).iter().filter(about)
        });
        let own = pod_affinity::terms(self.pod).iter().chain(pod_affinity::anti_terms(self.pod));
        let mut keys: BTreeSet<String> =
            others.chain(own).map(|term| normalize(&term.topology_key).to_owned()).collect();
        keys.extend(spread::hard(self.pod).map(|c| normalize(&c.topology_key).to_owned()));
        if self.pod.spec.as_ref().is_some_and(|spec| spec.volumes.is_some()) {
            keys.insert(ZONE.into());
        }
        keys.remove(HOSTNAME);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, node_json, reserved, spread, zones};
    use serde_json::{Value, json};

    fn left(case: &Case, mut answer: Value) -> Option<Where> {
        answer["errors"] = json!({"default/p": "no"});
        can_place(&case.problem(), &case.answer(answer), "default/p")
    }

    #[test]
    fn a_node_with_room_is_found_first() {
        let case = Case::new().node(node_json("n", "zone-1")).pending("p", json!({"cpu": "1"}));
        assert_eq!(left(&case, json!({})), Some(Where::Node("n".into())));
    }

    #[test]
    fn a_claim_gives_up_types_that_grow_too_small() {
        let mut case = Case::new().pending("p", json!({"cpu": "3"})).pending("q", json!({"cpu": "3"}));
        case.problem["nodePools"][0]["spec"]["limits"] = json!({"nodes": "1"});
        assert_eq!(
            left(&case, json!({"claims": [claim("default", &["c-4x", "c-8x"], &["q"])]})),
            Some(Where::Claim(0))
        );
        assert_eq!(left(&case, json!({"claims": [claim("default", &["c-4x"], &["q"])]})), None);
    }

    #[test]
    fn a_new_claim_is_pinned_to_a_domain_that_spread_allows() {
        let mut case = Case::new().pending("p", json!({})).pending("q", json!({}));
        for pod in [0, 1] {
            spread(&mut case.problem["pods"][pod], "topology.kubernetes.io/zone", 1);
        }
        let mut first = claim("default", &["c-4x"], &["q"]);
        first["requirements"] = zones(&["zone-1"]);
        let new = Where::New { node_pool: "default".into(), instance_types: vec!["c-4x".into(), "c-8x".into()] };
        assert_eq!(left(&case, json!({"claims": [first.clone()]})), Some(new));
        case.problem["pods"][0]["spec"]["nodeSelector"] = json!({"topology.kubernetes.io/zone": "zone-1"});
        case.problem["pods"][0]["spec"]["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = json!("Ignore");
        assert!(left(&case, json!({"claims": [first]})).is_some());
    }

    #[test]
    fn room_is_left_for_a_daemon_set_that_stays_away_from_some_zone() {
        for (cpu, found) in [("2", true), ("7", false)] {
            let selector = json!({"topology.kubernetes.io/zone": "zone-1"});
            let mut case = Case::new().daemon_set("d", json!({"cpu": "2"}), selector).pending("p", json!({"cpu": cpu}));
            case.problem["pods"][0]["spec"]["nodeSelector"] = json!({"topology.kubernetes.io/zone": "zone-2"});
            assert_eq!(left(&case, json!({})).is_some(), found, "{cpu}");
        }
    }

    #[test]
    fn a_pod_that_nothing_holds_stays() {
        let case = Case::new().pending("p", json!({"cpu": "9"}));
        assert_eq!(left(&case, json!({})), None);
        let mut case = Case::new().pending("p", json!({}));
        case.problem["pods"][0]["spec"]["nodeSelector"] = json!({"example.com/x": "y"});
        assert_eq!(left(&case, json!({})), None);
    }

    #[test]
    fn reserved_capacity_is_taken_while_there_is_some() {
        for (instances, found) in [(1, true), (0, false)] {
            let mut case = reserved(Case::new(), instances).pending("p", json!({}));
            case.problem["nodePools"][0]["spec"]["template"]["spec"]["requirements"] =
                json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]}]);
            assert_eq!(left(&case, json!({})).is_some(), found);
        }
    }
}
