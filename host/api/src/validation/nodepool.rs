//! NodePool.

use std::collections::BTreeSet;

use super::hint::did_you_mean;
use super::{Findings, is_label_value, is_qualified_name, schedule_error};
use crate::labels::{self, capacity_type, tenancy};
use crate::nodepool::{ConsolidationPolicy, DisruptionReason, NodePool, NodePoolSpec};
use crate::requirement::{Operator, Requirement};
use crate::taints::{Effect, Taint};

/// Fewer instance types than this, and one shortage of capacity stops the pool.
const FEW_INSTANCE_TYPES: usize = 5;

/// Everything that is wrong or suspicious with a NodePool.
pub fn node_pool(pool: &NodePool) -> Findings {
    let mut findings = Findings::default();
    let spec = &pool.spec;
    template_labels(spec, &mut findings);
    taints(spec, &mut findings);
    for (i, requirement) in spec.template.spec.requirements.iter().enumerate() {
        self::requirement(&format!("spec.template.spec.requirements[{i}]"), requirement, &mut findings);
    }
    class_ref(spec, &mut findings);
    durations(spec, &mut findings);
    disruption(spec, &mut findings);
    advice(spec, &mut findings);
    findings
}

/// What is wrong with a label key, for the user.
pub(super) fn key_error(key: &str) -> Option<String> {
    if key == labels::NODEPOOL {
        return Some("is set by the controller, to the name of the NodePool: remove it".into());
    }
    if key == labels::HOSTNAME {
        return Some("names a single node: remove it".into());
    }
    if !is_qualified_name(key) {
        return Some("is not a label key: write a name, or a DNS name, a slash and a name".into());
    }
    labels::is_restricted(key).then(|| {
        let hint = did_you_mean(key, labels::WELL_KNOWN.iter().copied());
        format!("lies in a domain of the controller and is none of its well-known labels{hint}")
    })
}

fn template_labels(spec: &NodePoolSpec, findings: &mut Findings) {
    for (key, value) in &spec.template.metadata.labels {
        let field = format!("spec.template.metadata.labels[{key}]");
        if let Some(message) = key_error(key) {
            findings.error(&field, key, message);
        }
        if !is_label_value(value) {
            findings.error(field, value, "is not a label value: at most 63 letters, digits, -, _ and .");
        }
    }
}

fn taints(spec: &NodePoolSpec, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    let lists = [("taints", &spec.template.spec.taints), ("startupTaints", &spec.template.spec.startup_taints)];
    for (list, i, taint) in
        lists.iter().flat_map(|(list, taints)| taints.iter().enumerate().map(move |(i, t)| (list, i, t)))
    {
        let field = format!("spec.template.spec.{list}[{i}]");
        let Taint { key, value, effect, .. } = taint;
        if !is_qualified_name(key) {
            findings.error(
                format!("{field}.key"),
                key,
                "is not a taint key: write a name, or a DNS name, a slash and a name",
            );
        }
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty() && !is_qualified_name(value)) {
            findings.error(
                format!("{field}.value"),
                value,
                "is not a taint value: at most 63 letters, digits, -, _ and .",
            );
        }
        if !effect.is_known() && !effect.as_str().is_empty() {
            let hint = did_you_mean(effect.as_str(), Effect::VALUES.iter().copied());
            findings.error(
                format!("{field}.effect"),
                effect,
                format!("use NoSchedule, PreferNoSchedule or NoExecute{hint}"),
            );
        }
        if !seen.insert((key, effect)) {
            findings.error(field, taint, "this key and effect are there twice in taints and startupTaints: remove one");
        }
    }
}

fn requirement(field: &str, requirement: &Requirement, findings: &mut Findings) {
    let Requirement { operator, values, min_values, .. } = requirement;
    let key = labels::normalize(&requirement.key);
    match key_error(key) {
        Some(message) => findings.error(format!("{field}.key"), &requirement.key, message),
        None if !labels::is_well_known(key) => {
            let hint = did_you_mean(key, labels::WELL_KNOWN.iter().copied());
            if !hint.is_empty() {
                findings.warn(
                    format!("{field}.key"),
                    key,
                    format!("is no label of instance types, so it restricts none of them{hint}"),
                );
            }
        }
        None => {}
    }
    if !operator_values(field, operator, values, findings) {
        return;
    }
    let listed = values.join(", ");
    let distinct = values.iter().collect::<BTreeSet<_>>().len();
    let enough = |count: usize| min_values.is_none_or(|min| usize::try_from(min).is_ok_and(|min| count >= min));
    if *operator == Operator::In && !enough(distinct) {
        findings.error(format!("{field}.values"), &listed, "has fewer different values than minValues asks for");
    }
    if *operator == Operator::In {
        known_values(field, key, requirement, &enough, findings);
    }
}

/// What is wrong with an operator and its values. False when the operator is unknown, so that nothing more can be said.
pub(super) fn operator_values(
    field: &str,
    operator: &Operator,
    values: &[std::sync::Arc<str>],
    findings: &mut Findings,
) -> bool {
    if !operator.is_known() {
        let hint = did_you_mean(operator.as_str(), Operator::VALUES.iter().copied());
        findings.error(
            format!("{field}.operator"),
            operator,
            format!("use one of {}{hint}", Operator::VALUES.join(", ")),
        );
        return false;
    }
    for (i, value) in values.iter().enumerate().filter(|(_, value)| !is_label_value(value)) {
        findings.error(
            format!("{field}.values[{i}]"),
            value,
            "is not a label value: at most 63 letters, digits, -, _ and .",
        );
    }
    if *operator == Operator::In && values.is_empty() {
        findings.error(format!("{field}.values"), "", "operator In needs at least one value");
    }
    if operator.is_bound() && !matches!(values, [one] if one.parse::<i64>().is_ok_and(|n| n >= 0)) {
        findings.error(
            format!("{field}.values"),
            values.join(", "),
            format!("operator {operator} needs exactly one value, a whole number from 0 up"),
        );
    }
    true
}

/// Labels whose values are all known: (label, values, whether having none of them is an error).
const KNOWN_VALUES: &[(&str, &[&str], bool)] = &[
    (labels::CAPACITY_TYPE, capacity_type::ALL, true),
    (labels::INSTANCE_TENANCY, tenancy::ALL, true),
    (labels::ARCH, &["amd64", "arm64"], false),
    (labels::OS, &["linux", "windows"], false),
];

fn known_values(
    field: &str,
    key: &str,
    requirement: &Requirement,
    enough: &dyn Fn(usize) -> bool,
    findings: &mut Findings,
) {
    let Some((_, known, fatal)) = KNOWN_VALUES.iter().find(|(label, ..)| *label == key) else { return };
    let valid = requirement.values.iter().filter(|value| known.contains(&&***value)).collect::<BTreeSet<_>>().len();
    let none_left = *fatal && !requirement.values.is_empty() && (valid == 0 || !enough(valid));
    for (i, value) in requirement.values.iter().enumerate().filter(|(_, value)| !known.contains(&&***value)) {
        let hint = did_you_mean(value, known.iter().copied());
        let message = format!("is no value of {key}, which has {}{hint}", known.join(", "));
        let field = format!("{field}.values[{i}]");
        if none_left { findings.error(field, value, message) } else { findings.warn(field, value, message) }
    }
    if none_left && valid > 0 {
        let listed = requirement.values.join(", ");
        findings.error(format!("{field}.values"), listed, "has fewer valid values than minValues asks for");
    }
}

fn class_ref(spec: &NodePoolSpec, findings: &mut Findings) {
    let reference = &spec.template.spec.node_class_ref;
    if !reference.is_ec2() {
        findings.error(
            "spec.template.spec.nodeClassRef",
            format!("{}/{}", reference.group, reference.kind),
            "names a kind that is not known here: use group karpenter.k8s.aws and kind EC2NodeClass",
        );
    }
    if reference.name.is_empty() {
        findings.error("spec.template.spec.nodeClassRef.name", "", "write the name of an EC2NodeClass");
    }
}

fn durations(spec: &NodePoolSpec, findings: &mut Findings) {
    let template = &spec.template.spec;
    let after = &spec.disruption.consolidate_after;
    let parsed = [
        ("spec.template.spec.expireAfter", template.expire_after.as_str(), template.expire_after.get().err()),
        ("spec.disruption.consolidateAfter", after.as_str(), after.get().err()),
    ];
    let grace = template
        .termination_grace_period
        .as_ref()
        .map(|grace| ("spec.template.spec.terminationGracePeriod", grace.as_str(), grace.get().err()));
    for (field, found, error) in parsed.into_iter().chain(grace) {
        if let Some(error) = error {
            findings.error(field, found, error.to_string());
        }
    }
}

fn disruption(spec: &NodePoolSpec, findings: &mut Findings) {
    let policy = &spec.disruption.consolidation_policy;
    if !policy.is_known() {
        let instead = if policy.as_str() == "WhenUnderutilized" {
            "is the name of v1beta1: write WhenEmptyOrUnderutilized".to_string()
        } else {
            let hint = did_you_mean(policy.as_str(), ConsolidationPolicy::VALUES.iter().copied());
            format!("use one of {}{hint}", ConsolidationPolicy::VALUES.join(", "))
        };
        findings.error("spec.disruption.consolidationPolicy", policy, instead);
    }
    for (i, budget) in spec.disruption.budgets.iter().enumerate() {
        let field = format!("spec.disruption.budgets[{i}]");
        if !is_budget_size(&budget.nodes) {
            findings.error(
                format!("{field}.nodes"),
                &budget.nodes,
                "write a number of nodes or a percentage up to 100%",
            );
        }
        for reason in budget.reasons.iter().filter(|reason| !reason.is_known()) {
            let hint = did_you_mean(reason.as_str(), DisruptionReason::VALUES.iter().copied());
            let message = format!("use one of {}{hint}", DisruptionReason::VALUES.join(", "));
            findings.error(format!("{field}.reasons"), reason, message);
        }
        if budget.schedule.is_some() != budget.duration.is_some() {
            findings.error(&field, "", "schedule and duration go together: give both or neither");
        }
        if let Some((schedule, error)) = budget.schedule.as_deref().and_then(|s| schedule_error(s).map(|e| (s, e))) {
            let message = format!("{error}; until it can be read this budget allows no disruption at all");
            findings.warn(format!("{field}.schedule"), schedule, message);
        }
        if let Some((duration, error)) = budget.duration.as_ref().and_then(|d| d.get().err().map(|e| (d.as_str(), e))) {
            findings.error(format!("{field}.duration"), duration, error.to_string());
        }
        let nothing = matches!(budget.nodes.as_str(), "0" | "0%");
        if nothing && budget.schedule.is_none() && budget.reasons.is_empty() {
            let message =
                "without a schedule this forbids every voluntary disruption, so nodes are only ever replaced by expiry";
            findings.warn(format!("{field}.nodes"), &budget.nodes, message);
        }
    }
}

/// A count, or a percentage up to 100 %.
fn is_budget_size(nodes: &str) -> bool {
    match nodes.strip_suffix('%') {
        Some(percent) => percent.parse::<u32>().is_ok_and(|percent| percent <= 100),
        None => nodes.parse::<i32>().is_ok_and(|count| count >= 0),
    }
}

fn advice(spec: &NodePoolSpec, findings: &mut Findings) {
    if spec.limits.as_ref().is_none_or(|limits| limits.is_empty()) && spec.replicas.is_none() {
        let message = "no limits: a mistake in a workload can provision without end; set cpu and memory well above the expected peak";
        findings.warn("spec.limits", "", message);
    }
    let requirements = &spec.template.spec.requirements;
    let on_type = |operator: Operator| {
        requirements
            .iter()
            .enumerate()
            .filter(move |(_, r)| labels::normalize(&r.key) == labels::INSTANCE_TYPE && r.operator == operator)
    };
    let excluded: BTreeSet<_> = on_type(Operator::NotIn).flat_map(|(_, r)| r.values.iter()).collect();
    let allowed = on_type(Operator::In)
        .map(|(i, r)| (i, r.values.iter().filter(|v| !excluded.contains(v)).collect::<BTreeSet<_>>()))
        .reduce(|(_, a), (i, b)| (i, a.intersection(&b).copied().collect()));
    if let Some((i, types)) = allowed.filter(|(_, types)| types.len() < FEW_INSTANCE_TYPES) {
        findings.warn(
            format!("spec.template.spec.requirements[{i}].values"),
            types.iter().map(|value| &***value).collect::<Vec<_>>().join(", "),
            format!(
                "leaves {} instance types: when EC2 is short of them pods stay pending; allow at least {FEW_INSTANCE_TYPES}, better whole families through {}",
                types.len(),
                labels::INSTANCE_CATEGORY
            ),
        );
    }
}
