//! What a pod asks for.

use std::collections::BTreeMap;

use mortise_problem::api::Quantity;
use mortise_problem::k8s_openapi::api::core::v1::{Container, NodeSelectorTerm, Pod, PodSpec, Taint, Toleration};

use super::quantity::{ONE, Resources, add, raise, resources};
use super::values::{Labels, Values, perhaps, surely};

/// `<namespace>/<name>`.
pub(crate) fn key(pod: &Pod) -> String {
    format!("{}/{}", namespace(pod), pod.metadata.name.as_deref().unwrap_or_default())
}

/// Namespace, with the default of `default`.
pub(crate) fn namespace(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or("default")
}

/// Labels.
pub(crate) fn labels(pod: &Pod) -> BTreeMap<String, String> {
    pod.metadata.labels.clone().unwrap_or_default()
}

/// Whether it has run to its end.
pub(crate) fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether it is being deleted.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether it is owned by an object of a kind.
pub(crate) fn is_owned_by(pod: &Pod, kind: &str) -> bool {
    pod.metadata.owner_references.iter().flatten().any(|owner| owner.kind == kind)
}

/// Whether it waits for a node because none took it.
pub(crate) fn is_pending(pod: &Pod) -> bool {
    let refused = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable"));
    let preempting = pod.status.as_ref().is_some_and(|status| status.nominated_node_name.is_some());
    refused && node(pod).is_none() && !preempting && !is_owned_by(pod, "DaemonSet") && !is_owned_by(pod, "Node")
}

/// Node that it is bound to.
pub(crate) fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).filter(|name| !name.is_empty())
}

/// Whether it asks for devices through ResourceClaims.
pub(crate) fn asks_for_devices(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()))
}

/// What it takes of a node, `pods` among it: the larger of its containers and sidecars together, and of each init
/// container with the sidecars started before it; pod-level resources instead where they are set; the overhead; and
/// during a resize the larger of what is asked for and what is allocated.
pub(crate) fn requests(pod: &Pod) -> Resources {
    let mut sum = pod.spec.as_ref().map(|spec| requests_of(spec, &|name| allocated(pod, name))).unwrap_or_default();
    sum.insert("pods".into(), ONE);
    sum
}

fn requests_of(spec: &PodSpec, allocated: &dyn Fn(&str) -> Resources) -> Resources {
    let of = |container: &Container| {
        let asked = container.resources.as_ref();
        let mut all = asked.map(|r| with_limits(r.requests.as_ref(), r.limits.as_ref())).unwrap_or_default();
        raise(&mut all, &allocated(&container.name));
        all
    };
    let mut running = Resources::new();
    for container in &spec.containers {
        add(&mut running, &of(container));
    }
    let (mut sidecars, mut starting) = (Resources::new(), Resources::new());
    for container in spec.init_containers.iter().flatten() {
        let own = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut running, &own);
            add(&mut sidecars, &own);
            raise(&mut starting, &sidecars);
        } else {
            let mut then = sidecars.clone();
            add(&mut then, &own);
            raise(&mut starting, &then);
        }
    }
    raise(&mut running, &starting);
    if let Some(whole) = &spec.resources {
        for (name, amount) in with_limits(whole.requests.as_ref(), whole.limits.as_ref()) {
            running.insert(name, amount);
        }
    }
    add(&mut running, &resources(spec.overhead.iter().flatten()));
    running
}

/// Requests, with a limit standing in for a request that is left out.
fn with_limits(
    requests: Option<&BTreeMap<String, Quantity>>,
    limits: Option<&BTreeMap<String, Quantity>>,
) -> Resources {
    let mut all = resources(limits.into_iter().flatten());
    all.extend(resources(requests.into_iter().flatten()));
    all
}

fn allocated(pod: &Pod, container: &str) -> Resources {
    let statuses = pod.status.iter().flat_map(|status| {
        status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten())
    });
    let mut all = Resources::new();
    for status in statuses.filter(|status| status.name == container) {
        raise(&mut all, &resources(status.allocated_resources.iter().flatten()));
    }
    all
}

/// The first taint that keeps it away: one of effect NoSchedule or NoExecute that it does not tolerate.
pub(crate) fn refused_by<'t>(pod: &Pod, taints: &'t [Taint]) -> Option<&'t Taint> {
    let tolerations: Vec<&Toleration> = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten()).collect();
    taints.iter().find(|taint| {
        matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute") && !tolerations.iter().any(|t| tolerates(t, taint))
    })
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != taint.effect || !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        "Equal" | "" => {
            !key.is_empty()
                && toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        }
        _ => false,
    }
}

/// Required node affinity terms, one of which must hold; `None` = no constraint.
pub(crate) fn affinity_terms(pod: &Pod) -> Option<&[NodeSelectorTerm]> {
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    Some(&affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms)
}

/// Whether node selector and required node affinity hold for every value that the labels may have.
pub(crate) fn surely_selects(pod: &Pod, labels: &Labels, node_name: Option<&str>) -> bool {
    selects(pod, labels, node_name, &surely)
}

/// Whether node selector and required node affinity hold for some value that the labels may have.
pub(crate) fn perhaps_selects(pod: &Pod, labels: &Labels, node_name: Option<&str>) -> bool {
    selects(pod, labels, node_name, &perhaps)
}

type Holds<'a> = &'a dyn Fn(&Labels, &str, &Values) -> bool;

fn selects(pod: &Pod, labels: &Labels, node_name: Option<&str>, holds: Holds<'_>) -> bool {
    let selector = pod.spec.iter().flat_map(|spec| spec.node_selector.iter().flatten());
    let mut pairs = selector.map(|(key, value)| holds(labels, key, &Values::one(value)));
    pairs.all(|held| held)
        && affinity_terms(pod).is_none_or(|terms| terms.iter().any(|term| term_holds(term, labels, node_name, holds)))
}

/// Whether a term holds; one without expressions and fields never does.
pub(crate) fn term_holds(term: &NodeSelectorTerm, labels: &Labels, node_name: Option<&str>, holds: Holds<'_>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let required = |operator: &str, values: &Option<Vec<String>>| {
        Values::required(operator, values.iter().flatten().map(String::as_str))
    };
    expressions.iter().all(|e| holds(labels, &e.key, &required(&e.operator, &e.values)))
        // A node that is still to be made has a name that nobody can name.
        && fields.iter().all(|f| {
            let admitted = required(&f.operator, &f.values);
            f.key == "metadata.name" && node_name.map_or(f.operator == "NotIn", |name| admitted.admits(Some(name)))
        })
}

/// Host ports of its containers: address (empty = all), port, protocol.
pub(crate) fn host_ports(pod: &Pod) -> Vec<(String, i32, String)> {
    let containers = pod.spec.iter().flat_map(|spec| {
        let sidecars = spec.init_containers.iter().flatten().filter(|c| c.restart_policy.as_deref() == Some("Always"));
        spec.containers.iter().chain(sidecars)
    });
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let address = port.host_ip.clone().filter(|ip| ip != "0.0.0.0" && ip != "::").unwrap_or_default();
            let number = port.host_port.filter(|number| *number != 0)?;
            Some((address, number, port.protocol.clone().unwrap_or_else(|| "TCP".into())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::quantity::parse;

    fn pod(spec: serde_json::Value) -> Pod {
        serde_json::from_value(serde_json::json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
    }

    #[test]
    fn init_containers_and_sidecars_count_as_the_kubelet_runs_them() {
        let pod = pod(serde_json::json!({
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                {"name": "i", "resources": {"limits": {"cpu": "3"}}}
            ],
            "overhead": {"cpu": "250m"}
        }));
        assert_eq!(requests(&pod)["cpu"], parse("4.25").unwrap());
    }

    #[test]
    fn pod_level_resources_stand_for_the_containers() {
        let pod = pod(serde_json::json!({
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1", "x/y": "1"}}}],
            "resources": {"requests": {"cpu": "5"}}
        }));
        assert_eq!((requests(&pod)["cpu"], requests(&pod)["x/y"]), (5 * ONE, ONE));
    }

    #[test]
    fn what_is_allocated_counts_while_a_pod_shrinks() {
        let mut pod = pod(serde_json::json!({
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]
        }));
        pod.status = serde_json::from_value(serde_json::json!({"containerStatuses": [{
            "name": "a", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "allocatedResources": {"cpu": "2"}
        }]}))
        .unwrap();
        assert_eq!(requests(&pod)["cpu"], 2 * ONE);
    }

    #[test]
    fn an_empty_term_holds_nowhere() {
        let pod = pod(serde_json::json!({"containers": [], "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
        }}}));
        assert!(!perhaps_selects(&pod, &Labels::new(), Some("n")));
    }
}
