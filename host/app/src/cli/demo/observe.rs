//! What is going on in the cluster: one view at a time, and what changed from the last one.

use std::collections::BTreeMap;

use mortise_engine::catalog::CapacityType;
use mortise_engine::quantity::MicroUsd;
use mortise_sim::Cluster;
use serde_json::Value;

/// Life of a node, as its NodeClaim tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// NodeClaim exists, no machine yet.
    Launching,
    /// Machine starts.
    Booting,
    /// Node is there, not fit for pods yet.
    Joining,
    /// Takes pods.
    Ready,
    /// On its way out.
    Leaving,
}

impl Stage {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Launching => "launching",
            Self::Booting => "booting",
            Self::Joining => "joining",
            Self::Ready => "ready",
            Self::Leaving => "leaving",
        }
    }
}

/// One NodeClaim with its machine and node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodeView {
    pub(super) claim: String,
    pub(super) stage: Stage,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) capacity_type: String,
    /// List price; `None` = unknown or no machine yet.
    pub(super) price: Option<MicroUsd>,
    /// What the same machine costs on demand.
    pub(super) on_demand: Option<MicroUsd>,
    /// Pods it was decided for.
    pub(super) meant_for: u64,
    /// Instance types that would have done.
    pub(super) candidates: usize,
    /// Pods bound to it.
    pub(super) pods: usize,
    pub(super) cpu: String,
    pub(super) memory: String,
}

/// The cluster at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Cluster time since the start, seconds.
    pub(super) at: f64,
    pub(super) pending: usize,
    pub(super) starting: usize,
    pub(super) running: usize,
    pub(super) leaving: usize,
    pub(super) nodes: BTreeMap<String, NodeView>,
    /// Node objects, ours or not.
    pub(super) node_objects: usize,
}

impl View {
    pub(super) fn pods(&self) -> usize {
        self.pending + self.starting + self.running + self.leaving
    }

    /// Sum of the known prices of machines, per hour.
    pub(super) fn price(&self) -> MicroUsd {
        self.nodes.values().filter_map(|n| n.price).fold(MicroUsd(0), MicroUsd::saturating_add)
    }

    /// What the same machines cost on demand.
    pub(super) fn on_demand(&self) -> MicroUsd {
        self.nodes.values().filter_map(|n| n.on_demand).fold(MicroUsd(0), MicroUsd::saturating_add)
    }

    pub(super) fn ready_nodes(&self) -> usize {
        self.nodes.values().filter(|n| n.stage == Stage::Ready).count()
    }

    pub(super) fn take(cluster: &Cluster, at: f64) -> Self {
        let mut view = Self { at, ..Self::default() };
        let mut by_node: BTreeMap<String, usize> = BTreeMap::new();
        cluster.api().for_each("", "pods", |pod| view.count(pod, &mut by_node));
        cluster.api().for_each("", "nodes", |_| view.node_objects += 1);
        let cloud = cluster.cloud();
        let machines: BTreeMap<String, _> =
            cloud.machines().into_iter().map(|m| (m.instance.provider_id.to_string(), m)).collect();
        cluster.api().for_each("karpenter.sh", "nodeclaims", |claim| {
            let mut node = node_view(claim);
            if let Some(machine) = claim["status"]["providerID"].as_str().and_then(|id| machines.get(id)) {
                let instance = &machine.instance;
                node.instance_type = instance.instance_type.to_string();
                node.zone = instance.zone.to_string();
                node.capacity_type = capacity_word(instance.capacity_type).to_owned();
                node.price = machine.price;
                node.on_demand = cloud.price(&instance.instance_type, &instance.zone, CapacityType::OnDemand);
                node.pods = by_node.get(&machine.node_name).copied().unwrap_or_default();
            }
            view.nodes.insert(node.claim.clone(), node);
        });
        view
    }

    fn count(&mut self, pod: &Value, by_node: &mut BTreeMap<String, usize>) {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if !node.is_empty() {
            *by_node.entry(node.to_owned()).or_default() += 1;
        }
        if pod["metadata"].get("deletionTimestamp").is_some() {
            self.leaving += 1;
        } else if pod["status"]["phase"] == "Running" {
            self.running += 1;
        } else if node.is_empty() {
            self.pending += 1;
        } else {
            self.starting += 1;
        }
    }
}

fn capacity_word(capacity_type: CapacityType) -> &'static str {
    match capacity_type {
        CapacityType::Reserved => "reserved",
        CapacityType::Spot => "spot",
        CapacityType::OnDemand => "on-demand",
    }
}

fn node_view(claim: &Value) -> NodeView {
    let is_true = |kind: &str| {
        let mut conditions = claim["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|c| c["type"] == kind && c["status"] == "True")
    };
    let stage = if claim["metadata"].get("deletionTimestamp").is_some() {
        Stage::Leaving
    } else if is_true("Initialized") {
        Stage::Ready
    } else if is_true("Registered") {
        Stage::Joining
    } else if is_true("Launched") {
        Stage::Booting
    } else {
        Stage::Launching
    };
    let types = claim["spec"]["requirements"].as_array().into_iter().flatten();
    let types = types.filter(|r| r["key"] == "node.kubernetes.io/instance-type" && r["operator"] == "In");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let requests = &claim["spec"]["resources"]["requests"];
    NodeView {
        claim: text(&claim["metadata"]["name"]),
        stage,
        instance_type: String::new(),
        zone: String::new(),
        capacity_type: String::new(),
        price: None,
        on_demand: None,
        meant_for: requests["pods"].as_str().and_then(|p| p.parse().ok()).unwrap_or_default(),
        candidates: types.filter_map(|r| r["values"].as_array()).map(Vec::len).sum(),
        pods: 0,
        cpu: text(&claim["status"]["capacity"]["cpu"]),
        memory: text(&claim["status"]["capacity"]["memory"]),
    }
}

/// Something that happened to a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// The controller decided for a node.
    Decided(NodeView),
    /// Its machine was bought.
    Launched(NodeView),
    /// It takes pods.
    Ready(NodeView),
    /// The controller decided to let it go.
    Leaving(NodeView),
    /// Machine and objects are gone.
    Gone(NodeView),
}

/// What changed, in order of names.
pub(super) fn changes(before: &View, after: &View) -> Vec<Change> {
    let mut out = Vec::new();
    for (name, node) in &after.nodes {
        let was = before.nodes.get(name).map(|n| n.stage);
        let passed = |stage: Stage| node.stage >= stage && was.is_none_or(|w| w < stage);
        if was.is_none() {
            out.push(Change::Decided(node.clone()));
        }
        if node.stage != Stage::Leaving {
            if passed(Stage::Booting) {
                out.push(Change::Launched(node.clone()));
            }
            if passed(Stage::Ready) {
                out.push(Change::Ready(node.clone()));
            }
        } else if was != Some(Stage::Leaving) {
            out.push(Change::Leaving(node.clone()));
        }
    }
    for (name, node) in &before.nodes {
        if !after.nodes.contains_key(name) {
            out.push(Change::Gone(node.clone()));
        }
    }
    out
}
