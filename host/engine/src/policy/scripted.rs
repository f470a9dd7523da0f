//! Policies for tests: closures instead of components, and a record of what was asked.

use std::sync::Mutex;

use super::{
    Choices, Claims, Fleet, Groups, Nodes, Outcomes, PlanProblem, Pods, PolicyRound, PolicySet, Proposal, Round,
    RoundCatalog, Verdict,
};

type FilterPods = Box<dyn Fn(&RoundCatalog, &Pods, &Choices) -> Option<Verdict> + Send + Sync>;
type FilterClaims = Box<dyn Fn(&RoundCatalog, &Claims, &Choices) -> Option<Verdict> + Send + Sync>;
type Score = Box<dyn Fn(&RoundCatalog, &Claims, &Choices, Vec<i64>) -> Vec<i64> + Send + Sync>;
type Propose = Box<dyn Fn(&Nodes, &Groups, &Outcomes, u32) -> Groups + Send + Sync>;
type Decide = Box<dyn Fn(&Nodes, &Groups, &Outcomes) -> Vec<i64> + Send + Sync>;

type Plan = Box<dyn Fn(&Pods, &PlanProblem) -> Option<Proposal> + Send + Sync>;

/// A policy of closures; what is not set does nothing.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) pods: Option<FilterPods>,
    pub(crate) claims: Option<FilterClaims>,
    pub(crate) score: Option<Score>,
    pub(crate) propose: Option<Propose>,
    pub(crate) decide: Option<Decide>,
    pub(crate) plan: Option<Plan>,
    pub(crate) node_cost: i64,
    pub(crate) label_keys: Vec<String>,
    /// Hooks in the order in which they were called, with the number of rows.
    pub(crate) calls: Mutex<Vec<(&'static str, usize)>>,
}

struct ScriptedRound<'a> {
    set: &'a Scripted,
    catalog: &'a RoundCatalog,
}

impl PolicySet for Scripted {
    fn begin<'a>(&'a self, catalog: &'a RoundCatalog, _: &'a Fleet) -> Box<dyn PolicyRound + 'a> {
        Box::new(ScriptedRound { set: self, catalog })
    }

    fn plans(&self) -> bool {
        self.plan.is_some()
    }

    fn node_cost(&self) -> i64 {
        self.node_cost
    }

    fn label_keys(&self) -> &[String] {
        &self.label_keys
    }
}

impl ScriptedRound<'_> {
    fn called(&self, hook: &'static str, rows: usize) {
        self.set.calls.lock().unwrap().push((hook, rows));
    }
}

impl PolicyRound for ScriptedRound<'_> {
    fn admit_pods(&mut self, _: &Round, pods: &Pods, candidates: &Choices) -> Option<Verdict> {
        self.called("admit-pods", pods.count.len());
        self.set.pods.as_ref().and_then(|filter| filter(self.catalog, pods, candidates))
    }

    fn admit_claims(&mut self, _: &Round, claims: &Claims, candidates: &Choices) -> Option<Verdict> {
        self.called("admit-claims", claims.count.len());
        self.set.claims.as_ref().and_then(|filter| filter(self.catalog, claims, candidates))
    }

    fn evaluate(&mut self, _: &Round, claims: &Claims, candidates: &Choices, base: Vec<i64>) -> Vec<i64> {
        self.called("evaluate", claims.count.len());
        match &self.set.score {
            Some(score) => score(self.catalog, claims, candidates, base),
            None => base,
        }
    }

    fn plan(&mut self, _: &Round, pods: &Pods, problem: &PlanProblem) -> Option<Proposal> {
        self.called("plan", pods.count.len());
        self.set.plan.as_ref().and_then(|plan| plan(pods, problem))
    }

    fn propose_consolidation(
        &mut self,
        _: &Round,
        nodes: &Nodes,
        tried: &Groups,
        outcomes: &Outcomes,
        max: u32,
    ) -> Groups {
        self.called("propose", nodes.id.len());
        self.set.propose.as_ref().map_or_else(Groups::default, |propose| propose(nodes, tried, outcomes, max))
    }

    fn decide_consolidation(&mut self, _: &Round, nodes: &Nodes, tried: &Groups, outcomes: &Outcomes) -> Vec<i64> {
        self.called("decide", tried.len());
        self.set.decide.as_ref().map_or_else(|| vec![0; tried.len()], |decide| decide(nodes, tried, outcomes))
    }

    fn end(self: Box<Self>) -> Vec<String> {
        vec!["scripted: nothing went wrong".to_owned()]
    }
}

/// Zone of an offering.
pub(crate) fn zone(catalog: &RoundCatalog, offering: u32) -> &str {
    &catalog.symbols[catalog.offerings.zone[offering as usize] as usize]
}

/// Name of an offering's type.
pub(crate) fn type_name(catalog: &RoundCatalog, offering: u32) -> &str {
    let of_type = catalog.offerings.instance_type[offering as usize];
    &catalog.symbols[catalog.types.name[of_type as usize] as usize]
}

/// A verdict that drops what a condition picks out, row by row.
pub(crate) fn dropping(candidates: &Choices, drop: impl Fn(usize, u32) -> bool) -> Option<Verdict> {
    let mut dropped = Groups::default();
    for row in 0..candidates.set_of.len() {
        dropped.push(candidates.row(row).iter().copied().filter(|offering| drop(row, *offering)));
    }
    Some(Verdict { dropped, ..Verdict::default() })
}
