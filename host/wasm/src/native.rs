//! Native twins of the built-in policies: the same libraries without a sandbox.

use mortise_engine::policy::{
    Choices, Claims, Column, ExtraColumn, Fleet, Groups, Nodes, Outcomes, Pods, PolicyRound, PolicySet, Round,
    RoundCatalog, Verdict,
};
use mortise_plugin_constraints::{
    ACCELERATORS, Constraints, MinValues, Offerings, RESERVATION_INTERRUPTIBLE, RESERVATION_TYPE, Tables, Types,
};
use mortise_plugin_sdk::Candidates;

use crate::columns::check::rows;

/// The built-in policies run natively: the fallback when a component cannot answer, the yardstick of what Wasm costs,
/// and a policy set that is ready without compiling anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativePolicies;

impl PolicySet for NativePolicies {
    fn begin<'a>(&'a self, catalog: &'a RoundCatalog, _: &'a Fleet) -> Box<dyn PolicyRound + 'a> {
        Box::new(NativeRound::new(catalog))
    }
}

/// A round of the native twins.
pub(crate) struct NativeRound<'a> {
    tables: Tables<'a>,
    consolidate_after_s: &'a [u64],
    rules: Option<Constraints>,
    /// The price policy would change some cost: worked out at first use.
    price_changes: Option<bool>,
}

fn u32s<'a>(extra: &'a [ExtraColumn], name: &str) -> Option<&'a [u32]> {
    extra.iter().find(|c| c.name == name).and_then(|c| match &c.values {
        Column::U32(values) => Some(values.as_slice()),
        Column::U64(_) | Column::S64(_) => None,
    })
}

fn candidates(choices: &Choices) -> Candidates<'_> {
    Candidates { sets: rows(&choices.sets), set_of: &choices.set_of }
}

impl<'a> NativeRound<'a> {
    pub(crate) fn new(catalog: &'a RoundCatalog) -> Self {
        let (types, offerings) = (&catalog.types, &catalog.offerings);
        let tables = Tables {
            symbols: &catalog.symbols,
            types: Types {
                name: &types.name,
                gpu: &types.gpu,
                accelerators: u32s(&types.extra, ACCELERATORS),
                labels: rows(&types.labels),
            },
            offerings: Offerings {
                instance_type: &offerings.instance_type,
                zone: &offerings.zone,
                capacity: &offerings.capacity,
                price_micro_usd: &offerings.price_micro_usd,
                reserved_left: &offerings.reserved_left,
                reservation_type: u32s(&offerings.extra, RESERVATION_TYPE),
                interruptible: u32s(&offerings.extra, RESERVATION_INTERRUPTIBLE),
            },
        };
        Self { tables, consolidate_after_s: &catalog.nodepools.consolidate_after_s, rules: None, price_changes: None }
    }

    pub(crate) fn constraints(&mut self, round: &Round, claims: &Claims, choices: &Choices) -> Verdict {
        let min_values = u32s(&claims.extra, MinValues::END).zip(u32s(&claims.extra, MinValues::PAIRS));
        let min_values = min_values.map(|(end, pairs)| MinValues::new(end, pairs));
        let rules = self.rules.get_or_insert_with(|| Constraints::new(&self.tables));
        let verdict = rules.admit(&self.tables, &claims.state, min_values, candidates(choices), round.explain);
        let dropped = Groups { end: verdict.dropped.end, member: verdict.dropped.member };
        Verdict { dropped, reason: verdict.reason, reasons: verdict.reasons }
    }

    pub(crate) fn price(&mut self, choices: &Choices, base: Vec<i64>) -> Vec<i64> {
        let (capacity, prices) = (self.tables.offerings.capacity, self.tables.offerings.price_micro_usd);
        match self.price_changes.get_or_insert_with(|| mortise_plugin_price::changes_costs(capacity, prices)) {
            true => mortise_plugin_price::evaluate(capacity, prices, candidates(choices), &base),
            false => base,
        }
    }

    fn nodes<'b>(&'b self, nodes: &'b Nodes) -> mortise_plugin_karpenter::Nodes<'b> {
        mortise_plugin_karpenter::Nodes {
            state: &nodes.state,
            nodepool: &nodes.nodepool,
            price_micro_usd: &nodes.price_micro_usd,
            consolidate_after_s: self.consolidate_after_s,
        }
    }

    pub(crate) fn propose(&self, nodes: &Nodes, tried: &Groups, max_sets: u32) -> Groups {
        let sets = mortise_plugin_karpenter::propose(self.nodes(nodes), rows(tried), max_sets);
        Groups { end: sets.end, member: sets.member }
    }

    pub(crate) fn decide(&self, nodes: &Nodes, tried: &Groups, outcomes: &Outcomes) -> Vec<i64> {
        mortise_plugin_karpenter::decide(self.nodes(nodes), rows(tried), &outcomes.feasible)
    }
}

impl PolicyRound for NativeRound<'_> {
    fn admit_pods(&mut self, _: &Round, _: &Pods, _: &Choices) -> Option<Verdict> {
        None
    }

    fn admit_claims(&mut self, round: &Round, claims: &Claims, candidates: &Choices) -> Option<Verdict> {
        Some(self.constraints(round, claims, candidates))
    }

    fn evaluate(&mut self, _: &Round, _: &Claims, candidates: &Choices, base: Vec<i64>) -> Vec<i64> {
        self.price(candidates, base)
    }

    fn propose_consolidation(
        &mut self,
        _: &Round,
        nodes: &Nodes,
        tried: &Groups,
        _: &Outcomes,
        max_sets: u32,
    ) -> Groups {
        self.propose(nodes, tried, max_sets)
    }

    fn decide_consolidation(&mut self, _: &Round, nodes: &Nodes, tried: &Groups, outcomes: &Outcomes) -> Vec<i64> {
        self.decide(nodes, tried, outcomes)
    }

    fn end(self: Box<Self>) -> Vec<String> {
        Vec::new()
    }
}
