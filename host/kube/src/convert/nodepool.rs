//! NodePool → the engine's, with every reason why it cannot be used now.

use std::sync::Arc;

use mortise_api::condition::{Conditions, READY};
use mortise_api::nodepool::{Budget as ApiBudget, ConsolidationPolicy as ApiPolicy};
use mortise_api::{EC2NodeClass, NodePool, annotations};
use mortise_engine::catalog::Catalog;
use mortise_engine::nodepool as engine;

use super::custom::{amounts_of, api_requirements, api_taint};
use crate::intern::Strings;
use crate::record::Map;

/// What a NodePool refers to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refers<'a> {
    /// Its class, when there is one of that name.
    pub class: Option<&'a EC2NodeClass>,
    /// The instance types of the class, once known.
    pub catalog: Option<&'a Arc<Catalog>>,
    /// The feature gate StaticCapacity is on: static pools can be used.
    pub static_capacity: bool,
}

/// The pool as the engine takes it. Whatever is wrong becomes a reason in `unusable`; nothing is guessed.
pub fn nodepool(strings: &mut Strings, pool: &NodePool, refers: Refers<'_>) -> engine::NodePool {
    let template = &pool.spec.template;
    let reference = &template.spec.node_class_ref;
    let (requirements, mut unusable) = api_requirements(&template.spec.requirements);
    let limits = limits(strings, pool, &mut unusable);
    let taints = |strings: &mut Strings, from: &[mortise_api::taints::Taint], unusable: &mut Vec<String>| {
        from.iter()
            .filter_map(|t| {
                let taint = api_taint(strings, t);
                if taint.is_none() {
                    unusable.push(format!("taint {:?} has the unknown effect {:?}", t.key, t.effect.as_str()));
                }
                taint
            })
            .collect()
    };
    let node_taints = taints(strings, &template.spec.taints, &mut unusable);
    let startup_taints = taints(strings, &template.spec.startup_taints, &mut unusable);
    why_not(pool, refers, &mut unusable);
    let disruption = disruption(strings, pool, &mut unusable);

    let mut notes: Map = template.metadata.annotations.iter().map(|(k, v)| (strings.get(k), strings.get(v))).collect();
    let pool_notes = pool.metadata.annotations.iter().flatten();
    let class_notes = refers.class.iter().flat_map(|c| c.metadata.annotations.iter().flatten());
    for (key, value) in pool_notes.chain(class_notes) {
        if matches!(
            key.as_str(),
            annotations::NODEPOOL_HASH
                | annotations::NODEPOOL_HASH_VERSION
                | annotations::EC2NODECLASS_HASH
                | annotations::EC2NODECLASS_HASH_VERSION
        ) {
            notes.insert(strings.get(key), strings.get(value));
        }
    }

    engine::NodePool {
        name: strings.get(pool.metadata.name.as_deref().unwrap_or_default()),
        uid: strings.get(pool.metadata.uid.as_deref().unwrap_or_default()),
        weight: pool.weight(),
        requirements,
        labels: template.metadata.labels.iter().map(|(k, v)| (strings.get(k), strings.get(v))).collect(),
        annotations: notes,
        taints: node_taints,
        startup_taints,
        limits,
        node_class: (strings.get(&reference.group), strings.get(&reference.kind), strings.get(&reference.name)),
        expire_after: Some(template.spec.expire_after.text()),
        termination_grace_period: template.spec.termination_grace_period.as_ref().map(|d| strings.get(d.as_str())),
        catalog: refers.catalog.cloned().unwrap_or_default(),
        disruption,
        is_static: pool.is_static(),
        replicas: pool.spec.replicas.map(|nodes| u32::try_from(nodes.max(0)).unwrap_or(u32::MAX)),
        unusable: unusable.iter().map(|reason| Arc::from(reason.as_str())).collect(),
    }
}

fn why_not(pool: &NodePool, refers: Refers<'_>, unusable: &mut Vec<String>) {
    let reference = &pool.spec.template.spec.node_class_ref;
    if pool.metadata.deletion_timestamp.is_some() {
        unusable.push("it is being deleted".to_owned());
    }
    if pool.is_static() && !refers.static_capacity {
        unusable.push("spec.replicas is set, and the feature gate StaticCapacity is off".to_owned());
    }
    if !reference.is_ec2() {
        unusable.push(format!(
            "nodeClassRef is {}/{}; only karpenter.k8s.aws/EC2NodeClass is known",
            reference.group, reference.kind
        ));
    } else if refers.class.is_none() {
        unusable.push(format!("EC2NodeClass {:?} does not exist", reference.name));
    } else if refers.catalog.is_none() {
        unusable.push(format!("the instance types of EC2NodeClass {:?} are not known yet", reference.name));
    }
    match pool.condition(READY) {
        _ if pool.is_true(READY) => {}
        Some(c) if !c.message.is_empty() => unusable.push(format!("it is not Ready: {}", c.message)),
        Some(c) => unusable.push(format!("it is not Ready: {}", c.reason)),
        None => unusable.push("it has not been checked yet".to_owned()),
    }
}

fn limits(strings: &mut Strings, pool: &NodePool, unusable: &mut Vec<String>) -> engine::Limits {
    let mut limits = engine::Limits::default();
    for (name, amount) in
        pool.spec.limits.iter().flat_map(|l| amounts_of(l, "spec.limits", unusable)).collect::<Vec<_>>()
    {
        if name == "nodes" {
            limits.nodes = Some(amount);
        } else {
            limits.resources.insert(strings.get(name), amount);
        }
    }
    limits
}

fn disruption(strings: &mut Strings, pool: &NodePool, unusable: &mut Vec<String>) -> engine::Disruption {
    let from = &pool.spec.disruption;
    let policy = match &from.consolidation_policy {
        ApiPolicy::WhenEmpty => engine::ConsolidationPolicy::WhenEmpty,
        ApiPolicy::WhenEmptyOrUnderutilized => engine::ConsolidationPolicy::WhenEmptyOrUnderutilized,
        ApiPolicy::Balanced => engine::ConsolidationPolicy::Balanced,
        ApiPolicy::Other(word) => {
            unusable.push(format!("spec.disruption.consolidationPolicy {word:?} is unknown"));
            engine::ConsolidationPolicy::WhenEmpty
        }
    };
    let consolidate_after_ms = match from.consolidate_after.get() {
        Ok(after) => after.map(millis),
        Err(error) => {
            unusable.push(format!("spec.disruption.consolidateAfter: {error}"));
            // Never: a time that cannot be read must not remove nodes at once.
            None
        }
    };
    engine::Disruption {
        policy,
        consolidate_after_ms,
        budgets: from.budgets.iter().map(|b| budget(strings, b)).collect(),
    }
}

fn budget(strings: &mut Strings, from: &ApiBudget) -> engine::Budget {
    let duration = from.duration.as_ref().map(|d| d.get().map(millis));
    engine::Budget {
        // A window that cannot be read closes the budget, as one whose schedule cannot be read does.
        nodes: if matches!(duration, Some(Err(_))) { Arc::from("0") } else { strings.get(&from.nodes) },
        schedule: match duration {
            Some(Err(_)) => None,
            _ => from.schedule.as_deref().map(|s| strings.get(s)),
        },
        duration_ms: duration.and_then(Result::ok),
        reasons: from.reasons.iter().map(|r| strings.get(r.as_str())).collect(),
    }
}

fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
