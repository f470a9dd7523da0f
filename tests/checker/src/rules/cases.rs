//! Small problems for the tests of the rules.

use mortise_problem::{Answer, Problem};
use serde_json::{Value, json};

use crate::model::world::World;
use crate::violation::Violation;

/// A problem being written: types c-4x and c-8x in zone-1 (spot) and zone-2 (on-demand), and a pool `default`.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) problem: Value,
}

impl Case {
    pub(crate) fn new() -> Self {
        let kind = |name: &str, cpu: &str, memory: &str, price: f64| {
            let offering = |zone: &str, capacity: &str, price: f64| {
                json!({"requirements": [
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]}
                ], "price": price, "available": true})
            };
            json!({"name": name, "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]},
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1", "zone-2"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}
            ], "capacity": {"cpu": cpu, "memory": memory, "pods": "40"}, "overhead": {"cpu": "100m"},
            "offerings": [offering("zone-1", "spot", price), offering("zone-2", "on-demand", price * 2.0)]})
        };
        Self {
            problem: json!({
                "name": "case", "now": "2026-01-01T00:00:00Z",
                "instanceTypes": [kind("c-4x", "4", "8Gi", 0.1), kind("c-8x", "8", "16Gi", 0.2)],
                "nodePools": [pool_json("default", json!([]))],
                "nodes": [], "pods": [], "daemonSets": []
            }),
        }
    }

    fn push(mut self, list: &str, object: Value) -> Self {
        if let Some(list) = self.problem[list].as_array_mut() {
            list.push(object);
        }
        self
    }

    /// Instead of the pool `default`.
    pub(crate) fn pool(mut self, pool: Value) -> Self {
        self.problem["nodePools"] = json!([pool]);
        self
    }

    pub(crate) fn pending(self, name: &str, requests: Value) -> Self {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        self.push("pods", pod_json(name, requests, json!({"conditions": [condition]})))
    }

    pub(crate) fn bound(self, name: &str, node: &str, requests: Value) -> Self {
        let mut pod = pod_json(name, requests, json!({"phase": "Running"}));
        pod["spec"]["nodeName"] = json!(node);
        self.push("pods", pod)
    }

    pub(crate) fn node(self, node: Value) -> Self {
        self.push("nodes", node)
    }

    pub(crate) fn daemon_set(self, name: &str, requests: Value, node_selector: Value) -> Self {
        let pod = pod_json(name, requests, json!({}));
        let mut spec = pod["spec"].clone();
        spec["nodeSelector"] = node_selector;
        self.push(
            "daemonSets",
            json!({"metadata": {"name": name, "namespace": "kube-system"}, "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": spec}
            }}),
        )
    }

    pub(crate) fn problem(&self) -> Problem {
        Problem::read(&self.problem.to_string()).unwrap()
    }

    /// An answer; pods may be named without the namespace `default`.
    pub(crate) fn answer(&self, mut answer: Value) -> Answer {
        answer["name"] = json!("case");
        Answer::read(&answer.to_string()).unwrap()
    }

    /// What a rule says, as text.
    pub(crate) fn judged(&self, rule: fn(&World<'_>) -> Vec<Violation>, answer: Value) -> Vec<String> {
        let (problem, answer) = (self.problem(), self.answer(answer));
        rule(&World::new(&problem, &answer)).iter().map(ToString::to_string).collect()
    }
}

pub(crate) fn pod_json(name: &str, requests: Value, status: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "status": status, "spec": {
        "containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

pub(crate) fn pool_json(name: &str, requirements: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"template": {"spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": requirements}}}})
}

/// A node of the pool `default` as large as c-4x.
pub(crate) fn node_json(name: &str, zone: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {
        "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "karpenter.sh/nodepool": "default",
        "node.kubernetes.io/instance-type": "c-4x", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"
    }}, "spec": {"providerID": name}, "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "40"},
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "40"}
    }})
}

pub(crate) fn claim(pool: &str, types: &[&str], pods: &[&str]) -> Value {
    let pods: Vec<String> = pods.iter().map(|pod| format!("default/{pod}")).collect();
    json!({"nodePool": pool, "instanceTypes": types, "pods": pods, "requirements": []})
}

pub(crate) fn zones(values: &[&str]) -> Value {
    json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": values}])
}

/// Spreads a pod, with label `app: a`, over a key.
pub(crate) fn spread(pod: &mut Value, key: &str, max_skew: i32) {
    pod["metadata"]["labels"] = json!({"app": "a"});
    pod["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}}
    }]);
}

/// Gives a pod a required term of `podAffinity` or `podAntiAffinity` about pods with label `app: a`.
pub(crate) fn affinity(pod: &mut Value, kind: &str, key: &str) {
    pod["spec"]["affinity"][kind] = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}
    }]});
}

/// Adds reservation `r-1` of c-4x in zone-1.
pub(crate) fn reserved(mut case: Case, left: u32) -> Case {
    let kind = &mut case.problem["instanceTypes"][0];
    if let Some(offerings) = kind["offerings"].as_array_mut() {
        offerings.push(json!({"requirements": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
            {"key": "karpenter.k8s.aws/capacity-reservation-id", "operator": "In", "values": ["r-1"]}
        ], "price": 0.01, "available": true, "reservationCapacity": left}));
    }
    kind["requirements"][4]["values"] = json!(["spot", "on-demand", "reserved"]);
    case
}
