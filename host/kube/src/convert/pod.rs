//! Pod → [`PodRecord`].

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_api::{annotations, labels};
use mortise_engine::pod::{PodKey, PodShape};
use mortise_engine::requirement::Operator;

use super::affinity::selector_terms;
use super::toleration::covers_disrupted;
use super::{Converter, effective_requests, opt_unix_ms, selector::Selector};
use crate::objects::{DaemonSet, Pdb, Pod, PodSpec, PodStatus, Scalar, SpreadConstraint};
use crate::record::{DaemonSetRecord, Hold, Owner, PdbRecord, Phase, PodRecord, Soft, VolumeRef};

/// Longest piece of a user's text that is repeated in a message or record.
const MAX_QUOTE: usize = 64;

impl Converter {
    /// What is kept of a pod.
    pub fn pod(&mut self, pod: &Pod) -> PodRecord {
        let meta = &pod.metadata;
        let name = self.name(meta);
        let notes = meta.annotations.as_ref();
        let (shape, soft) = self.shape(&name.namespace, meta.labels.as_ref(), &pod.spec, &pod.status);
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
            soft,
            volumes: self.volumes(&pod.spec, &name.name),
            shape,
        }
    }

    /// What is kept of a DaemonSet: its pod as the template makes it.
    pub fn daemonset(&mut self, ds: &DaemonSet) -> DaemonSetRecord {
        let name = self.name(&ds.metadata);
        let template = &ds.spec.template;
        let labels = template.metadata.labels.as_ref();
        let (shape, _) = self.shape(&name.namespace, labels, &template.spec, &PodStatus::default());
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
        PdbRecord {
            name: self.name(&pdb.metadata),
            selector: Selector::new(&mut self.strings, pdb.spec.selector.as_ref()),
            disruptions_allowed: pdb.status.disruptions_allowed,
            never: is(pdb.spec.max_unavailable.as_ref(), &["0", "0%"])
                || is(pdb.spec.min_available.as_ref(), &["100%"]),
            unhealthy_always: pdb.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow"),
        }
    }

    fn owner(&mut self, pod: &Pod) -> Owner {
        let mut owner = Owner::Other;
        for reference in pod.metadata.owner_references.iter().flatten() {
            match (reference.api_version.as_str(), reference.kind.as_str()) {
                ("apps/v1", "DaemonSet") => return Owner::DaemonSet(self.strings.get(&reference.uid)),
                ("v1", "Node") => owner = Owner::Node,
                ("apps/v1", "StatefulSet") => owner = Owner::StatefulSet,
                _ => {}
            }
        }
        owner
    }

    fn volumes(&mut self, spec: &PodSpec, pod_name: &str) -> Box<[VolumeRef]> {
        let mut refs = Vec::new();
        for volume in &spec.volumes {
            let claim = match (&volume.persistent_volume_claim, &volume.ephemeral) {
                (Some(source), _) => self.strings.get(&source.claim_name),
                (None, Some(_)) => Arc::from(format!("{pod_name}-{}", volume.name)),
                (None, None) => continue,
            };
            refs.push(VolumeRef { volume: self.strings.get(&volume.name), claim });
        }
        refs.into_boxed_slice()
    }

    /// The shared shape of a pod and the soft constraints left out of it. The volumes' part is added by the cluster state.
    fn shape(
        &mut self,
        namespace: &Arc<str>,
        labels: Option<&BTreeMap<String, String>>,
        spec: &PodSpec,
        status: &PodStatus,
    ) -> (Arc<PodShape>, Soft) {
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
        let soft = hard_and_soft(spec, &mut problems);
        shape.unsupported = problems.iter().map(|p| self.strings.get(p)).collect();
        let (shared, new) = self.shapes.share(shape);
        let left_out = soft.names();
        if new && !left_out.is_empty() {
            tracing::info!(
                namespace = %namespace,
                labels = ?shared.labels,
                ignored = left_out.join(", "),
                "pods have preferences that are not acted on yet; they are placed without them"
            );
        }
        (shared, soft)
    }
}

/// Records hard constraints that are not acted on, and returns the soft ones that are left out.
fn hard_and_soft(spec: &PodSpec, problems: &mut Vec<String>) -> Soft {
    let mut soft = Soft::default();
    for SpreadConstraint { topology_key, when_unsatisfiable, .. } in &spec.topology_spread_constraints {
        if when_unsatisfiable.as_deref() == Some("ScheduleAnyway") {
            soft.spread = true;
        } else {
            problems.push(format!(
                "spec.topologySpreadConstraints over {} with whenUnsatisfiable: DoNotSchedule is not acted on yet",
                quote(topology_key.as_deref().unwrap_or_default())
            ));
        }
    }
    let affinity = spec.affinity.as_ref();
    for (field, rules, preferred) in [
        ("podAffinity", affinity.and_then(|a| a.pod_affinity.as_ref()), &mut soft.affinity),
        ("podAntiAffinity", affinity.and_then(|a| a.pod_anti_affinity.as_ref()), &mut soft.anti_affinity),
    ] {
        let Some(rules) = rules else { continue };
        *preferred = !rules.preferred.is_empty();
        if !rules.required.is_empty() {
            problems.push(format!(
                "spec.affinity.{field}.requiredDuringSchedulingIgnoredDuringExecution is not acted on yet"
            ));
        }
    }
    let ports: Vec<i64> =
        spec.containers.iter().flat_map(|c| &c.ports).filter_map(|p| p.host_port).filter(|p| *p != 0).collect();
    if !ports.is_empty() {
        problems.push(format!("spec.containers[].ports[].hostPort {ports:?} is not acted on yet"));
    }
    if uses_claims(spec) {
        problems.push("spec.resourceClaims (dynamic resource allocation) is not acted on".to_owned());
    }
    soft
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
