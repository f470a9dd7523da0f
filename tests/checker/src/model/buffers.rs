//! The pods that CapacityBuffers keep room for.

use mortise_problem::Problem;
use mortise_problem::api::CapacityBuffer;
use mortise_problem::k8s_openapi::api::core::v1::{Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec};
use mortise_problem::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::pod::requests;
use super::quantity::resources;

/// The problem with the pods of its buffers among those that are pending.
pub(crate) fn with_buffers(problem: &Problem) -> Problem {
    let mut with = problem.clone();
    with.pods.extend(problem.capacity_buffers.iter().flat_map(|buffer| pods(problem, buffer)));
    with
}

/// The pods of a buffer, `capacity-buffer-<buffer>-<i>` from 1: as many as `replicas` and the percentage of the workload's
/// replicas (rounded up) at most say, within what its limits hold; limits alone hold as many as they can. None if what it
/// refers to is not there.
fn pods(problem: &Problem, buffer: &CapacityBuffer) -> Vec<Pod> {
    let Some((template, scale)) = template(problem, buffer) else { return Vec::new() };
    let share = buffer.spec.percentage.zip(scale).map(|(percentage, scale)| {
        let product = i128::from(percentage.max(0)) * i128::from(scale.max(0));
        (product + 99) / 100
    });
    let mut count = buffer.spec.replicas.map(i128::from).max(share);
    let like = |index: i128| pod(buffer, &template, index);
    let asked = requests(&like(1));
    let holds = resources(&buffer.spec.limits).into_iter().filter_map(|(name, limit)| {
        let each = asked.get(&name).copied().filter(|each| *each > 0)?;
        Some((limit / each).max(0))
    });
    if let Some(most) = holds.min() {
        count = Some(count.unwrap_or(most).min(most));
    }
    (1..=count.unwrap_or(0)).map(like).collect()
}

/// What a buffer's pods are made from, and the replicas of its workload.
fn template(problem: &Problem, buffer: &CapacityBuffer) -> Option<(PodTemplateSpec, Option<i32>)> {
    let is = |metadata: &ObjectMeta, name: &str| {
        metadata.namespace == buffer.metadata.namespace && metadata.name.as_deref() == Some(name)
    };
    if let Some(reference) = &buffer.spec.pod_template_ref {
        let found = problem.pod_templates.iter().find(|t| is(&t.metadata, &reference.name))?;
        return Some((found.template.clone()?, None));
    }
    let reference = buffer.spec.scalable_ref.as_ref()?;
    let one = |replicas: Option<i32>| Some(replicas.unwrap_or(1));
    match reference.kind.as_str() {
        "Deployment" => {
            let found = problem.deployments.iter().find(|d| is(&d.metadata, &reference.name))?.spec.clone()?;
            Some((found.template, one(found.replicas)))
        }
        "StatefulSet" => {
            let found = problem.stateful_sets.iter().find(|s| is(&s.metadata, &reference.name))?.spec.clone()?;
            Some((found.template, one(found.replicas)))
        }
        "ReplicaSet" => {
            let found = problem.replica_sets.iter().find(|s| is(&s.metadata, &reference.name))?.spec.clone()?;
            Some((found.template?, one(found.replicas)))
        }
        _ => None,
    }
}

/// One pod that waits for a node. It mounts no claims: it stands for room, not for data.
fn pod(buffer: &CapacityBuffer, template: &PodTemplateSpec, index: i128) -> Pod {
    let name = buffer.metadata.name.as_deref().unwrap_or_default();
    let mut spec: PodSpec = template.spec.clone().unwrap_or_default();
    spec.node_name = None;
    if let Some(volumes) = &mut spec.volumes {
        volumes.retain(|volume| volume.persistent_volume_claim.is_none() && volume.ephemeral.is_none());
    }
    let refused = PodCondition {
        type_: "PodScheduled".into(),
        status: "False".into(),
        reason: Some("Unschedulable".into()),
        ..PodCondition::default()
    };
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("capacity-buffer-{name}-{index}")),
            namespace: buffer.metadata.namespace.clone(),
            labels: template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: Some(PodStatus { conditions: Some(vec![refused]), ..PodStatus::default() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::Case;
    use serde_json::{Value, json};

    fn count(spec: Value) -> usize {
        let mut case = Case::new();
        let template = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}});
        case.problem["deployments"] = json!([{"metadata": {"name": "web", "namespace": "default"}, "spec": {
            "replicas": 10, "selector": {}, "template": template}}]);
        case.problem["podTemplates"] =
            json!([{"metadata": {"name": "one", "namespace": "default"}, "template": template}]);
        case.problem["capacityBuffers"] = json!([{"metadata": {"name": "b", "namespace": "default"}, "spec": spec}]);
        with_buffers(&case.problem()).pods.len()
    }

    #[test]
    fn a_buffer_has_as_many_pods_as_it_says() {
        let web = json!({"kind": "Deployment", "name": "web"});
        assert_eq!(count(json!({"podTemplateRef": {"name": "one"}, "replicas": 3})), 3);
        assert_eq!(count(json!({"scalableRef": web, "percentage": 21})), 3);
        assert_eq!(count(json!({"scalableRef": web, "percentage": 21, "replicas": 5})), 5);
        assert_eq!(count(json!({"scalableRef": web, "replicas": 5, "limits": {"cpu": "2500m"}})), 2);
        assert_eq!(count(json!({"podTemplateRef": {"name": "one"}, "limits": {"cpu": "4"}})), 4);
        assert_eq!(count(json!({"podTemplateRef": {"name": "other"}, "replicas": 3})), 0);
    }
}
