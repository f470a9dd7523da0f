//! Room on a node.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{affinity, taints};
use crate::quantity::parse_milli;

/// Amounts by resource name, in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts(BTreeMap<String, i128>);

impl Amounts {
    fn of_map(map: &Value) -> Self {
        let pairs = map.as_object().into_iter().flatten();
        Self(pairs.filter_map(|(name, v)| Some((name.clone(), parse_milli(v.as_str()?)?))).collect())
    }

    fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let slot = self.0.entry(name.clone()).or_default();
            *slot = slot.saturating_add(*amount);
        }
    }

    fn at_least(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let slot = self.0.entry(name.clone()).or_default();
            *slot = (*slot).max(*amount);
        }
    }

    /// What a pod requests: containers and sidecars together, or the largest init container with the sidecars before
    /// it, if that is more; pod-level resources win; overhead on top; one pod slot.
    pub(crate) fn of_pod(pod: &Value) -> Self {
        let spec = &pod["spec"];
        let list = |name: &str| spec[name].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut total = Self::default();
        for container in list("containers") {
            total.add(&Self::of_map(&container["resources"]["requests"]));
        }
        let (mut sidecars, mut peak) = (Self::default(), Self::default());
        for container in list("initContainers") {
            let own = Self::of_map(&container["resources"]["requests"]);
            if container["restartPolicy"] == "Always" {
                total.add(&own);
                sidecars.add(&own);
                peak.at_least(&sidecars);
            } else {
                let mut with = sidecars.clone();
                with.add(&own);
                peak.at_least(&with);
            }
        }
        total.at_least(&peak);
        for (name, amount) in Self::of_map(&spec["resources"]["requests"]).0 {
            total.0.insert(name, amount);
        }
        total.add(&Self::of_map(&spec["overhead"]));
        total.0.insert("pods".to_owned(), 1000);
        total
    }
}

/// Why a node does not take a pod.
pub(super) struct Refusal(pub(super) Vec<String>);

/// A node with what is taken on it.
pub(super) struct NodeRoom<'a> {
    node: &'a Value,
    total: Amounts,
    taken: Amounts,
}

impl<'a> NodeRoom<'a> {
    pub(super) fn new(node: &'a Value) -> Self {
        Self { node, total: Amounts::of_map(&node["status"]["allocatable"]), taken: Amounts::default() }
    }

    pub(super) fn node(&self) -> &'a Value {
        self.node
    }

    pub(super) fn take(&mut self, amounts: &Amounts) {
        self.taken.add(amounts);
    }

    /// The score of the node for a pod: the share of CPU and memory that stays free, in parts per million.
    pub(super) fn accepts(&self, pod: &Value, amounts: &Amounts) -> Result<i64, Refusal> {
        let spec = &pod["spec"];
        if self.node["spec"]["unschedulable"] == true && !taints::tolerates_unschedulable(spec) {
            return Err(Refusal(vec!["node(s) were unschedulable".to_owned()]));
        }
        if let Some(taint) = taints::untolerated(self.node, spec) {
            return Err(Refusal(vec![format!("node(s) had untolerated taint {taint}")]));
        }
        if !affinity::matches(self.node, spec) {
            return Err(Refusal(vec!["node(s) didn't match Pod's node affinity/selector".to_owned()]));
        }
        let mut short = Vec::new();
        for (name, asked) in amounts.0.iter().filter(|(_, asked)| **asked > 0) {
            if asked.saturating_add(self.taken(name)) > self.total(name) {
                short.push(if name == "pods" { "Too many pods".to_owned() } else { format!("Insufficient {name}") });
            }
        }
        if !short.is_empty() {
            return Err(Refusal(short));
        }
        let free = |name: &str| -> i128 {
            let total = self.total(name);
            let used = self.taken(name).saturating_add(amounts.0.get(name).copied().unwrap_or_default());
            total.saturating_sub(used).saturating_mul(1_000_000).checked_div(total).unwrap_or_default()
        };
        Ok(i64::try_from((free("cpu") + free("memory")) / 2).unwrap_or_default())
    }

    fn total(&self, name: &str) -> i128 {
        self.total.0.get(name).copied().unwrap_or_default()
    }

    fn taken(&self, name: &str) -> i128 {
        self.taken.0.get(name).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sidecars_and_init_containers_count_as_the_kubelet_counts() {
        let request = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let pod = json!({"spec": {
            "initContainers": [
                {"resources": request("2")},
                {"resources": request("100m"), "restartPolicy": "Always"},
                {"resources": request("3")},
            ],
            "containers": [{"resources": request("1")}, {"resources": request("500m")}],
            "overhead": {"cpu": "50m"},
        }});
        // Largest init step: 3 + 0.1 sidecar = 3.1, more than 1.5 + 0.1; overhead on top.
        assert_eq!(Amounts::of_pod(&pod).0["cpu"], 3150);
        assert_eq!(Amounts::of_pod(&pod).0["pods"], 1000);
    }

    #[test]
    fn the_emptier_node_scores_higher_and_a_full_one_refuses() {
        let node =
            json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "2"}}});
        let pod = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}});
        let amounts = Amounts::of_pod(&pod);
        let mut room = NodeRoom::new(&node);
        let empty = room.accepts(&pod, &amounts).ok().unwrap();
        room.take(&amounts);
        assert!(room.accepts(&pod, &amounts).ok().unwrap() < empty);
        room.take(&amounts);
        let Err(Refusal(reasons)) = room.accepts(&pod, &amounts) else { panic!() };
        assert_eq!(reasons, ["Insufficient cpu", "Too many pods"]);
    }
}
