//! What a hook is asked about, as typed views.

use alloc::vec::Vec;

use crate::catalog::Capacity;
use crate::rows::{Candidates, Rows};
use crate::types::{Catalog, Claims, Nodes, Outcomes, Pods, Round};

/// Groups of pending pods with the offerings each may use.
#[derive(Clone, Copy, Debug)]
pub struct PodBatch<'a> {
    /// Time, seed and whether reasons are wanted.
    pub round: &'a Round,
    /// The round's tables.
    pub catalog: &'a Catalog,
    /// One row per group.
    pub pods: &'a Pods,
    /// Offerings of each row.
    pub candidates: Candidates<'a>,
}

/// Nodes to be launched with the offerings each may use.
#[derive(Clone, Copy, Debug)]
pub struct ClaimBatch<'a> {
    /// Time, seed and whether reasons are wanted.
    pub round: &'a Round,
    /// The round's tables.
    pub catalog: &'a Catalog,
    /// One row per kind of claim.
    pub claims: &'a Claims,
    /// Offerings of each row.
    pub candidates: Candidates<'a>,
}

/// Running nodes and the sets of them that were tried.
#[derive(Clone, Copy, Debug)]
pub struct NodeBatch<'a> {
    /// Time, seed and whether reasons are wanted.
    pub round: &'a Round,
    /// The round's tables.
    pub catalog: &'a Catalog,
    /// Nodes that may be disrupted.
    pub nodes: &'a Nodes,
    /// Sets that the host simulated in this round.
    pub tried: Rows<'a>,
    /// One row per tried set.
    pub outcomes: &'a Outcomes,
}

/// One candidate of one claim.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    catalog: &'a Catalog,
    /// Row of the claim.
    pub claim: usize,
    /// Id of the offering.
    pub offering: u32,
    /// Cost so far.
    pub cost: i64,
}

impl<'a> Candidate<'a> {
    /// Name of the zone.
    #[must_use]
    pub fn zone(&self) -> &'a str {
        self.zone_id().map_or("", |zone| self.catalog.text(zone))
    }

    /// Symbol of the zone.
    #[must_use]
    pub fn zone_id(&self) -> Option<u32> {
        self.catalog.zone_of(self.offering)
    }

    /// Name of the instance type.
    #[must_use]
    pub fn instance_type(&self) -> &'a str {
        let name = self.type_id().and_then(|t| self.catalog.types.name.get(t as usize));
        name.map_or("", |symbol| self.catalog.text(*symbol))
    }

    /// Id of the instance type.
    #[must_use]
    pub fn type_id(&self) -> Option<u32> {
        self.catalog.type_of(self.offering)
    }

    /// Market.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        self.catalog.capacity_of(self.offering)
    }

    /// List price, micro-USD per hour; `None` when unknown.
    #[must_use]
    pub fn price(&self) -> Option<u64> {
        self.catalog.price_of(self.offering)
    }

    /// The cost so far is a cost: neither unknown nor dropped.
    #[must_use]
    pub fn has_cost(&self) -> bool {
        self.cost < crate::COST_UNKNOWN
    }
}

impl<'a> ClaimBatch<'a> {
    /// Every candidate of every claim, rows in order, with its cost so far.
    pub fn candidates_with<'b>(&self, base: &'b [i64]) -> impl Iterator<Item = Candidate<'a>> + use<'a, 'b> {
        let catalog = self.catalog;
        self.candidates
            .iter()
            .enumerate()
            .flat_map(|(claim, row)| row.iter().map(move |offering| (claim, *offering)))
            .zip(base)
            .map(move |((claim, offering), cost)| Candidate { catalog, claim, offering, cost: *cost })
    }

    /// A scorer's answer from a rule for one candidate. Candidates whose cost is unknown or dropped stay so.
    pub fn map(&self, base: &[i64], mut rule: impl FnMut(Candidate<'a>) -> i64) -> Vec<i64> {
        self.candidates_with(base).map(|c| if c.has_cost() { rule(c) } else { c.cost }).collect()
    }

    /// The claims are estimates before planning: requests are zero, one row a nodepool.
    #[must_use]
    pub fn is_estimate(&self) -> bool {
        self.claims.state.first().is_some_and(|state| state & 8 != 0)
    }
}
