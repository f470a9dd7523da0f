//! One slot as the engine sees it (karpenter-algorithms §2.2 to §2.4).

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_api::condition::{Conditions, nodeclaim as conditions};
use mortise_api::{NodeClaim, annotations, labels, taints};
use mortise_engine::node::{Node, NodePod};
use mortise_engine::quantity::Resources;
use mortise_engine::requirement::Operator;
use mortise_engine::taint::{Effect, Taint};

use super::eviction::Judged;
use super::shape::Shared;
use super::slots::Slot;
use super::{ClusterState, name_of};
use crate::convert::{api_requirements, api_resources, api_taint, unix_ms};
use crate::intern::Strings;
use crate::record::{Hold, Map, NodeRecord, Owner, PodRecord};

fn is_true(map: &Map, key: &str) -> bool {
    map.get(key).is_some_and(|value| &**value == "true")
}

impl Slot {
    /// The Node, unless it is to be left out: a managed one is looked at once it can be told which NodeClaim is its own,
    /// and, while it starts, once its instance type is known.
    pub(super) fn visible_node(&self) -> Option<&Arc<NodeRecord>> {
        self.node().filter(|node| {
            let managed = node.labels.contains_key(labels::NODEPOOL);
            let named = node.provider_id.is_some();
            let typed = is_true(&node.labels, labels::INITIALIZED) || node.labels.contains_key(labels::INSTANCE_TYPE);
            !managed || (named && typed)
        })
    }

    /// Being deleted or chosen for it (§2.3). A Node's own deletion counts only when it has no NodeClaim: else the
    /// NodeClaim follows at once.
    pub(super) fn deleting(&self) -> bool {
        self.marked
            || match self.claim() {
                Some(claim) => {
                    claim.metadata.deletion_timestamp.is_some() || claim.is_true(conditions::INSTANCE_TERMINATING)
                }
                None => self.node().is_some_and(|node| node.deletion_unix_ms.is_some()),
            }
    }

    /// Unmanaged nodes always are.
    pub(super) fn initialized(&self) -> bool {
        self.claim().is_none() || self.visible_node().is_some_and(|node| is_true(&node.labels, labels::INITIALIZED))
    }

    pub(super) fn registered(&self) -> bool {
        self.claim().is_none() || self.visible_node().is_some_and(|node| is_true(&node.labels, labels::REGISTERED))
    }
}

impl ClusterState {
    /// Builds every slot that changed since it was last built, or whose truth was for a time only.
    pub(super) fn build_nodes(&mut self, now_unix_ms: i64) {
        self.touch_after_shared_changes();
        // Split so that slots can be changed while everything else is read.
        let mut slots = std::mem::take(&mut self.slots);
        let mut strings = std::mem::take(&mut self.strings);
        let mut shapes = Shared::new(std::mem::take(&mut self.shapes));
        for slot in slots.iter_mut() {
            if slot.built.is_none() || now_unix_ms >= slot.valid_until {
                let (node, valid_until) = self.build(slot, &mut strings, &mut shapes, now_unix_ms);
                slot.built = Some(node.map(Arc::new));
                slot.valid_until = valid_until;
            }
        }
        self.slots = slots;
        self.strings = strings;
        self.shapes = shapes.into_inner();
    }

    /// Budgets and volumes concern pods on many nodes.
    fn touch_after_shared_changes(&mut self) {
        let budgets = std::mem::take(&mut self.pdbs_changed);
        let volumes = std::mem::take(&mut self.volumes_changed);
        let defaults = self.default_spread.take_changed();
        if budgets.is_empty() && !volumes && defaults.is_empty() {
            return;
        }
        let concerned: Vec<Arc<str>> = self
            .pods_by_node
            .iter()
            .filter(|(_, pods)| {
                pods.iter().any(|(name, pod)| {
                    budgets.contains(&name.namespace) || (volumes && !pod.volumes.is_empty()) || defaults.concerns(pod)
                })
            })
            .map(|(node, _)| Arc::clone(node))
            .collect();
        for node in concerned {
            self.touch_node(&node);
        }
        if volumes {
            for slot in self.slots.iter_mut() {
                slot.built = None;
            }
        }
    }

    fn build(&self, slot: &Slot, strings: &mut Strings, shapes: &mut Shared, now_unix_ms: i64) -> (Option<Node>, i64) {
        let node = slot.visible_node().map(AsRef::as_ref);
        let claim = slot.claim().map(AsRef::as_ref);
        let mut built = match (node, claim) {
            (None, None) => return (None, i64::MAX),
            (Some(node), None) => unmanaged(node),
            (node, Some(claim)) => managed(slot, node, claim, strings),
        };
        built.deleting = slot.deleting();
        built.nominated_until_unix_ms = slot.nominated_until;
        built.last_pod_event_unix_ms = built.last_pod_event_unix_ms.max(slot.last_pod_event);
        if let Some(csi) = built.node_name.as_ref().and_then(|name| self.csi_nodes.get(name)) {
            built.volume_limits.clone_from(&csi.limits);
        }
        let mut valid_until = i64::MAX;
        if let Some(pods) = node.and_then(|node| self.pods_by_node.get(&node.name)) {
            for pod in pods.values() {
                valid_until = valid_until.min(self.count(&mut built, pod, shapes, now_unix_ms));
            }
        }
        for name in self.promises.of(built.node_claim.as_deref(), built.node_name.as_deref()) {
            if let Some(pod) = self.waiting.get(name) {
                built.used = built.used.saturating_add(&pod.shape.requests);
                // They will be there: the next pods are spread, kept apart and given ports with them in mind.
                built.fixed_pods.push(self.full_shape(pod, shapes));
            }
        }
        (Some(built), valid_until)
    }

    /// Adds a bound pod to its node; returns until when what it adds is true.
    fn count(&self, node: &mut Node, pod: &Arc<PodRecord>, shapes: &mut Shared, now_unix_ms: i64) -> i64 {
        node.used = node.used.saturating_add(&pod.shape.requests);
        if pod.daemon() {
            node.daemon_used = node.daemon_used.saturating_add(&pod.shape.requests);
        }
        let held = pod.active() && pod.held(now_unix_ms);
        let valid_until = match (held, &pod.hold, pod.started_unix_ms) {
            (true, Hold::For(ms), Some(start)) => start.saturating_add(*ms),
            _ => i64::MAX,
        };
        let shape = self.full_shape(pod, shapes);
        let judged = self.judge(pod, now_unix_ms);
        let Judged { blocked_by, never } = judged;
        if matches!(pod.owner, Owner::DaemonSet(_) | Owner::Node) {
            let why = match blocked_by {
                _ if held => Some(Arc::from("has the karpenter.sh/do-not-disrupt annotation")),
                Some(budget) => Some(Arc::from(format!("its PodDisruptionBudget {budget} allows no eviction"))),
                None => None,
            };
            node.blocking_pods.extend(why.map(|why| (pod.key.clone(), why)));
            node.fixed_pods.push(shape);
            return valid_until;
        }
        node.pods.push(NodePod {
            key: pod.key.clone(),
            shape,
            do_not_disrupt: held,
            blocked_by_pdb: blocked_by,
            fully_blocked: never,
            terminating: pod.terminating(),
            stateful: matches!(pod.owner, Owner::StatefulSet(_)),
            eviction_cost_milli: pod.eviction_cost_milli,
        });
        valid_until
    }
}

/// A Node without a NodeClaim.
fn unmanaged(node: &NodeRecord) -> Node {
    Node {
        name: Arc::clone(&node.name),
        node_name: Some(Arc::clone(&node.name)),
        nodepool: node.labels.get(labels::NODEPOOL).cloned(),
        provider_id: node.provider_id.clone(),
        labels: node.labels.clone(),
        taints: node.taints.clone(),
        capacity: node.capacity.clone(),
        allocatable: node.allocatable.clone(),
        launched: true,
        registered: true,
        initialized: true,
        ready: node.ready(),
        do_not_disrupt: is_true(&node.annotations, annotations::DO_NOT_DISRUPT),
        created_unix_ms: node.created_unix_ms,
        ..Node::default()
    }
}

/// A NodeClaim with its Node, or still without.
fn managed(slot: &Slot, node: Option<&NodeRecord>, claim: &NodeClaim, strings: &mut Strings) -> Node {
    let claim_name = name_of(&claim.metadata).name;
    let registered = slot.registered();
    let initialized = slot.initialized();
    let launched = claim.is_true(conditions::LAUNCHED);
    let status = claim.status.as_ref();
    let (requirements, _) = api_requirements(&claim.spec.requirements);

    let labels: Map = match node.filter(|_| registered) {
        Some(node) => node.labels.clone(),
        None => {
            let mut labels: Map =
                claim.metadata.labels.iter().flatten().map(|(k, v)| (strings.get(k), strings.get(v))).collect();
            if !launched {
                for r in &requirements {
                    if let (Operator::In, [only]) = (r.operator, r.values.as_slice()) {
                        labels.entry(Arc::clone(&r.key)).or_insert_with(|| Arc::clone(only));
                    }
                }
            }
            labels
        }
    };
    let mut problems = Vec::new();
    let mut amounts = |list: Option<&BTreeMap<String, _>>, field: &str| {
        list.map(|list| api_resources(list, field, &mut problems)).unwrap_or_default()
    };
    let claim_capacity = amounts(status.map(|s| &s.capacity), "status.capacity");
    let claim_allocatable = amounts(status.map(|s| &s.allocatable), "status.allocatable");
    let amount = |from_node: Option<&Resources>, from_claim: Resources| match from_node {
        None => from_claim,
        Some(own) if initialized => own.clone(),
        Some(own) => fill_zeros(own, &from_claim),
    };
    let noted = |key: &str| {
        claim.metadata.annotations.as_ref().and_then(|a| a.get(key)).is_some_and(|v| v == annotations::TRUE)
            || node.is_some_and(|n| is_true(&n.annotations, key))
    };
    let initialized_at = claim
        .condition(conditions::INITIALIZED)
        .filter(|c| mortise_api::condition::is_true(c))
        .map(|c| unix_ms(&c.last_transition_time));
    Node {
        name: node.filter(|_| registered).map_or_else(|| Arc::clone(&claim_name), |n| Arc::clone(&n.name)),
        node_name: node.map(|n| Arc::clone(&n.name)),
        node_claim: Some(claim_name),
        nodepool: claim
            .metadata
            .labels
            .as_ref()
            .and_then(|l| l.get(mortise_api::labels::NODEPOOL))
            .map(|pool| strings.get(pool)),
        provider_id: status.and_then(|s| s.provider_id.as_deref()).filter(|p| !p.is_empty()).map(|p| strings.get(p)),
        labels,
        requirements: if launched { Vec::new() } else { requirements },
        taints: visible_taints(strings, node.filter(|_| registered), claim, initialized),
        capacity: amount(node.map(|n| &n.capacity), claim_capacity),
        allocatable: amount(node.map(|n| &n.allocatable), claim_allocatable),
        launched,
        registered,
        initialized,
        ready: node.is_some_and(NodeRecord::ready),
        instance_terminating: claim.is_true(conditions::INSTANCE_TERMINATING),
        do_not_disrupt: noted(annotations::DO_NOT_DISRUPT),
        consolidatable: claim.is_true(conditions::CONSOLIDATABLE),
        created_unix_ms: claim.metadata.creation_timestamp.as_ref().map(unix_ms).unwrap_or_default(),
        last_pod_event_unix_ms: status.and_then(|s| s.last_pod_event_time.as_ref()).map(unix_ms).or(initialized_at),
        ..Node::default()
    }
}

/// Taints that keep pods away for good: those of the NodeClaim until it is registered, then the Node's; without those
/// that go away by themselves while the node starts or reboots.
fn visible_taints(
    strings: &mut Strings,
    node: Option<&NodeRecord>,
    claim: &NodeClaim,
    initialized: bool,
) -> Vec<Taint> {
    let own: Vec<Taint> = match node {
        Some(node) => node.taints.clone(),
        None => claim.spec.taints.iter().filter_map(|t| api_taint(strings, t)).collect(),
    };
    if initialized && !claim.is_true(conditions::REBOOTING) {
        return own;
    }
    let startup: Vec<Taint> = claim.spec.startup_taints.iter().filter_map(|t| api_taint(strings, t)).collect();
    own.into_iter()
        .filter(|taint| {
            let passing = taints::is_ephemeral(&taint.key, effect_name(taint.effect))
                || startup.iter().any(|s| s.key == taint.key && s.effect == taint.effect)
                || (&*taint.key == taints::REBOOTING && taint.effect == Effect::NoSchedule);
            !passing
        })
        .collect()
}

fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::NoExecute => "NoExecute",
    }
}

/// A starting kubelet may report extended resources as zero, or not at all: then the NodeClaim knows better.
fn fill_zeros(own: &Resources, promised: &Resources) -> Resources {
    let mut filled = own.clone();
    for (name, amount) in promised.iter() {
        if own.get(name) == 0 {
            filled.set(name, amount);
        }
    }
    filled
}
