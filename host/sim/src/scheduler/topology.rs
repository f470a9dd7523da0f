//! What other pods forbid or ask for: topology spread that is `DoNotSchedule`, required pod (anti-)affinity, host ports.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{affinity, taints};
use crate::actor::{deleting, text};
use crate::apiserver::selector::Selector;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// A label key and a value: one domain.
type Domain = (String, String);

/// Pods that are placed, nodes, and namespaces by name.
pub(super) struct Neighbours<'a> {
    nodes: BTreeMap<&'a str, &'a Value>,
    placed: Vec<(&'a Value, &'a str)>,
    /// Those of them that keep others away.
    apart: Vec<(&'a Value, &'a str)>,
    namespaces: BTreeMap<&'a str, &'a Value>,
}

/// What one pod may not do, worked out once for all nodes.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Domains that are closed to it by an anti-affinity, its own or another pod's.
    closed: BTreeSet<Domain>,
    /// Keys that a node must have.
    keys: BTreeSet<String>,
    /// For each affinity term that some pod fulfils: where.
    open: Vec<BTreeSet<Domain>>,
    /// An affinity that no pod fulfils, and neither does the pod itself.
    hopeless: bool,
    /// For each spread constraint: key, and values that are full.
    full: Vec<(String, BTreeSet<String>)>,
    ports: Vec<Port>,
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn label<'a>(node: &'a Value, key: &str) -> Option<&'a str> {
    node["metadata"]["labels"][key].as_str()
}

fn key_of(term: &Value) -> &str {
    text(term, "topologyKey")
}

impl<'a> Neighbours<'a> {
    pub(super) fn new(
        nodes: impl Iterator<Item = &'a Value>,
        pods: impl Iterator<Item = &'a Value>,
        namespaces: impl Iterator<Item = &'a Value>,
    ) -> Self {
        let name = |object: &'a Value| text(&object["metadata"], "name");
        let over = |pod: &Value| matches!(text(&pod["status"], "phase"), "Succeeded" | "Failed");
        let mut neighbours = Self {
            nodes: nodes.map(|node| (name(node), node)).collect(),
            namespaces: namespaces.map(|namespace| (name(namespace), namespace)).collect(),
            placed: Vec::new(),
            apart: Vec::new(),
        };
        for pod in pods.filter(|pod| !over(pod)) {
            let node = text(&pod["spec"], "nodeName");
            if !node.is_empty() {
                neighbours.place(pod, node);
            }
        }
        neighbours
    }

    /// A pod was bound.
    pub(super) fn place(&mut self, pod: &'a Value, node: &'a str) {
        self.placed.push((pod, node));
        if !list(&pod["spec"]["affinity"]["podAntiAffinity"], REQUIRED).is_empty() {
            self.apart.push((pod, node));
        }
    }

    /// Whether a term of `owner` means `other`.
    fn means(&self, owner: &Value, term: &Value, other: &Value) -> bool {
        let namespace = text(&other["metadata"], "namespace");
        let named = list(term, "namespaces").iter().any(|name| name == namespace);
        let selected = Selector::from_label_selector(&term["namespaceSelector"]).map(|selector| {
            self.namespaces.get(namespace).is_some_and(|n| selector.matches_labels(&n["metadata"]["labels"]))
        });
        let inside = match selected {
            None if list(term, "namespaces").is_empty() => namespace == text(&owner["metadata"], "namespace"),
            selected => named || selected == Some(true),
        };
        inside && selects(term, owner, other)
    }

    fn domain(&self, node: &str, key: &str) -> Option<Domain> {
        let value = label(self.nodes.get(node)?, key)?;
        Some((key.to_owned(), value.to_owned()))
    }

    /// What holds for this pod now.
    pub(super) fn rules(&self, pod: &Value) -> Rules {
        let mut rules = Rules { ports: Port::of(pod), ..Rules::default() };
        for term in list(&pod["spec"]["affinity"]["podAntiAffinity"], REQUIRED) {
            let others = self.placed.iter().filter(|(other, _)| self.means(pod, term, other));
            rules.closed.extend(others.filter_map(|(_, node)| self.domain(node, key_of(term))));
        }
        for (other, node) in &self.apart {
            for term in list(&other["spec"]["affinity"]["podAntiAffinity"], REQUIRED) {
                if self.means(other, term, pod) {
                    rules.closed.extend(self.domain(node, key_of(term)));
                }
            }
        }
        self.affinity(pod, &mut rules);
        self.spread(pod, &mut rules);
        rules
    }

    fn affinity(&self, pod: &Value, rules: &mut Rules) {
        let terms = list(&pod["spec"]["affinity"]["podAffinity"], REQUIRED);
        if terms.is_empty() {
            return;
        }
        rules.keys.extend(terms.iter().map(|term| key_of(term).to_owned()));
        // Only pods that all terms mean count, for each of them.
        let meant: Vec<&str> = self
            .placed
            .iter()
            .filter(|(other, _)| terms.iter().all(|term| self.means(pod, term, other)))
            .map(|(_, node)| *node)
            .collect();
        let open: Vec<BTreeSet<Domain>> = terms
            .iter()
            .map(|term| meant.iter().filter_map(|node| self.domain(node, key_of(term))).collect())
            .collect();
        if open.iter().all(BTreeSet::is_empty) {
            // The first of a group that wants to be together may go anywhere.
            rules.hopeless = !terms.iter().all(|term| self.means(pod, term, pod));
        } else {
            rules.open = open;
        }
    }

    fn spread(&self, pod: &Value, rules: &mut Rules) {
        let spec = &pod["spec"];
        let hard: Vec<&Value> = list(spec, "topologySpreadConstraints")
            .iter()
            .filter(|constraint| constraint["whenUnsatisfiable"] == "DoNotSchedule")
            .collect();
        let keyed = |node: &Value| hard.iter().all(|constraint| label(node, key_of(constraint)).is_some());
        for constraint in &hard {
            let key = key_of(constraint);
            let counted = |node: &Value| {
                keyed(node)
                    && (constraint["nodeAffinityPolicy"] == "Ignore" || affinity::matches(node, spec))
                    && (constraint["nodeTaintsPolicy"] != "Honor" || taints::untolerated(node, spec).is_none())
            };
            let eligible = self.nodes.values().filter(|node| counted(node));
            let mut counts: BTreeMap<&str, i64> =
                eligible.filter_map(|node| label(node, key)).map(|value| (value, 0)).collect();
            for (other, node) in &self.placed {
                let same = text(&other["metadata"], "namespace") == text(&pod["metadata"], "namespace");
                let node = self.nodes.get(node).filter(|node| counted(node));
                if let Some(count) = node.and_then(|node| counts.get_mut(label(node, key)?))
                    && same
                    && !deleting(other)
                    && selects(constraint, pod, other)
                {
                    *count += 1;
                }
            }
            let few = usize::try_from(constraint["minDomains"].as_i64().unwrap_or(1)).unwrap_or(1) > counts.len();
            let least = if few { 0 } else { counts.values().copied().min().unwrap_or_default() };
            let own = i64::from(selects(constraint, pod, pod));
            let most = constraint["maxSkew"].as_i64().unwrap_or(1).saturating_add(least).saturating_sub(own);
            let full = counts.iter().filter(|(_, count)| **count > most).map(|(value, _)| (*value).to_owned());
            rules.full.push((key.to_owned(), full.collect()));
        }
    }

    /// Why these rules keep the pod from a node.
    pub(super) fn refusal(&self, rules: &Rules, node: &Value) -> Option<&'static str> {
        let name = text(&node["metadata"], "name");
        let here = |domain: &Domain| label(node, &domain.0) == Some(&domain.1);
        let taken = || self.placed.iter().filter(|(_, at)| *at == name).flat_map(|(pod, _)| Port::of(pod));
        if !rules.ports.is_empty() && taken().any(|port| rules.ports.iter().any(|own| own.conflicts(&port))) {
            return Some("node(s) didn't have free ports for the requested pod ports");
        }
        if rules.full.iter().any(|(key, full)| label(node, key).is_none_or(|value| full.contains(value))) {
            return Some("node(s) didn't match pod topology spread constraints");
        }
        let near = rules.keys.iter().all(|key| label(node, key).is_some())
            && rules.open.iter().all(|domains| domains.iter().any(here));
        if rules.hopeless || !near {
            return Some("node(s) didn't match pod affinity rules");
        }
        rules.closed.iter().any(here).then_some("node(s) didn't match pod anti-affinity rules")
    }
}

/// Whether the selector of a term or constraint of `owner` selects `other`. What `matchLabelKeys` ask for is merged here
/// unless it has been already.
fn selects(term: &Value, owner: &Value, other: &Value) -> bool {
    let mut selector = term["labelSelector"].clone();
    if !selector.is_object() {
        return false;
    }
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in list(term, field).iter().filter_map(Value::as_str) {
            let known = list(&selector, "matchExpressions").iter().any(|e| e["key"] == key)
                || selector["matchLabels"].get(key).is_some();
            if let (false, Some(value)) = (known, owner["metadata"]["labels"].get(key)) {
                let mut all = list(&selector, "matchExpressions").to_vec();
                all.push(json!({"key": key, "operator": operator, "values": [value]}));
                selector["matchExpressions"] = Value::Array(all);
            }
        }
    }
    Selector::from_label_selector(&selector).is_some_and(|s| s.matches_labels(&other["metadata"]["labels"]))
}

/// A port of the node.
#[derive(Debug)]
struct Port {
    ip: String,
    port: i64,
    protocol: String,
}

impl Port {
    fn of(pod: &Value) -> Vec<Self> {
        let spec = &pod["spec"];
        let sidecars = list(spec, "initContainers").iter().filter(|c| c["restartPolicy"] == "Always");
        let ports = list(spec, "containers").iter().chain(sidecars).flat_map(|c| list(c, "ports"));
        let number = |port: &Value| match port["hostPort"].as_i64() {
            None | Some(0) if spec["hostNetwork"] == true => port["containerPort"].as_i64(),
            number => number,
        };
        ports
            .filter_map(|port| Some((port, number(port).filter(|n| *n != 0)?)))
            .map(|(port, number)| {
                let or = |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
                Self {
                    ip: or(text(port, "hostIP"), "0.0.0.0"),
                    port: number,
                    protocol: or(text(port, "protocol"), "TCP"),
                }
            })
            .collect()
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || [&self.ip, &other.ip].contains(&&"0.0.0.0".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, zone: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"zone": zone, "host": name}}})
    }

    fn pod(app: &str, node: &str, spec: Value) -> Value {
        let mut pod = json!({"metadata": {"namespace": "default", "name": app, "labels": {"app": app, "hash": "1"}}, "spec": spec});
        pod["spec"]["nodeName"] = json!(node);
        pod
    }

    fn term(key: &str, app: &str) -> Value {
        json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
    }

    fn spread(extra: Value) -> Value {
        let mut constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}});
        constraint.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"topologySpreadConstraints": [constraint]})
    }

    /// Names of the nodes that take the pod, of n1 and n2 in zone a and n3 in zone b.
    fn places(pods: &[Value], wanted: &Value) -> Vec<String> {
        let nodes = [node("n1", "a"), node("n2", "a"), node("n3", "b")];
        let namespaces = [json!({"metadata": {"name": "other", "labels": {"team": "x"}}})];
        let neighbours = Neighbours::new(nodes.iter(), pods.iter(), namespaces.iter());
        let rules = neighbours.rules(wanted);
        let takes = nodes.iter().filter(|n| neighbours.refusal(&rules, n).is_none());
        takes.map(|n| text(&n["metadata"], "name").to_owned()).collect()
    }

    #[test]
    fn spread_keeps_within_the_skew_of_the_least_domain() {
        let web = |node: &str| pod("web", node, json!({}));
        let wanted = pod("web", "", spread(json!({})));
        assert_eq!(places(&[], &wanted), ["n1", "n2", "n3"]);
        assert_eq!(places(&[web("n1")], &wanted), ["n3"]);
        assert_eq!(places(&[web("n1"), web("n3")], &wanted), ["n1", "n2", "n3"]);
        assert_eq!(places(&[web("n1")], &pod("web", "", spread(json!({"maxSkew": 2})))), ["n1", "n2", "n3"]);
        // Fewer domains than wanted: every one of them counts from zero.
        assert!(places(&[web("n1"), web("n3")], &pod("web", "", spread(json!({"minDomains": 3})))).is_empty());
        let mut elsewhere = web("n1");
        elsewhere["metadata"]["namespace"] = json!("other");
        assert_eq!(places(&[elsewhere], &wanted), ["n1", "n2", "n3"], "another namespace does not count");
        let mut old = web("n1");
        old["metadata"]["labels"]["hash"] = json!("0");
        let by_hash = pod("web", "", spread(json!({"matchLabelKeys": ["hash"]})));
        assert_eq!(places(&[old], &by_hash), ["n1", "n2", "n3"], "neither does another revision");
        let mut pinned = wanted;
        pinned["spec"]["nodeSelector"] = json!({"zone": "a"});
        let takes = places(&[web("n1")], &pinned);
        assert!(takes.iter().any(|n| n == "n2"), "the empty zone b, which the pod cannot use, is no domain: {takes:?}");
    }

    #[test]
    fn anti_affinity_holds_both_ways() {
        let anti = |key: &str, app: &str| json!({"affinity": {"podAntiAffinity": {REQUIRED: [term(key, app)]}}});
        let web = pod("web", "n1", json!({}));
        assert_eq!(places(std::slice::from_ref(&web), &pod("db", "", anti("host", "web"))), ["n2", "n3"]);
        assert_eq!(places(&[web], &pod("db", "", anti("zone", "web"))), ["n3"]);
        assert_eq!(places(&[pod("db", "n1", anti("zone", "web"))], &pod("web", "", json!({}))), ["n3"]);
        let mut far = term("zone", "web");
        far["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
        let wide = json!({"affinity": {"podAntiAffinity": {REQUIRED: [far]}}});
        let mut other = pod("web", "n1", json!({}));
        assert_eq!(places(std::slice::from_ref(&other), &pod("db", "", wide.clone())), ["n1", "n2", "n3"]);
        other["metadata"]["namespace"] = json!("other");
        assert_eq!(places(&[other], &pod("db", "", wide)), ["n3"]);
    }

    #[test]
    fn affinity_follows_and_the_first_of_a_group_goes_anywhere() {
        let near = |key: &str, app: &str| json!({"affinity": {"podAffinity": {REQUIRED: [term(key, app)]}}});
        assert!(places(&[], &pod("web", "", near("zone", "db"))).is_empty());
        assert_eq!(places(&[pod("db", "n1", json!({}))], &pod("web", "", near("zone", "db"))), ["n1", "n2"]);
        assert_eq!(places(&[pod("db", "n1", json!({}))], &pod("web", "", near("host", "db"))), ["n1"]);
        assert_eq!(places(&[], &pod("web", "", near("zone", "web"))), ["n1", "n2", "n3"]);
        assert!(places(&[], &pod("web", "", near("rack", "web"))).is_empty(), "no node has the key");
    }

    #[test]
    fn a_host_port_is_taken_once() {
        let with = |port: Value| json!({"containers": [{"ports": [port]}]});
        let taken = pod("a", "n1", with(json!({"containerPort": 80, "hostPort": 80})));
        let wants = |port: Value| places(std::slice::from_ref(&taken), &pod("b", "", with(port)));
        assert_eq!(wants(json!({"hostPort": 80, "hostIP": "10.0.0.1"})), ["n2", "n3"]);
        assert_eq!(wants(json!({"hostPort": 80, "protocol": "UDP"})), ["n1", "n2", "n3"]);
        assert_eq!(wants(json!({"containerPort": 80})), ["n1", "n2", "n3"]);
    }
}
