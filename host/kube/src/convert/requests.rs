//! What a pod takes of a node, as the kube-scheduler counts it (karpenter-algorithms §2.4).

use mortise_engine::quantity::Resources;

use super::resources;
use crate::objects::{Container, ContainerStatus, PodSpec, PodStatus, ResourceList};

/// Requests of one container: limits stand in for missing requests (as the API server defaults them), and during an
/// in-place resize the larger of what is asked and what the kubelet has allocated counts.
fn container(c: &Container, statuses: &[ContainerStatus], field: &str, problems: &mut Vec<String>) -> Resources {
    let mut list = c.resources.requests.clone();
    for (name, limit) in &c.resources.limits {
        list.entry(name.clone()).or_insert_with(|| limit.clone());
    }
    let asked = resources(&list, field, problems);
    match statuses.iter().find(|s| s.name == c.name && !s.allocated_resources.is_empty()) {
        Some(status) => {
            let allocated = resources(&status.allocated_resources, "status.allocatedResources", problems);
            asked.elementwise_max(&allocated)
        }
        None => asked,
    }
}

/// Pod-level resources exist for these only; others at pod level are ignored by Kubernetes.
fn pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Effective requests of a pod with `pods` = 1; quantities that do not parse are named in `problems`.
///
/// Containers are summed. An init container runs alone beside the sidecars started before it, so the largest such moment
/// counts if it is more. Pod-level requests replace the sum for the resources they name; overhead comes on top.
pub fn effective_requests(spec: &PodSpec, status: &PodStatus, problems: &mut Vec<String>) -> Resources {
    let mut sum = Resources::default();
    for c in &spec.containers {
        let own = container(c, &status.container_statuses, "spec.containers[].resources.requests", problems);
        sum = sum.saturating_add(&own);
    }
    let mut sidecars = Resources::default();
    let mut peak = Resources::default();
    for c in &spec.init_containers {
        let own = container(c, &status.init_container_statuses, "spec.initContainers[].resources.requests", problems);
        let moment = sidecars.saturating_add(&own);
        if c.restart_policy.as_deref() == Some("Always") {
            sum = sum.saturating_add(&own);
            sidecars = moment.clone();
        }
        peak = peak.elementwise_max(&moment);
    }
    let mut total = sum.elementwise_max(&peak);

    if let Some(level) = &spec.resources {
        let mut list: ResourceList = level.requests.clone();
        for (name, limit) in &level.limits {
            // The API server defaults a pod-level request to its limit only where no container asks for any.
            if total.get(name) == 0 {
                list.entry(name.clone()).or_insert_with(|| limit.clone());
            }
        }
        list.retain(|name, _| pod_level(name));
        let mut asked = resources(&list, "spec.resources.requests", problems);
        let mut allocated_list = status.allocated_resources.clone();
        allocated_list.retain(|name, _| list.contains_key(name));
        asked = asked.elementwise_max(&resources(&allocated_list, "status.allocatedResources", problems));
        for name in list.keys() {
            total.set(name, asked.get(name));
        }
    }

    total = total.saturating_add(&resources(&spec.overhead, "spec.overhead", problems)).at_least_zero();
    total.pods = 1;
    total
}
