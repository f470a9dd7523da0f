//! What the engine decides, as data. Actuators carry it out; the engine never does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::CapacityType;
use crate::explain::{PodReason, PoolReason};
use crate::pod::PodKey;
use crate::quantity::{MicroUsd, Resources};
use crate::requirement::Requirement;
use crate::taint::Taint;

/// A NodeClaim to create.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Claim {
    /// NodePool.
    pub nodepool: Arc<str>,
    /// UID of the NodePool (owner reference).
    pub nodepool_uid: Arc<str>,
    /// NodeClass reference: group, kind, name.
    pub node_class: (Arc<str>, Arc<str>, Arc<str>),
    /// `metadata.labels` of the claim.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// `metadata.annotations` of the claim.
    pub annotations: BTreeMap<Arc<str>, Arc<str>>,
    /// `spec.requirements`, the instance types among them cheapest first in effective cost, at most 600.
    pub requirements: Vec<Requirement>,
    /// `spec.resources.requests`: pods and DaemonSets.
    pub requests: Resources,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Startup taints.
    pub startup_taints: Vec<Taint>,
    /// `spec.expireAfter`.
    pub expire_after: Option<Arc<str>>,
    /// `spec.terminationGracePeriod`.
    pub termination_grace_period: Option<Arc<str>>,
    /// Pods it is for; those of buffers are not named.
    pub pods: Vec<PodKey>,
    /// Pods of CapacityBuffers that it is for.
    pub buffer_pods: u32,
    /// The cheapest choice at the time of the decision, for logs, `simulate` and explain.
    pub cheapest: Option<Choice>,
}

/// One offering of one type with what it costs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Choice {
    /// Instance type.
    pub instance_type: Arc<str>,
    /// Zone.
    pub zone: Arc<str>,
    /// Market.
    pub capacity_type: CapacityType,
    /// List price.
    pub price: Option<MicroUsd>,
    /// Cost after the scorers, micro-USD per hour; `None` = unknown.
    pub effective_cost: Option<i64>,
}

/// Result of one provisioning round.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Schedule {
    /// NodeClaims to create, in order.
    pub claims: Vec<Claim>,
    /// Existing or in-flight nodes that pods were placed on: node name and pods.
    pub nominations: Vec<(Arc<str>, Vec<PodKey>)>,
    /// Pods not placed, each with its reasons.
    pub unplaced: Vec<(PodKey, PodReason)>,
    /// CapacityBuffers with pods in this round: `<namespace>/<name>` and where those fit. Their pods are in no other list.
    pub buffers: BTreeMap<Arc<str>, BufferFit>,
    /// Existing and in-flight nodes that have room for pods of buffers, and for how many: they are to stay.
    pub buffer_nodes: Vec<(Arc<str>, u32)>,
    /// NodePools that offered nothing, each with its reason.
    pub pools: Vec<(Arc<str>, PoolReason)>,
    /// Policies that did not answer and what stood in, for metrics and Events.
    pub policy_faults: Vec<String>,
    /// What became of the planner's proposal; `None` when no planner was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanReport>,
}

/// The planner's proposal beside placing in native order.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PlanReport {
    /// Which of the two this schedule is, and why.
    pub verdict: PlanVerdict,
    /// Pods that new nodes were asked for.
    pub asked: u32,
    /// Of them, those that the proposal has a node for and that hold there.
    pub planned: u32,
    /// Cost of the new nodes in native order, micro-USD per hour; `None` = a node's cost is unknown.
    pub native_cost: Option<i64>,
    /// Cost of the new nodes with the proposal; `None` also when it was not tried.
    pub planned_cost: Option<i64>,
}

/// Which plan stands, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum PlanVerdict {
    /// The proposal: it is cheaper and leaves no more pods without a place.
    Planned,
    /// Native: the proposal costs as much or more.
    NoCheaper,
    /// Native: with the proposal more pods would have no place.
    FewerPods,
    /// Native: a cost is unknown, so the two cannot be compared.
    UnknownCost,
    /// Native: no pod that needs a new node can be expressed to a planner.
    NothingToPlan,
    /// Native: the planner had no answer.
    NoAnswer,
    /// Native: the answer breaks the contract.
    Malformed(Arc<str>),
}

/// Where the pods of one CapacityBuffer fit, when every real pod has its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BufferFit {
    /// Pods of the buffer.
    pub pods: u32,
    /// Of them, those that existing nodes and nodes in flight have room for.
    pub on_nodes: u32,
    /// Those that NodeClaims of this round are for.
    pub on_claims: u32,
    /// Those that fit nowhere.
    pub unplaced: u32,
    /// Why the first of those does not.
    pub reason: Option<PodReason>,
}

/// What to ask the cloud for, for one claim: at most 60 types, each with its offerings, best first.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LaunchList {
    /// Market chosen: reserved, else spot, else on-demand.
    pub capacity_type: CapacityType,
    /// Choices, best first by effective cost.
    pub choices: Vec<Choice>,
    /// The order differs from list price, so the cloud must be told priorities instead of choosing the lowest price.
    pub prioritized: bool,
}

/// Nodes to disrupt and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Disrupt {
    /// Node names (keys of the snapshot).
    pub nodes: Vec<Arc<str>>,
    /// `Empty`, `Underutilized`, `Drifted`, …
    pub reason: Arc<str>,
}
