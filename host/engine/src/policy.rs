//! The seam between the engine and policies: the columns of `wit/0.1` as plain Rust, and the trait that answers them.
//!
//! Implementations: components in the sandbox (`mortise-wasm`), their native twins, and [`NoPolicy`] for tests.

mod ask;
mod plan;
#[cfg(test)]
pub(crate) mod scripted;
mod tables;

pub use plan::{PlanProblem, Proposal, Slots};

pub(crate) use ask::{filter_claims, score_claims};
pub(crate) use tables::{ChoicesBuilder, Tables, unsigned};

/// A ragged list of lists: row `i` is `member[end[i-1]..end[i]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Groups {
    /// End of each row.
    pub end: Vec<u32>,
    /// Members of all rows.
    pub member: Vec<u32>,
}

/// What each row may use: row `i` may use the members of set `set_of[i]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Choices {
    /// Distinct sets.
    pub sets: Groups,
    /// Set of each row.
    pub set_of: Vec<u32>,
}

/// Data added after 0.1, by name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ExtraColumn {
    /// Name.
    pub name: String,
    /// Values.
    pub values: Column,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Column {
    /// u32.
    U32(Vec<u32>),
    /// u64.
    U64(Vec<u64>),
    /// s64.
    S64(Vec<i64>),
}

/// What every call may depend on besides its arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Round {
    /// Number of the round.
    pub id: u64,
    /// Time of the round.
    pub now_unix_ms: u64,
    /// Seed.
    pub seed: u64,
    /// Work budget of planners.
    pub steps: u64,
    /// Reasons wanted.
    pub explain: bool,
}

/// Instance types of the round.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct InstanceTypes {
    pub name: Vec<u32>,
    pub family: Vec<u32>,
    pub arch: Vec<u32>,
    pub generation: Vec<u32>,
    pub cpu_milli: Vec<u64>,
    pub memory_mib: Vec<u64>,
    pub ephemeral_mib: Vec<u64>,
    pub pods: Vec<u32>,
    pub gpu: Vec<u32>,
    pub labels: Groups,
    pub extra: Vec<ExtraColumn>,
}

/// Offerings of the round. capacity: 0 reserved, 1 spot, 2 on-demand; price `u64::MAX` = unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Offerings {
    pub instance_type: Vec<u32>,
    pub zone: Vec<u32>,
    pub capacity: Vec<u8>,
    pub price_micro_usd: Vec<u64>,
    pub reserved_left: Vec<u32>,
    pub extra: Vec<ExtraColumn>,
}

/// NodePools of the round.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct NodePools {
    pub name: Vec<u32>,
    pub weight: Vec<u32>,
    pub consolidation: Vec<u8>,
    pub consolidate_after_s: Vec<u64>,
    pub cpu_left_milli: Vec<u64>,
    pub memory_left_mib: Vec<u64>,
    pub nodes_left: Vec<u32>,
    pub budget_empty: Vec<u32>,
    pub budget_underutilized: Vec<u32>,
    pub labels: Groups,
    pub extra: Vec<ExtraColumn>,
}

/// The catalogue of a round: symbols and tables that ids point into.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct RoundCatalog {
    pub generation: u64,
    pub symbols: Vec<String>,
    pub types: InstanceTypes,
    pub offerings: Offerings,
    pub nodepools: NodePools,
}

/// What runs now, counted per (nodepool, offering).
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Fleet {
    pub nodepool: Vec<u32>,
    pub offering: Vec<u32>,
    pub count: Vec<u32>,
}

/// Pod groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Pods {
    pub count: Vec<u32>,
    pub namespace: Vec<u32>,
    pub priority: Vec<i32>,
    pub cpu_milli: Vec<u64>,
    pub memory_mib: Vec<u64>,
    pub gpu: Vec<u32>,
    pub labels: Groups,
    pub annotations: Groups,
    pub extra: Vec<ExtraColumn>,
}

/// Nodes about to be launched. state: bit 0 has minValues, 1 replaces a disrupted node, 2 static pool, 3 estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Claims {
    pub count: Vec<u32>,
    pub nodepool: Vec<u32>,
    pub cpu_milli: Vec<u64>,
    pub memory_mib: Vec<u64>,
    pub gpu: Vec<u32>,
    pub pods: Vec<u32>,
    pub state: Vec<u32>,
    pub extra: Vec<ExtraColumn>,
}

/// A filter's answer: row `i` drops members `dropped` row `i`; one reason per dropped member when asked to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Verdict {
    pub dropped: Groups,
    pub reason: Vec<u32>,
    pub reasons: Vec<String>,
}

/// Running nodes, for consolidation. state: bit 0 empty, 1 drifted, 2 consolidatable, 3 spot, 4 initialised, 5 static, 6 buffer only.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Nodes {
    pub id: Vec<u64>,
    pub nodepool: Vec<u32>,
    pub offering: Vec<u32>,
    pub price_micro_usd: Vec<u64>,
    pub age_s: Vec<u64>,
    pub idle_s: Vec<u64>,
    pub used_cpu_milli: Vec<u64>,
    pub used_memory_mib: Vec<u64>,
    pub pods: Vec<u32>,
    pub disruption_cost_milli: Vec<u64>,
    pub last_moved_s: Vec<u64>,
    pub state: Vec<u32>,
    pub extra: Vec<ExtraColumn>,
}

/// Outcome of each set tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Outcomes {
    pub feasible: Vec<u8>,
    pub saving_micro_usd: Vec<i64>,
    pub new_nodes: Vec<u32>,
    pub evictions: Vec<u32>,
    pub replacement: Groups,
    pub reason: Vec<u32>,
}

/// Cost of a candidate that is unknown: ranks last.
pub const COST_UNKNOWN: i64 = i64::MAX - 1;
/// Cost that drops a candidate.
pub const COST_DROPPED: i64 = i64::MAX;

/// A set of policies: starts rounds. Chosen once per round, so a hot swap never changes a round half way.
pub trait PolicySet: Send + Sync {
    /// Starts a round. Never fails: what cannot answer is replaced by its fallback and reported in `faults`.
    fn begin<'a>(&'a self, catalog: &'a RoundCatalog, fleet: &'a Fleet) -> Box<dyn PolicyRound + 'a>;
    /// Pod label keys that some policy reads.
    fn label_keys(&self) -> &[String] {
        &[]
    }
    /// Some policy plans whole batches.
    fn plans(&self) -> bool {
        false
    }
    /// Cost of a node beside its offering's when plans are compared, micro-USD per hour.
    fn node_cost(&self) -> i64 {
        0
    }
    /// Pod annotation keys that some policy reads.
    fn annotation_keys(&self) -> &[String] {
        &[]
    }
}

/// One round's conversation with the policies. Every answer is already checked for shape (lengths, index ranges,
/// members of the row's own set) by the implementation; chains are already folded.
pub trait PolicyRound {
    /// Which offerings may each pod group use? Returns what is dropped; `None` when no filter has an opinion.
    fn admit_pods(&mut self, round: &Round, pods: &Pods, candidates: &Choices) -> Option<Verdict>;
    /// Which of its offerings may each claim use?
    fn admit_claims(&mut self, round: &Round, claims: &Claims, candidates: &Choices) -> Option<Verdict>;
    /// Effective cost of every candidate of every claim, rows in order: starts from list price.
    fn evaluate(&mut self, round: &Round, claims: &Claims, candidates: &Choices, base: Vec<i64>) -> Vec<i64>;
    /// Sets of nodes to simulate; empty = asks no more.
    fn propose_consolidation(
        &mut self,
        round: &Round,
        nodes: &Nodes,
        tried: &Groups,
        outcomes: &Outcomes,
        max_sets: u32,
    ) -> Groups;
    /// One priority per tried set: higher first, zero or less rejects.
    fn decide_consolidation(&mut self, round: &Round, nodes: &Nodes, tried: &Groups, outcomes: &Outcomes) -> Vec<i64>;
    /// Which nodes to open for these pods; `None` when there is no planner or it has no answer. The answer is taken for
    /// no more than a proposal: every constraint is checked again.
    fn plan(&mut self, round: &Round, pods: &Pods, problem: &PlanProblem) -> Option<Proposal> {
        let _ = (round, pods, problem);
        None
    }
    /// Ends the round (memos are collected) and returns what went wrong, in words.
    fn end(self: Box<Self>) -> Vec<String>;
}

/// No filter, list price as cost, no consolidation. For tests and benchmarks of the engine alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPolicy;

impl PolicySet for NoPolicy {
    fn begin<'a>(&'a self, _: &'a RoundCatalog, _: &'a Fleet) -> Box<dyn PolicyRound + 'a> {
        Box::new(Self)
    }
}

impl PolicyRound for NoPolicy {
    fn admit_pods(&mut self, _: &Round, _: &Pods, _: &Choices) -> Option<Verdict> {
        None
    }
    fn admit_claims(&mut self, _: &Round, _: &Claims, _: &Choices) -> Option<Verdict> {
        None
    }
    fn evaluate(&mut self, _: &Round, _: &Claims, _: &Choices, base: Vec<i64>) -> Vec<i64> {
        base
    }
    fn propose_consolidation(&mut self, _: &Round, _: &Nodes, _: &Groups, _: &Outcomes, _: u32) -> Groups {
        Groups::default()
    }
    fn decide_consolidation(&mut self, _: &Round, _: &Nodes, tried: &Groups, _: &Outcomes) -> Vec<i64> {
        vec![0; tried.end.len()]
    }
    fn end(self: Box<Self>) -> Vec<String> {
        Vec::new()
    }
}
