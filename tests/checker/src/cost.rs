//! What an answer costs.

use mortise_problem::{Answer, Problem};

use crate::model::machine::reservation;
use crate::model::world::World;

/// Cheapest available offering of each claim within its requirements, summed, USD per hour. An offering whose price is
/// not known, or that draws on a reservation which the claim does not hold or is used up, is none; a claim without any
/// makes the sum infinite.
pub fn cost(problem: &Problem, answer: &Answer) -> f64 {
    let world = World::new(problem, answer);
    let mut sum = 0.0;
    for place in &world.places {
        let Some(claim) = place.claim.and_then(|index| answer.claims.get(index)) else { continue };
        let prices = place.machines.iter().filter_map(|machine| machine.made_from).filter_map(|(_, offering)| {
            let held = reservation(offering).is_none_or(|id| claim.reservations.iter().any(|held| held == id));
            offering.price.filter(|_| held)
        });
        sum += prices.fold(f64::INFINITY, f64::min);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, reserved, zones};
    use serde_json::json;

    #[test]
    fn the_cheapest_way_of_each_claim_counts() {
        let case = reserved(Case::new(), 1).pending("p", json!({})).pending("q", json!({}));
        let (first, mut second) = (claim("default", &["c-8x", "c-4x"], &["p"]), claim("default", &["c-8x"], &["q"]));
        let of = |claims| cost(&case.problem(), &case.answer(json!({"claims": claims})));
        assert!((of(json!([first])) - 0.1).abs() < 1e-9);
        assert!((of(json!([first, second])) - 0.3).abs() < 1e-9);
        second["requirements"] = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["x"]}]);
        assert!(of(json!([second])).is_infinite());
        let mut held = claim("default", &["c-4x"], &["p"]);
        held["reservations"] = json!(["r-1"]);
        held["requirements"] = zones(&["zone-1"]);
        assert!((of(json!([held])) - 0.01).abs() < 1e-9);
    }
}
