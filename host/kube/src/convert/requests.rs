//! What a pod takes of a node, as the kube-scheduler counts it (karpenter-algorithms §2.4).

use mortise_engine::quantity::Resources;

use super::resources;
use crate::objects::{Container, ContainerStatus, PodSpec, PodStatus, ResourceList};

/// Why a resize is waiting for ever: the node will never have the room.
const INFEASIBLE: &str = "Infeasible";

/// What counts while an in-place resize is under way: the largest of what is asked, what the kubelet has allocated and
/// what is in effect. A resize that the node can never grant is not waited for, so what it asks does not count.
fn resized(asked: Resources, allocated: &ResourceList, actual: &ResourceList, status: &PodStatus) -> Resources {
    if allocated.is_empty() && actual.is_empty() {
        return asked;
    }
    // The kubelet writes these; one that does not parse counts as zero.
    let mut ignored = Vec::new();
    let granted = resources(allocated, "status.allocatedResources", &mut ignored).elementwise_max(&resources(
        actual,
        "status.resources.requests",
        &mut ignored,
    ));
    let infeasible = status.conditions.iter().any(|c| c.kind == "PodResizePending" && c.reason == INFEASIBLE);
    if infeasible { granted } else { asked.elementwise_max(&granted) }
}

/// Requests of one container: limits stand in for missing requests, as the API server defaults them.
fn container(
    c: &Container,
    statuses: &[ContainerStatus],
    pod: &PodStatus,
    field: &str,
    problems: &mut Vec<String>,
) -> Resources {
    let mut list = c.resources.requests.clone();
    for (name, limit) in &c.resources.limits {
        list.entry(name.clone()).or_insert_with(|| limit.clone());
    }
    let asked = resources(&list, field, problems);
    match statuses.iter().find(|s| s.name == c.name) {
        Some(own) => resized(asked, &own.allocated_resources, &own.resources.requests, pod),
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
        let own = container(c, &status.container_statuses, status, "spec.containers[].resources.requests", problems);
        sum = sum.saturating_add(&own);
    }
    let mut sidecars = Resources::default();
    let mut peak = Resources::default();
    for c in &spec.init_containers {
        let field = "spec.initContainers[].resources.requests";
        let own = container(c, &status.init_container_statuses, status, field, problems);
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
        let asked = resources(&list, "spec.resources.requests", problems);
        let of_level = |amounts: &ResourceList| -> ResourceList {
            amounts.iter().filter(|(name, _)| list.contains_key(*name)).map(|(n, q)| (n.clone(), q.clone())).collect()
        };
        let asked =
            resized(asked, &of_level(&status.allocated_resources), &of_level(&status.resources.requests), status);
        for name in list.keys() {
            total.set(name, asked.get(name));
        }
    }

    total = total.saturating_add(&resources(&spec.overhead, "spec.overhead", problems)).at_least_zero();
    total.pods = 1;
    total
}
