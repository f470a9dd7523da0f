//! Pod → [`PodRecord`].

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_api::{annotations, labels};
use mortise_engine::pod::{PodKey, PodShape};
use mortise_engine::requirement::Operator;

use super::affinity::selector_terms;
use super::toleration::covers_disrupted;
use super::{Converter, effective_requests, label_selector, opt_unix_ms};
use crate::objects::{DaemonSet, Pdb, Pod, PodSpec, PodStatus, Scalar};
use crate::record::{DaemonSetRecord, Hold, Owner, PdbRecord, Phase, PodRecord, VolumeRef};

/// Longest piece of a user's text that is repeated in a message or record.
const MAX_QUOTE: usize = 64;

impl Converter {
    /// What is kept of a pod.
    pub fn pod(&mut self, pod: &Pod) -> PodRecord {
        let meta = &pod.metadata;
        let name = self.name(meta);
        let notes = meta.annotations.as_ref();
        let shape = self.shape(&name.namespace, meta.labels.as_ref(), &pod.spec, &pod.status);
        let priority = shape.priority;
        let condition = |kind: &str| pod.status.conditions.iter().find(|c| c.kind == kind);
        let pod_scheduled =
            |reason: &str| pod.status.conditions.iter().any(|c| c.kind == "PodScheduled" && c.reason == reason);
        PodRecord {
            key: PodKey {
                namespace: Arc::clone(&name.namespace),
                name: Arc::clone(&name.name),
                uid: Arc::from(meta.uid.as_deref().unwrap_or_default()),
            },
            node: pod.spec.node_name.as_deref().filter(|n| !n.is_empty()).map(|n| self.strings.get(n)),
            owner: self.owner(pod),
            phase: match pod.status.phase.as_deref() {
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                _ => Phase::Pending,
            },
            created_unix_ms: opt_unix_ms(meta.creation_timestamp.as_ref()).unwrap_or_default(),
            started_unix_ms: opt_unix_ms(pod.status.start_time.as_ref()),
            deletion_unix_ms: opt_unix_ms(meta.deletion_timestamp.as_ref()),
            grace_seconds: pod.spec.termination_grace_period_seconds,
            ready: condition("Ready").is_some_and(|c| c.status == "True"),
            unschedulable: pod_scheduled("Unschedulable"),
            nominated: pod.status.nominated_node_name.as_deref().is_some_and(|n| !n.is_empty()),
            critical: matches!(
                pod.spec.priority_class_name.as_deref(),
                Some("system-cluster-critical" | "system-node-critical")
            ),
            tolerates_disrupted: shape.tolerations.iter().any(covers_disrupted),
            refuses_nodepools: refuses_nodepools(&shape),
            hold: hold(notes),
            eviction_cost_milli: eviction_cost(notes, priority),
            volumes: self.volumes(&pod.spec, &name.name),
            shape,
        }
    }

    /// What is kept of a DaemonSet: its pod as the template makes it.
    pub fn daemonset(&mut self, ds: &DaemonSet) -> DaemonSetRecord {
        let name = self.name(&ds.metadata);
        let template = &ds.spec.template;
        let labels = template.metadata.labels.as_ref();
        let shape = self.shape(&name.namespace, labels, &template.spec, &PodStatus::default());
        DaemonSetRecord {
            name,
            uid: self.strings.get(ds.metadata.uid.as_deref().unwrap_or_default()),
            template: shape,
            uses_claims: uses_claims(&template.spec),
        }
    }

    /// What is kept of a PodDisruptionBudget.
    pub fn pdb(&mut self, pdb: &Pdb) -> PdbRecord {
        let is = |value: Option<&Scalar>, texts: &[&str]| value.is_some_and(|v| texts.contains(&v.0.trim()));
        // A selector that cannot be read covers every pod: for a budget that is the careful reading.
        let selector = pdb.spec.selector.as_ref();
        let selector =
            selector.map(|from| label_selector(&mut self.strings, "spec.selector", from).unwrap_or_default());
        PdbRecord {
            name: self.name(&pdb.metadata),
            selector,
            disruptions_allowed: pdb.status.disruptions_allowed,
            never: is(pdb.spec.max_unavailable.as_ref(), &["0", "0%"])
                || is(pdb.spec.min_available.as_ref(), &["100%"]),
            unhealthy_always: pdb.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow"),
        }
    }

    fn owner(&mut self, pod: &Pod) -> Owner {
        let mut owner = Owner::Other;
        for reference in pod.metadata.owner_references.iter().flatten() {
            let controls = reference.controller == Some(true);
            match (reference.api_version.as_str(), reference.kind.as_str()) {
                ("apps/v1", "DaemonSet") => return Owner::DaemonSet(self.strings.get(&reference.uid)),
                ("v1", "Node") => owner = Owner::Node,
                ("apps/v1", "StatefulSet") => owner = Owner::StatefulSet(self.strings.get(&reference.name)),
                ("apps/v1", "ReplicaSet") if controls && owner == Owner::Other => {
                    owner = Owner::ReplicaSet(self.strings.get(&reference.name));
                }
                ("v1", "ReplicationController") if controls && owner == Owner::Other => {
                    owner = Owner::ReplicationController(self.strings.get(&reference.name));
                }
                _ => {}
            }
        }
        owner
    }

    fn volumes(&mut self, spec: &PodSpec, pod_name: &str) -> Box<[VolumeRef]> {
        let mut refs = Vec::new();
        for volume in &spec.volumes {
            let (claim, made) = match (&volume.persistent_volume_claim, &volume.ephemeral) {
                (Some(source), _) => (self.strings.get(&source.claim_name), None),
                (None, Some(source)) => {
                    let class = source.volume_claim_template.spec.storage_class_name.as_deref();
                    let name = Arc::from(format!("{pod_name}-{}", volume.name));
                    (name, Some(class.map(|class| self.strings.get(class))))
                }
                (None, None) => continue,
            };
            refs.push(VolumeRef { volume: self.strings.get(&volume.name), claim, made });
        }
        refs.into_boxed_slice()
    }

    /// The shared shape of a pod. What its volumes and cluster defaults add is added by the cluster state.
    pub(super) fn shape(
        &mut self,
        namespace: &Arc<str>,
        labels: Option<&BTreeMap<String, String>>,
        spec: &PodSpec,
        status: &PodStatus,
    ) -> Arc<PodShape> {
        let mut problems = Vec::new();
        let requests = effective_requests(spec, status, &mut problems);
        let mut shape = PodShape {
            namespace: Arc::clone(namespace),
            labels: self.map(labels),
            requests,
            priority: spec.priority.unwrap_or_default(),
            ..PodShape::default()
        };
        for (key, value) in &spec.node_selector {
            match self.selector_entry(key, value) {
                Ok((key, value)) => {
                    if let Some(other) = shape.node_selector.get(&key).filter(|other| **other != value) {
                        problems.push(format!(
                            "spec.nodeSelector: {key:?} is asked for twice (once by an old name), as {other:?} and {value:?}"
                        ));
                    }
                    shape.node_selector.insert(key, value);
                }
                Err(problem) => problems.push(problem),
            }
        }
        if let Some(affinity) = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref()) {
            if let Some(required) = &affinity.required {
                let field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
                let (terms, found) = selector_terms(&mut self.strings, field, required);
                shape.required_affinity = terms;
                problems.extend(found);
            }
            shape.preferred_affinity = self.preferred(&affinity.preferred);
        }
        for toleration in &spec.tolerations {
            match self.toleration(toleration) {
                Ok(t) => shape.tolerations.push(t),
                Err(problem) => problems.push(problem.to_string()),
            }
        }
        self.topology(&mut shape, &spec.topology_spread_constraints, spec.affinity.as_ref(), &mut problems);
        shape.host_ports = self.host_ports(spec, &mut problems);
        if uses_claims(spec) {
            problems.push("spec.resourceClaims (dynamic resource allocation) is not acted on".to_owned());
        }
        shape.unsupported = problems.iter().map(|p| self.strings.get(p)).collect();
        self.shapes.share(shape)
    }
}

/// Asks for devices by dynamic resource allocation.
fn uses_claims(spec: &PodSpec) -> bool {
    !spec.resource_claims.is_empty()
        || spec.containers.iter().chain(&spec.init_containers).any(|c| !c.resources.claims.is_empty())
}

/// `karpenter.sh/nodepool` DoesNotExist in the first required or the heaviest preferred term.
fn refuses_nodepools(shape: &PodShape) -> bool {
    let first = shape.required_affinity.first().into_iter().flatten();
    let heaviest = shape.preferred_affinity.first().into_iter().flat_map(|(_, term)| term);
    first.chain(heaviest).any(|r| &*r.key == labels::NODEPOOL && r.operator == Operator::DoesNotExist)
}

fn hold(notes: Option<&BTreeMap<String, String>>) -> Hold {
    let Some(text) = notes.and_then(|n| n.get(annotations::DO_NOT_DISRUPT)) else { return Hold::None };
    if text == annotations::TRUE {
        return Hold::Forever;
    }
    let millis = mortise_api::duration::parse(text).ok().and_then(|d| i64::try_from(d.as_millis()).ok());
    match millis {
        Some(ms) if ms > 0 => Hold::For(ms),
        _ => Hold::Invalid(quote(text).into()),
    }
}

/// 1 + cost/2²⁷ + priority/2²⁵, within ±10, in thousandths (karpenter-algorithms §5.5).
fn eviction_cost(notes: Option<&BTreeMap<String, String>>, priority: i32) -> i64 {
    let note = |key: &str| notes.and_then(|n| n.get(key));
    // A disruption cost that does not parse counts as zero and does not fall back to the deletion cost.
    let cost = match note(annotations::DISRUPTION_COST) {
        Some(text) => text.parse::<i32>().unwrap_or_default(),
        None => note(annotations::POD_DELETION_COST).and_then(|text| text.parse::<i32>().ok()).unwrap_or_default(),
    };
    let sum = i64::from(cost) + 4 * i64::from(priority);
    (1000 + sum * 1000 / (1 << 27)).clamp(-10_000, 10_000)
}

/// A user's text, short enough for a message.
fn quote(text: &str) -> String {
    text.chars().take(MAX_QUOTE).collect()
}
