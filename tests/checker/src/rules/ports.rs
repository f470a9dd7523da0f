//! Host ports are free: no two pods of a node, nor a pod and a DaemonSet that may run on a new node, take the same port
//! and protocol on the same address, where "all addresses" meets each.

use crate::model::pod::{host_ports, key};
use crate::model::world::World;
use crate::violation::{Fault, Findings, Rule, Violation};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Ports);
    for place in &world.places {
        for (index, pod) in place.placed.iter().enumerate() {
            let name = key(pod);
            let earlier = place.staying.iter().chain(place.placed.iter().take(index)).copied();
            let mut others: Vec<_> = earlier.collect();
            if place.claim.is_some() {
                for machine in &place.machines {
                    others.extend(world.daemons_on(&place.taints, machine, None));
                }
            }
            for other in others.into_iter().filter(|other| key(other) != name) {
                for (address, port, protocol) in host_ports(pod) {
                    let meets = host_ports(other).iter().any(|(a, p, t)| {
                        *p == port && *t == protocol && (*a == address || a.is_empty() || address.is_empty())
                    });
                    if meets {
                        let fault = format!("host port {port}/{protocol} is also taken by {}", key(other));
                        found.add(Some(&name), Some(&place.name), Fault::Conflict(fault));
                    }
                }
            }
        }
    }
    found.all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim};
    use serde_json::{Value, json};

    fn case(first: &Value, second: &Value) -> Vec<String> {
        let mut case = Case::new().pending("p", json!({})).pending("q", json!({}));
        case.problem["pods"][0]["spec"]["containers"][0]["ports"] = json!([first]);
        case.problem["pods"][1]["spec"]["containers"][0]["ports"] = json!([second]);
        case.judged(check, json!({"claims": [claim("default", &["c-4x"], &["p", "q"])]}))
    }

    #[test]
    fn a_port_is_taken_by_address_and_protocol() {
        let all = json!({"containerPort": 80, "hostPort": 80, "protocol": "TCP"});
        let one = json!({"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"});
        let two = json!({"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.2"});
        let udp = json!({"containerPort": 80, "hostPort": 80, "protocol": "UDP"});
        assert_eq!(case(&all, &one).len(), 1);
        assert_eq!(case(&all, &all).len(), 1);
        assert!(case(&one, &two).is_empty());
        assert!(case(&all, &udp).is_empty());
    }

    #[test]
    fn a_daemon_set_keeps_its_port_on_a_new_node() {
        let mut case = Case::new().daemon_set("d", json!({}), json!({})).pending("p", json!({}));
        let port = json!([{"containerPort": 80, "hostPort": 80}]);
        let answer = json!({"claims": [claim("default", &["c-4x"], &["p"])]});
        case.problem["daemonSets"][0]["spec"]["template"]["spec"]["containers"][0]["ports"] = port.clone();
        assert!(case.judged(check, answer.clone()).is_empty());
        case.problem["pods"][0]["spec"]["containers"][0]["ports"] = port;
        assert_eq!(case.judged(check, answer).len(), 1);
    }
}
