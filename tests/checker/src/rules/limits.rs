//! NodePools stay within their limits: what a pool's nodes have, and each claim of it charged with the largest of its
//! instance types by resource, together; `nodes` bounds their number. A limit that is exceeded already is broken only by
//! a claim that adds to it. Nodes being deleted do not count.

use std::rc::Rc;

use mortise_problem::InstanceType;
use mortise_problem::api::NodePool;

use crate::model::machine::{instance_type, pool_name};
use crate::model::place::Place;
use crate::model::quantity::{ONE, Resources, add, raise, resources, show};
use crate::model::world::World;
use crate::violation::{Findings, Rule, Violation, exceeds};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Limits);
    for pool in &world.problem.node_pools {
        let added = charged(world, pool);
        let mut sum = used(world, pool);
        add(&mut sum, &added);
        for (name, limit) in limits(pool) {
            let (sum, added) = (sum.get(&name).copied().unwrap_or_default(), added.get(&name).copied());
            if added.unwrap_or_default() > 0 && sum > limit {
                let place = format!("NodePool {}", pool_name(pool));
                found.add(None, Some(&place), exceeds(name, show(sum), show(limit)));
            }
        }
    }
    found.all
}

/// Whether a node of this type could be added to the pool if it were the only one.
pub(crate) fn fits_in_limits(world: &World<'_>, pool: &NodePool, kind: &InstanceType) -> bool {
    let mut sum = used(world, pool);
    let mut added = resources(&kind.capacity);
    added.insert("nodes".into(), ONE);
    add(&mut sum, &added);
    limits(pool).iter().all(|(name, limit)| {
        added.get(name).copied().unwrap_or_default() <= 0 || sum.get(name).copied().unwrap_or_default() <= *limit
    })
}

fn limits(pool: &NodePool) -> Resources {
    resources(pool.spec.limits.iter().flatten())
}

/// What the pool's nodes have now.
fn used(world: &World<'_>, pool: &NodePool) -> Resources {
    let mut sum = Resources::new();
    let own = |place: &&Rc<Place<'_>>| place.pool.as_deref() == Some(pool_name(pool));
    for place in world.places.iter().filter(own).filter(|place| place.claim.is_none() && !place.going) {
        add(&mut sum, &resources(&place.capacity));
        add(&mut sum, &[("nodes".into(), ONE)].into());
    }
    sum
}

/// What the answer's claims of the pool may add at most.
fn charged(world: &World<'_>, pool: &NodePool) -> Resources {
    let mut sum = Resources::new();
    for claim in world.answer.claims.iter().filter(|claim| claim.node_pool == pool_name(pool)) {
        let mut largest: Resources = [("nodes".into(), ONE)].into();
        for kind in claim.instance_types.iter().filter_map(|name| instance_type(world.problem, name)) {
            raise(&mut largest, &resources(&kind.capacity));
        }
        add(&mut sum, &largest);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, node_json};
    use serde_json::json;

    #[test]
    fn claims_are_charged_by_their_largest_type() {
        let mut case = Case::new().pending("p", json!({})).pending("q", json!({}));
        let two =
            |types: &[&str]| json!({"claims": [claim("default", types, &["p"]), claim("default", types, &["q"])]});
        case.problem["nodePools"][0]["spec"]["limits"] = json!({"cpu": "8"});
        assert!(case.judged(check, two(&["c-4x"])).is_empty());
        let wrong = case.judged(check, two(&["c-4x", "c-8x"]));
        assert_eq!(wrong, ["Limits: NodePool default: cpu: 16 of at most 8"]);
    }

    #[test]
    fn nodes_count_and_those_going_do_not() {
        let mut case = Case::new().node(node_json("n", "zone-1")).pending("p", json!({}));
        case.problem["nodePools"][0]["spec"]["limits"] = json!({"nodes": "1"});
        let answer = json!({"claims": [claim("default", &["c-4x"], &["p"])]});
        assert_eq!(case.judged(check, answer.clone()), ["Limits: NodePool default: nodes: 2 of at most 1"]);
        case.problem["nodes"][0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(case.judged(check, answer).is_empty());
    }
}
