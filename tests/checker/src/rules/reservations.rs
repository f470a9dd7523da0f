//! Capacity reservations are not exceeded: no more claims hold a reservation than it has instances left (the smallest
//! number that any offering states for it); a claim holds only reservations that one of its instance types can draw on;
//! and one that can be had only as reserved capacity holds one.

use std::collections::BTreeMap;

use crate::model::machine::{instance_type, machines, pool, reservation};
use crate::model::world::{World, claim_requirements};
use crate::violation::{Fault, Findings, Rule, Violation, exceeds};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Reservations);
    let mut holders: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, claim) in world.answer.claims.iter().enumerate() {
        let name = format!("claim {index}");
        let Some(pool) = pool(world.problem, &claim.node_pool) else { continue };
        let kinds = claim.instance_types.iter().filter_map(|name| instance_type(world.problem, name));
        let ways: Vec<_> = kinds.flat_map(|kind| machines(pool, &claim_requirements(claim), kind, &name)).collect();
        let drawn: Vec<Option<&str>> =
            ways.iter().filter_map(|m| m.made_from).map(|(_, offering)| reservation(offering)).collect();
        for (position, id) in claim.reservations.iter().enumerate() {
            if !claim.reservations.iter().take(position).any(|earlier| earlier == id) {
                *holders.entry(id).or_default() += 1;
            }
            if !drawn.contains(&Some(id.as_str())) {
                let fault = Fault::Conflict(format!("it holds reservation {id}, which it cannot draw on"));
                found.add(None, Some(&name), fault);
            }
        }
        if claim.reservations.is_empty() && !drawn.is_empty() && drawn.iter().all(Option::is_some) {
            let fault = Fault::Missing("it can be had as reserved capacity only, and holds no reservation".into());
            found.add(None, Some(&name), fault);
        }
    }
    for (id, holders) in holders {
        let left = left(world, id);
        if holders > left {
            found.add(None, None, exceeds(format!("claims that hold reservation {id}"), holders, left));
        }
    }
    found.all
}

/// Instances left in a reservation.
pub(crate) fn left(world: &World<'_>, id: &str) -> u32 {
    let offerings = world.problem.instance_types.iter().flat_map(|kind| &kind.offerings);
    offerings.filter(|offering| reservation(offering) == Some(id)).map(|o| o.reservation_capacity).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, reserved};
    use serde_json::json;

    #[test]
    fn a_reservation_has_as_many_holders_as_instances() {
        let case = reserved(Case::new(), 1).pending("p", json!({})).pending("q", json!({}));
        let held = |pod: &str, id: &str| {
            let mut claim = claim("default", &["c-4x"], &[pod]);
            claim["reservations"] = json!([id]);
            claim
        };
        assert!(case.judged(check, json!({"claims": [held("p", "r-1")]})).is_empty());
        let wrong = case.judged(check, json!({"claims": [held("p", "r-1"), held("q", "r-1")]}));
        assert_eq!(wrong, ["Reservations: claims that hold reservation r-1: 2 of at most 1"]);
        assert!(!case.judged(check, json!({"claims": [held("p", "r-2")]})).is_empty());
    }

    #[test]
    fn reserved_capacity_alone_needs_a_reservation() {
        let case = reserved(Case::new(), 1).pending("p", json!({}));
        let mut claim = claim("default", &["c-4x"], &["p"]);
        assert!(case.judged(check, json!({"claims": [claim.clone()]})).is_empty());
        claim["requirements"] =
            json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]}]);
        assert_eq!(case.judged(check, json!({"claims": [claim]})).len(), 1);
    }
}
