//! Topology spread constraints that the cluster gives to pods without any of their own.

use mortise_problem::k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint};
use mortise_problem::k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, OwnerReference,
};
use mortise_problem::{Problem, Value};

use super::pod::{labels, namespace};

/// The problem with its `options.schedulerConfig.podTopologySpread.defaultConstraints` given to each pod that has no
/// constraint and that a Service selects or a controller owns: their selectors together say which pods are counted.
pub(crate) fn with_default_spread(mut problem: Problem) -> Problem {
    let config = problem.options.scheduler_config.as_ref();
    let defaults = config.and_then(|config| config.pointer("/podTopologySpread/defaultConstraints"));
    let Some(defaults) = defaults.and_then(|list| list.as_array()) else { return problem };
    let constraint = |value: &Value| TopologySpreadConstraint {
        max_skew: value["maxSkew"].as_i64().and_then(|skew| i32::try_from(skew).ok()).unwrap_or_default(),
        min_domains: value["minDomains"].as_i64().and_then(|n| i32::try_from(n).ok()),
        node_affinity_policy: value["nodeAffinityPolicy"].as_str().map(str::to_owned),
        node_taints_policy: value["nodeTaintsPolicy"].as_str().map(str::to_owned),
        topology_key: value["topologyKey"].as_str().unwrap_or_default().to_owned(),
        when_unsatisfiable: value["whenUnsatisfiable"].as_str().unwrap_or_default().to_owned(),
        ..TopologySpreadConstraint::default()
    };
    let defaults: Vec<TopologySpreadConstraint> = defaults.iter().map(constraint).collect();
    let mut pods = std::mem::take(&mut problem.pods);
    for pod in &mut pods {
        let Some(selector) = selector(&problem, pod) else { continue };
        let Some(spec) = &mut pod.spec else { continue };
        if spec.topology_spread_constraints.as_ref().is_none_or(Vec::is_empty) {
            let all = defaults.iter().cloned();
            let all = all.map(|c| TopologySpreadConstraint { label_selector: Some(selector.clone()), ..c });
            spec.topology_spread_constraints = Some(all.collect());
        }
    }
    problem.pods = pods;
    problem
}

/// Selectors of the Services that select the pod and of the controller that owns it, together; `None` = they say nothing.
fn selector(problem: &Problem, pod: &Pod) -> Option<LabelSelector> {
    let own = labels(pod);
    let here = |of: &Option<String>| of.as_deref().unwrap_or("default") == namespace(pod);
    let mut all = LabelSelector::default();
    for service in problem.services.iter().filter(|service| here(&service.metadata.namespace)) {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
        if !selector.is_empty() && selector.iter().all(|(key, value)| own.get(key) == Some(value)) {
            all.match_labels.get_or_insert_default().extend(selector);
        }
    }
    let mut owners = pod.metadata.owner_references.iter().flatten();
    if let Some(owner) = owners.find(|owner| owner.controller == Some(true)) {
        let (labels, selector) = of_controller(problem, owner, &here);
        all.match_labels.get_or_insert_default().extend(labels);
        if let Some(selector) = selector {
            let expressions = all.match_expressions.get_or_insert_default();
            expressions.extend(selector.match_expressions.into_iter().flatten());
            for (key, value) in selector.match_labels.into_iter().flatten() {
                expressions.push(LabelSelectorRequirement { key, operator: "In".into(), values: Some(vec![value]) });
            }
        }
    }
    let says = all.match_labels.as_ref().is_some_and(|labels| !labels.is_empty())
        || all.match_expressions.as_ref().is_some_and(|expressions| !expressions.is_empty());
    says.then_some(all)
}

type Selects = (std::collections::BTreeMap<String, String>, Option<LabelSelector>);

fn of_controller(problem: &Problem, owner: &OwnerReference, here: &dyn Fn(&Option<String>) -> bool) -> Selects {
    let is = |namespace: &Option<String>, name: &Option<String>| here(namespace) && name.as_ref() == Some(&owner.name);
    match owner.kind.as_str() {
        "ReplicationController" => {
            let all = problem.replication_controllers.iter();
            let found = all.into_iter().find(|c| is(&c.metadata.namespace, &c.metadata.name));
            (found.and_then(|c| c.spec.as_ref()).and_then(|spec| spec.selector.clone()).unwrap_or_default(), None)
        }
        "ReplicaSet" => {
            let found = problem.replica_sets.iter().find(|s| is(&s.metadata.namespace, &s.metadata.name));
            (Selects::default().0, found.and_then(|s| s.spec.as_ref()).map(|spec| spec.selector.clone()))
        }
        "StatefulSet" => {
            let found = problem.stateful_sets.iter().find(|s| is(&s.metadata.namespace, &s.metadata.name));
            (Selects::default().0, found.and_then(|s| s.spec.as_ref()).map(|spec| spec.selector.clone()))
        }
        _ => Selects::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::Case;
    use serde_json::json;

    fn case() -> Case {
        let mut case = Case::new().pending("p", json!({}));
        case.problem["pods"][0]["metadata"]["labels"] = json!({"app": "a", "hash": "1"});
        case.problem["options"] = json!({"schedulerConfig": {"podTopologySpread": {"defaultConstraints": [
            {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}]}}});
        case
    }

    fn given(case: &Case) -> Option<Vec<TopologySpreadConstraint>> {
        with_default_spread(case.problem()).pods[0].spec.clone().unwrap().topology_spread_constraints
    }

    #[test]
    fn a_pod_that_nothing_selects_has_no_default() {
        assert_eq!(given(&case()), None);
    }

    #[test]
    fn services_and_owners_say_which_pods_are_counted() {
        let mut case = case();
        case.problem["services"] =
            json!([{"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "a"}}}]);
        case.problem["replicaSets"] = json!([{"metadata": {"name": "r", "namespace": "default"}, "spec": {
            "selector": {"matchLabels": {"hash": "1"}}}}]);
        case.problem["pods"][0]["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}]);
        let all = given(&case).unwrap();
        assert_eq!((all.len(), all[0].max_skew), (1, 2));
        let selector = all[0].label_selector.clone().unwrap();
        assert_eq!(selector.match_labels.unwrap()["app"], "a");
        assert_eq!(selector.match_expressions.unwrap()[0].key, "hash");
    }

    #[test]
    fn a_constraint_of_its_own_stands_alone() {
        let mut case = case();
        case.problem["services"] =
            json!([{"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "a"}}}]);
        crate::rules::cases::spread(&mut case.problem["pods"][0], "kubernetes.io/hostname", 1);
        assert_eq!(given(&case).unwrap()[0].topology_key, "kubernetes.io/hostname");
    }
}
