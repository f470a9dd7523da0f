//! What the engine answers: the problem goes through the conversion that the controller uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use mortise_api::ec2nodeclass::{EC2NodeClass, EC2NodeClassSpec};
use mortise_engine::decision::{Claim as EngineClaim, Schedule};
use mortise_engine::nodepool::NodePool;
use mortise_engine::pod::Spread;
use mortise_engine::policy::NoPolicy;
use mortise_engine::quantity::display_amount;
use mortise_engine::requirement::{Operator, key};
use mortise_engine::schedule::schedule;
use mortise_engine::snapshot::{Options, Snapshot};
use mortise_kube::convert::{self, Converter, to_api_requirements};
use mortise_kube::objects;
use mortise_kube::state::ClusterState;
use mortise_kube::watch::{Delta, Event};
use mortise_problem::api::Quantity;
use mortise_problem::k8s_openapi::api::core::v1::Pod;
use mortise_problem::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use mortise_problem::{Answer, Claim, Existing, MinValuesPolicy, PreferencePolicy, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::catalog::catalog;

/// Label of an offering that is a capacity reservation.
pub(crate) const RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
/// Name of the class that every NodePool of a problem names.
const CLASS: &str = "default";

/// What the engine decides on, made from a problem.
#[derive(Debug)]
pub struct Input {
    /// The cluster.
    pub snapshot: Snapshot,
    /// Settings.
    pub options: Options,
    name: String,
    pending: Vec<String>,
}

impl Input {
    /// Converts a problem.
    ///
    /// # Errors
    /// The problem holds what the engine's types cannot express; the message names the object.
    pub fn new(problem: &Problem) -> Result<Self> {
        let now = convert::unix_ms(&problem.now);
        let mut state = state(problem, now)?;
        let shared = Arc::new(catalog(problem, |_| true)?);
        let catalogs = BTreeMap::from([(Arc::from(CLASS), shared)]);
        let mut snapshot = state.snapshot(now, &catalogs);
        for pool in &mut snapshot.nodepools {
            if problem.instance_types_of.contains_key(&*pool.name) {
                let own = Arc::new(catalog(problem, |of_type| problem.is_offered(&pool.name, of_type))?);
                *pool = Arc::new(NodePool { catalog: own, ..NodePool::clone(pool) });
            }
        }
        let options = Options {
            ignore_preferences: problem.options.preference_policy == PreferencePolicy::Ignore,
            min_values_best_effort: problem.options.min_values_policy == MinValuesPolicy::BestEffort,
            ..Options::default()
        };
        Ok(Self { snapshot, options, name: problem.name.clone(), pending: pending(problem) })
    }

    /// Decides, and writes the decision down as an answer.
    pub fn answer(&self) -> Answer {
        let start = Instant::now();
        let decided = self.decide();
        let millis = start.elapsed().as_secs_f64() * 1e3;
        self.written(&decided, millis)
    }

    /// Decides.
    pub fn decide(&self) -> Schedule {
        schedule(&self.snapshot, &self.options, &NoPolicy)
    }

    fn written(&self, decided: &Schedule, millis: f64) -> Answer {
        let existing = decided.nominations.iter().map(|(node, pods)| Existing {
            node: self.shown(node),
            pods: pods.iter().map(|pod| format!("{}/{}", pod.namespace, pod.name)).collect(),
        });
        let mut answer = Answer {
            name: self.name.clone(),
            claims: decided.claims.iter().map(claim).collect(),
            existing: existing.collect(),
            errors: decided
                .unplaced
                .iter()
                .map(|(pod, why)| (format!("{}/{}", pod.namespace, pod.name), why.to_string()))
                .collect(),
            millis,
            ..Answer::default()
        };
        let placed: BTreeSet<String> = crate::placed(&answer).map(str::to_owned).collect();
        for pod in self.pending.iter().filter(|pod| !placed.contains(*pod)) {
            answer.errors.entry(pod.clone()).or_insert_with(|| "takes no node of any NodePool".into());
        }
        answer
    }

    /// The Node's name, or the NodeClaim's while there is no Node.
    fn shown(&self, node: &str) -> String {
        let known = self.snapshot.nodes.get(node);
        let name = known.and_then(|node| node.node_name.as_ref().or(node.node_claim.as_ref()));
        name.map_or(node, |name| name).to_owned()
    }
}

/// The engine's answer to a problem.
///
/// # Errors
/// As [`Input::new`].
pub fn answer(problem: &Problem) -> Result<Answer> {
    Ok(Input::new(problem)?.answer())
}

fn claim(from: &EngineClaim) -> Claim {
    let values = |wanted: &str| {
        let found = from.requirements.iter().find(|r| &*r.key == wanted && r.operator == Operator::In);
        found.map(|r| r.values.iter().map(ToString::to_string).collect()).unwrap_or_default()
    };
    let amounts = from.requests.iter().map(|(name, amount)| (name.to_owned(), Quantity(display_amount(name, amount))));
    Claim {
        node_pool: from.nodepool.to_string(),
        requirements: to_api_requirements(&from.requirements),
        instance_types: values(key::INSTANCE_TYPE),
        requests: amounts.collect(),
        pods: from.pods.iter().map(|pod| format!("{}/{}", pod.namespace, pod.name)).collect(),
        reservations: values(RESERVATION_ID),
        labels: from.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
    }
}

/// Names of the pods that wait for a node.
pub(crate) fn pending(problem: &Problem) -> Vec<String> {
    let waits = |pod: &&Pod| {
        let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        !bound && conditions.any(|c| c.type_ == "PodScheduled" && c.reason.as_deref() == Some("Unschedulable"))
    };
    problem.pods.iter().filter(waits).map(|pod| name(&pod.metadata)).collect()
}

/// `<namespace>/<name>`, as answers write it.
pub(crate) fn name(meta: &ObjectMeta) -> String {
    format!("{}/{}", meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

/// The cluster state that the controller would have.
fn state(problem: &Problem, now: i64) -> Result<ClusterState> {
    let mut state = ClusterState::new();
    let mut convert = Converter::default();
    let convert = &mut convert;
    let mut class = EC2NodeClass::new(CLASS, EC2NodeClassSpec::default());
    class.metadata.uid = Some("class".into());
    let pools = problem.node_pools.iter().map(|pool| convert.nodepool_object(pool.clone())).collect::<Vec<_>>();
    let claims = problem.node_claims.iter().map(|claim| convert.nodeclaim_object(claim.clone())).collect::<Vec<_>>();
    let events = [
        Event::NodeClass(Delta::replaced([class])),
        Event::NodePool(Delta::replaced(pools)),
        Event::NodeClaim(Delta::replaced(claims)),
        Event::Node(records(&problem.nodes, |o: &objects::Node| convert.node(o))?),
        Event::DaemonSet(records(&problem.daemon_sets, |o| convert.daemonset(o))?),
        Event::Pdb(records(&problem.pod_disruption_budgets, |o| convert.pdb(o))?),
        Event::StorageClass(records(&problem.storage_classes, |o| convert.storage_class(o))?),
        Event::Pv(records(&problem.persistent_volumes, |o| convert.pv(o))?),
        Event::Pvc(records(&problem.persistent_volume_claims, |o| convert.pvc(o))?),
        Event::CsiNode(records(&problem.csi_nodes, |o| convert.csi_node(o))?),
        Event::Namespace(records(&problem.namespaces, |o| convert.namespace(o))?),
        Event::Service(records(&problem.services, |o| convert.service(o))?),
        Event::ReplicaSet(records(&problem.replica_sets, |o| convert.replica_set(o))?),
        Event::StatefulSet(records(&problem.stateful_sets, |o| convert.stateful_set(o))?),
        Event::ReplicationController(records(&problem.replication_controllers, |o| convert.replication_controller(o))?),
        Event::Pod(records(&problem.pods, |o| convert.pod(o))?),
    ];
    state.set_default_spread(default_spread(problem, convert)?);
    for event in events {
        state.apply(event, now);
    }
    Ok(state)
}

/// The cluster's default constraints, as `SCHEDULER_CONFIG` gives them.
fn default_spread(problem: &Problem, convert: &mut Converter) -> Result<Vec<Spread>> {
    let Some(config) = &problem.options.scheduler_config else { return Ok(Vec::new()) };
    let constraints = config["podTopologySpread"]["defaultConstraints"].as_array().into_iter().flatten();
    let spread = |value: &serde_json::Value| {
        convert.spread("defaultConstraints", &serde_json::from_value(value.clone())?).map_err(anyhow::Error::msg)
    };
    constraints.map(spread).collect()
}

/// Objects as the watches would decode and keep them.
fn records<K: Serialize, O: DeserializeOwned, R>(from: &[K], mut record: impl FnMut(&O) -> R) -> Result<Delta<R>> {
    let mut made = Vec::with_capacity(from.len());
    for object in from {
        let value = serde_json::to_value(object).context("an object of the problem cannot be written")?;
        let name = value["metadata"]["name"].to_string();
        made.push(record(&serde_json::from_value(value).map_err(|error| anyhow!("{name}: {error}"))?));
    }
    Ok(Delta::replaced(made))
}
