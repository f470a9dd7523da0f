//! Where pods are put: nodes that exist or are in flight, and claims of the answer.

use std::collections::{BTreeMap, BTreeSet};

use mortise_problem::Problem;
use mortise_problem::api::condition::Conditions;
use mortise_problem::api::labels::{HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODEPOOL, REGISTERED, normalize};
use mortise_problem::api::{NodeClaim, Quantity, taints};
use mortise_problem::k8s_openapi::api::core::v1::{Node, Pod, Taint};

use super::machine::{Machine, instance_type};
use super::pod;
use super::quantity::{parse, resources};
use super::values::{Labels, Values};

/// A node, an in-flight node, or a claim, with its pods.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    /// For messages, and as hostname of what is still to be made: node name, or `claim 0`.
    pub(crate) name: String,
    /// Index in the answer's claims.
    pub(crate) claim: Option<usize>,
    /// Name of the Node object, once there is one.
    pub(crate) node_name: Option<String>,
    /// Name of its NodePool.
    pub(crate) pool: Option<String>,
    /// What it may turn out to be; exactly one for what exists.
    pub(crate) machines: Vec<Machine<'a>>,
    /// Taints that stay.
    pub(crate) taints: Vec<Taint>,
    /// Capacity as counted in its pool's limits; empty for claims.
    pub(crate) capacity: BTreeMap<String, Quantity>,
    /// Pods that are bound to it now and stay.
    pub(crate) staying: Vec<&'a Pod>,
    /// Pods that the answer puts there.
    pub(crate) placed: Vec<&'a Pod>,
    /// It is being deleted and takes no pods.
    pub(crate) going: bool,
}

/// The values that a topology label of a place may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domains {
    /// Values.
    pub(crate) values: BTreeSet<String>,
    /// It may be any value.
    pub(crate) open: bool,
    /// It may be absent.
    pub(crate) absent: bool,
}

impl Domains {
    /// Whether it may be this one.
    pub(crate) fn may_be(&self, value: &str) -> bool {
        self.open || self.values.contains(value)
    }

    /// Whether it is this one and no other.
    pub(crate) fn is(&self, value: &str) -> bool {
        !self.open && !self.absent && self.values.len() == 1 && self.values.contains(value)
    }

    /// Whether both may be the same one.
    pub(crate) fn may_meet(&self, other: &Self) -> bool {
        let some = |domains: &Self| domains.open || !domains.values.is_empty();
        some(self) && other.open || self.open && some(other) || self.values.iter().any(|v| other.values.contains(v))
    }
}

impl<'a> Place<'a> {
    /// All its pods.
    pub(crate) fn pods(&self) -> impl Iterator<Item = &'a Pod> + '_ {
        self.staying.iter().chain(&self.placed).copied()
    }

    /// The values that a topology label may have, whatever it turns out to be.
    pub(crate) fn domains(&self, key: &str) -> Domains {
        let mut all = Domains::default();
        for machine in &self.machines {
            match machine.labels.get(normalize(key)) {
                None => all.absent = true,
                Some(values) => {
                    all.absent |= values.absent;
                    all.open |= values.only.is_none();
                    all.values.extend(values.only.iter().flatten().cloned());
                }
            }
        }
        all
    }

    /// Whether a pod's node selector and required node affinity hold whatever it turns out to be.
    pub(crate) fn surely_selected(&self, by: &Pod) -> bool {
        self.machines.iter().all(|m| pod::surely_selects(by, &m.labels, self.node_name.as_deref()))
    }

    /// Whether a pod's node selector and required node affinity hold for something that it may turn out to be.
    pub(crate) fn perhaps_selected(&self, by: &Pod) -> bool {
        self.machines.iter().any(|m| pod::perhaps_selects(by, &m.labels, self.node_name.as_deref()))
    }
}

/// Nodes and NodeClaims, each pair with the same provider id as one place, without pods.
pub(crate) fn existing(problem: &Problem) -> Vec<Place<'_>> {
    let provider = |node: &Node| node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    let mut places = Vec::new();
    for node in &problem.nodes {
        let claim = provider(node).and_then(|id| {
            problem.node_claims.iter().find(|c| c.status.as_ref().and_then(|s| s.provider_id.as_ref()) == Some(&id))
        });
        places.push(merged(problem, Some(node), claim));
    }
    for claim in &problem.node_claims {
        let id = claim.status.as_ref().and_then(|status| status.provider_id.clone());
        if id.is_none() || !problem.nodes.iter().any(|node| provider(node) == id) {
            places.push(merged(problem, None, Some(claim)));
        }
    }
    places
}

fn merged<'a>(problem: &'a Problem, node: Option<&Node>, claim: Option<&NodeClaim>) -> Place<'a> {
    let node_labels = node.and_then(|n| n.metadata.labels.clone()).unwrap_or_default();
    let claim_labels = claim.and_then(|c| c.metadata.labels.clone()).unwrap_or_default();
    let is = |key: &str| node.is_some() && (claim.is_none() || node_labels.get(key).is_some_and(|v| v == "true"));
    let (registered, initialized) = (is(REGISTERED), is(INITIALIZED));
    let node_name = node.and_then(|n| n.metadata.name.clone());
    let name = node_name.clone().or_else(|| claim.and_then(|c| c.metadata.name.clone())).unwrap_or_default();

    let text = if registered { &node_labels } else { &claim_labels };
    let mut labels: Labels = text.iter().map(|(key, value)| (normalize(key).to_owned(), Values::one(value))).collect();
    labels.entry(HOSTNAME.into()).or_insert_with(|| Values::one(&name));

    let status = node.and_then(|n| n.status.as_ref());
    let amounts = |of_node: Option<&BTreeMap<String, Quantity>>, of_claim: Option<&BTreeMap<String, Quantity>>| {
        let mut all = of_node.cloned().unwrap_or_default();
        if !initialized {
            // The kubelet starts with zeros for what its device plugins have not registered yet.
            for (resource, amount) in of_claim.into_iter().flatten() {
                if all.get(resource).and_then(|a| parse(&a.0)).unwrap_or_default() == 0 {
                    all.insert(resource.clone(), amount.clone());
                }
            }
        }
        all
    };
    let claimed = claim.and_then(|c| c.status.as_ref());
    let allocatable = amounts(status.and_then(|s| s.allocatable.as_ref()), claimed.map(|status| &status.allocatable));
    let capacity = amounts(status.and_then(|s| s.capacity.as_ref()), claimed.map(|status| &status.capacity));

    let kind = text.get(INSTANCE_TYPE).and_then(|name| instance_type(problem, name));
    let mut attach_limits: BTreeMap<String, Option<u32>> =
        kind.into_iter().flat_map(|k| &k.volume_limits).map(|(driver, n)| (driver.clone(), Some(*n))).collect();
    let csi = problem.csi_nodes.iter().filter(|csi| csi.metadata.name == node_name && node_name.is_some());
    for driver in csi.flat_map(|csi| &csi.spec.drivers) {
        let count = driver.allocatable.as_ref().and_then(|a| a.count).and_then(|n| u32::try_from(n).ok());
        attach_limits.insert(driver.name.clone(), count);
    }

    let deleting = claim.map_or_else(
        || node.is_some_and(|n| n.metadata.deletion_timestamp.is_some()),
        |c| c.metadata.deletion_timestamp.is_some() || c.is_true("InstanceTerminating"),
    );
    Place {
        machines: vec![Machine {
            name: name.clone(),
            made_from: None,
            labels,
            allocatable: resources(&allocatable),
            attach_limits,
        }],
        taints: remaining_taints(node, claim, registered, initialized),
        capacity,
        pool: claim_labels.get(NODEPOOL).or_else(|| node_labels.get(NODEPOOL)).cloned(),
        name,
        claim: None,
        node_name,
        staying: Vec::new(),
        placed: Vec::new(),
        going: deleting,
    }
}

/// Taints that pods must tolerate: not those that go away by themselves while a node of ours starts.
fn remaining_taints(node: Option<&Node>, claim: Option<&NodeClaim>, registered: bool, initialized: bool) -> Vec<Taint> {
    let spec = node.and_then(|n| n.spec.as_ref());
    let of_node = || spec.and_then(|s| s.taints.clone()).unwrap_or_default();
    let mut all: Vec<Taint> = match claim {
        Some(claim) if !registered => claim.spec.taints.iter().map(Taint::from).collect(),
        _ => of_node(),
    };
    if let Some(claim) = claim
        && (!initialized || claim.is_true("Rebooting"))
    {
        let goes = |taint: &Taint| {
            taints::is_ephemeral(&taint.key, &taint.effect)
                || taint.key == taints::REBOOTING && taint.effect == "NoSchedule"
                || claim.spec.startup_taints.iter().any(|startup| startup.matches(taint))
        };
        all.retain(|taint| !goes(taint));
    }
    if spec.and_then(|s| s.unschedulable) == Some(true) {
        let key = "node.kubernetes.io/unschedulable".to_owned();
        all.push(Taint { key, effect: "NoSchedule".into(), ..Taint::default() });
    }
    all
}
