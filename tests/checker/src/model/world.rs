//! The cluster as the answer would make it.

use std::collections::BTreeMap;
use std::rc::Rc;

use mortise_problem::api::NodePool;
use mortise_problem::api::labels::{is_well_known, normalize};
use mortise_problem::api::requirement::{Operator, Requirement};
use mortise_problem::k8s_openapi::api::apps::v1::DaemonSet;
use mortise_problem::k8s_openapi::api::core::v1::{Pod, Taint};
use mortise_problem::{Answer, Claim, Problem};

use super::machine::{Machine, instance_type, machines, pool, reservation};
use super::place::{Place, existing};
use super::pod;
use super::quantity::{Resources, add};

/// The cluster as the answer would make it.
pub(crate) struct World<'a> {
    /// The question.
    pub(crate) problem: &'a Problem,
    /// The answer.
    pub(crate) answer: &'a Answer,
    /// Nodes, in-flight nodes, and claims.
    pub(crate) places: Vec<Rc<Place<'a>>>,
    /// Pods by `<namespace>/<name>`.
    pub(crate) pods: Rc<BTreeMap<String, &'a Pod>>,
    /// What each DaemonSet runs on a node.
    pub(crate) daemons: Rc<Vec<Pod>>,
}

impl<'a> World<'a> {
    /// Puts the pods where they are and where the answer puts them.
    pub(crate) fn new(problem: &'a Problem, answer: &'a Answer) -> Self {
        let pods: BTreeMap<String, &Pod> = problem.pods.iter().map(|p| (pod::key(p), p)).collect();
        let mut places = existing(problem);
        for place in &mut places {
            let here = |p: &&Pod| place.node_name.is_some() && pod::node(p) == place.node_name.as_deref();
            let left = |p: &&Pod| pod::is_over(p) || place.going && leaves(p);
            place.staying = problem.pods.iter().filter(here).filter(|p| !left(p)).collect();
            let named = answer.existing.iter().filter(|e| e.node == place.name);
            place.placed = named.flat_map(|e| &e.pods).filter_map(|key| pods.get(key).copied()).collect();
        }
        for (index, claim) in answer.claims.iter().enumerate() {
            places.push(filled(problem, index, claim, &pods));
        }
        let daemons = problem.daemon_sets.iter().filter_map(|set| daemon(problem, set)).collect();
        let places = places.into_iter().map(Rc::new).collect();
        Self { problem, answer, places, pods: Rc::new(pods), daemons: Rc::new(daemons) }
    }

    /// The same for an answer that differs in one claim, by index, or has it as one more.
    pub(crate) fn with_claim<'b>(&self, answer: &'b Answer, index: usize) -> World<'b>
    where
        'a: 'b,
    {
        let mut places: Vec<Rc<Place<'b>>> = Vec::with_capacity(self.places.len() + 1);
        places.extend(self.places.iter().filter(|place| place.claim.is_none_or(|at| at < index)).cloned());
        places.extend(answer.claims.get(index).map(|claim| Rc::new(filled(self.problem, index, claim, &self.pods))));
        places.extend(self.places.iter().filter(|place| place.claim.is_some_and(|at| at > index)).cloned());
        World { problem: self.problem, answer, places, pods: Rc::clone(&self.pods), daemons: Rc::clone(&self.daemons) }
    }

    /// The DaemonSets' pods that may run on a machine.
    pub(crate) fn daemons_on<'w>(
        &'w self,
        taints: &'w [Taint],
        machine: &'w Machine<'_>,
        node_name: Option<&'w str>,
    ) -> impl Iterator<Item = &'w Pod> {
        self.daemons.iter().filter(move |daemon| {
            pod::refused_by(daemon, taints).is_none()
                && pod::perhaps_selects(daemon, &machine.labels, node_name)
                && !(self.problem.options.ignore_dra_requests && pod::asks_for_devices(daemon))
        })
    }

    /// What DaemonSets take of a machine.
    pub(crate) fn daemon_requests(&self, taints: &[Taint], machine: &Machine<'_>, node: Option<&str>) -> Resources {
        let mut sum = Resources::new();
        for daemon in self.daemons_on(taints, machine, node) {
            add(&mut sum, &pod::requests(daemon));
        }
        sum
    }
}

/// Whether a pod of a node that goes away needs another place.
pub(crate) fn leaves(p: &Pod) -> bool {
    let comes_back = pod::is_owned_by(p, "StatefulSet");
    !pod::is_over(p)
        && !pod::is_owned_by(p, "DaemonSet")
        && !pod::is_owned_by(p, "Node")
        && (!pod::is_terminating(p) || comes_back)
}

/// Taints of the nodes of a pool once they have started.
pub(crate) fn pool_taints(pool: &NodePool) -> Vec<Taint> {
    pool.spec.template.spec.taints.iter().map(Taint::from).collect()
}

/// What a claim's requirements and its own labels say together. What the cloud labels by itself is not the claim's to say.
pub(crate) fn claim_requirements(claim: &Claim) -> Vec<Requirement> {
    let own = claim.labels.iter().filter(|(key, _)| !is_well_known(normalize(key)));
    let own = own.map(|(key, value)| Requirement::new(key, Operator::In, [value.as_str()]));
    claim.requirements.iter().cloned().chain(own).collect()
}

/// A claim with its pods.
fn filled<'a>(problem: &'a Problem, index: usize, claim: &Claim, pods: &BTreeMap<String, &'a Pod>) -> Place<'a> {
    let placed = claim.pods.iter().filter_map(|key| pods.get(key).copied()).collect();
    Place { placed, ..claimed(problem, index, claim) }
}

fn claimed<'a>(problem: &'a Problem, index: usize, claim: &Claim) -> Place<'a> {
    let name = format!("claim {index}");
    let node_pool = pool(problem, &claim.node_pool);
    let mut all = Vec::new();
    for instance_type in claim.instance_types.iter().filter_map(|name| instance_type(problem, name)) {
        let ways = node_pool.map(|p| machines(p, &claim_requirements(claim), instance_type, &name)).unwrap_or_default();
        // A reservation is drawn on by those who hold it. A type that can be had no other way is judged all the same.
        let held = |m: &Machine<'_>| {
            let id = m.made_from.and_then(|(_, offering)| reservation(offering));
            id.is_none_or(|id| claim.reservations.iter().any(|held| held == id))
        };
        let usable: Vec<Machine<'a>> = ways.iter().filter(|m| held(m)).cloned().collect();
        all.extend(if usable.is_empty() { ways } else { usable });
    }
    Place {
        name,
        claim: Some(index),
        node_name: None,
        pool: Some(claim.node_pool.clone()),
        machines: all,
        taints: node_pool.map(pool_taints).unwrap_or_default(),
        capacity: BTreeMap::new(),
        staying: Vec::new(),
        placed: Vec::new(),
        going: false,
    }
}

/// What a DaemonSet runs on a node: like its newest pod, which admission may have changed, else like its template. Where
/// it runs is the template's to say: a pod of it is pinned to its node.
fn daemon(problem: &Problem, set: &DaemonSet) -> Option<Pod> {
    let template = &set.spec.as_ref()?.template;
    let mut metadata = template.metadata.clone().unwrap_or_default();
    metadata.namespace = set.metadata.namespace.clone();
    metadata.name = set.metadata.name.clone();
    let own = problem.pods.iter().filter(|p| {
        p.metadata.namespace == set.metadata.namespace
            && p.metadata
                .owner_references
                .iter()
                .flatten()
                .any(|owner| owner.kind == "DaemonSet" && Some(&owner.name) == set.metadata.name.as_ref())
    });
    let newest = own.max_by_key(|p| p.metadata.creation_timestamp.as_ref().map(|time| time.0));
    let mut spec = newest.and_then(|p| p.spec.clone()).or_else(|| template.spec.clone())?;
    spec.affinity = template.spec.as_ref().and_then(|spec| spec.affinity.clone());
    spec.node_name = None;
    Some(Pod { metadata, spec: Some(spec), status: None })
}
