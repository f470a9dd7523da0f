//! Right plans, at least one for each rule.

use serde_json::{Value, json};

use super::{Plan, judged, set};
use crate::rules::cases::{Case, affinity, claim, node_json, pool_json, reserved, spread, zones};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn zoned(zone: &[&str], types: &[&str], pods: &[&str]) -> Value {
    let mut claim = claim("default", types, pods);
    claim["requirements"] = zones(zone);
    claim
}

/// `count` pending pods p0, p1, ... with a CPU request.
fn pods(count: usize, cpu: &str) -> Case {
    (0..count).fold(Case::new(), |case, i| case.pending(&format!("p{i}"), json!({"cpu": cpu})))
}

fn with(mut case: Case, edits: &[(&str, Value)]) -> Case {
    for (pointer, value) in edits {
        set(&mut case.problem, pointer, value);
    }
    case
}

fn each(mut case: Case, edit: impl Fn(&mut Value)) -> Case {
    case.problem["pods"].as_array_mut().expect("pods").iter_mut().for_each(edit);
    case
}

fn volumes(case: Case, limit: u32) -> Case {
    let of =
        |name: &str| json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"storageClassName": "gp3"}});
    let mount = |name: &str| json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
    with(
        case,
        &[
            ("/instanceTypes/0/volumeLimits", json!({"ebs.csi.aws.com": limit})),
            (
                "/storageClasses",
                json!([{
                    "metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com",
                    "volumeBindingMode": "WaitForFirstConsumer",
                    "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-1"]}]}]
                }]),
            ),
            ("/persistentVolumeClaims", json!([of("a"), of("b")])),
            ("/pods/0/spec/volumes", mount("a")),
            ("/pods/1/spec/volumes", mount("b")),
        ],
    )
}

fn in_flight(case: Case) -> Case {
    let condition = json!({"type": "Launched", "status": "True", "reason": "Launched", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    with(
        case,
        &[(
            "/nodeClaims",
            json!([{"metadata": {"name": "nc", "labels": {
            "karpenter.sh/nodepool": "default", "topology.kubernetes.io/zone": "zone-1",
            "node.kubernetes.io/instance-type": "c-4x", "kubernetes.io/arch": "amd64"
        }}, "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [], "startupTaints": [{"key": "starting", "effect": "NoSchedule"}],
            "taints": [{"key": "own", "effect": "NoSchedule"}]
        }, "status": {"providerID": "i-1", "conditions": [condition],
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "40"},
            "allocatable": {"cpu": "3900m", "memory": "8Gi", "pods": "40"}}}]),
        )],
    )
}

const TOLERATES: &str = "/pods/0/spec/tolerations";

/// All of them.
pub(super) fn plans() -> Vec<Plan> {
    let one = |types: &[&str]| json!({"claims": [claim("default", types, &["p0"])]});
    let apart = |first: &[&str], second: &[&str]| json!({"claims": [zoned(first, &["c-4x"], &["p0"]), zoned(second, &["c-4x"], &["p1"])]});
    let on_node = |pods: &[&str]| json!({"existing": [{"node": "n", "pods": pods}]});
    let app = |pod: &mut Value| pod["metadata"]["labels"] = json!({"app": "a"});
    let port = |protocol: &str| json!([{"containerPort": 80, "hostPort": 80, "protocol": protocol}]);
    let tainted = json!([{"key": "own", "value": "x", "effect": "NoSchedule"}]);
    let tolerant = json!([{"key": "own", "operator": "Exists"}]);
    let at_least_two = json!([{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}]);
    let node = || node_json("n", "zone-1");
    let plan = |name, case, answer| Plan { name, case, answer };
    let mut all = vec![
        plan("one claim", pods(1, "1"), {
            let mut answer = one(&["c-4x", "c-8x"]);
            answer["claims"][0]["requests"] = json!({"cpu": "1"});
            answer
        }),
        plan("full claims", pods(2, "3"), apart(&["zone-1"], &["zone-2"])),
        plan("many types", pods(2, "3"), json!({"claims": [claim("default", &["c-8x"], &["p0", "p1"])]})),
        plan(
            "a node with room",
            pods(1, "1").node(node()).bound("old", "n", json!({"cpu": "3"})),
            on_node(&["default/p0"]),
        ),
        plan("a pod too large", pods(1, "9"), json!({"errors": {"default/p0": "too large"}})),
        plan("with a DaemonSet", pods(1, "3.5").daemon_set("d", json!({"cpu": "400m"}), json!({})), one(&["c-4x"])),
        plan(
            "a DaemonSet that runs elsewhere",
            pods(1, "3.5").daemon_set("d", json!({"cpu": "3"}), json!({"kubernetes.io/arch": "arm64"})),
            one(&["c-4x"]),
        ),
        plan(
            "a tainted pool",
            with(pods(1, "1"), &[("/nodePools/0/spec/template/spec/taints", tainted), (TOLERATES, tolerant.clone())]),
            one(&["c-4x"]),
        ),
        plan(
            "a startup taint",
            with(
                pods(1, "1"),
                &[("/nodePools/0/spec/template/spec/startupTaints", json!([{"key": "s", "effect": "NoExecute"}]))],
            ),
            one(&["c-4x"]),
        ),
        plan(
            "a tainted node",
            with(
                pods(1, "1").node(node()),
                &[
                    ("/nodes/0/spec/taints", json!([{"key": "own", "effect": "NoExecute"}])),
                    (TOLERATES, tolerant.clone()),
                ],
            ),
            on_node(&["default/p0"]),
        ),
        plan(
            "a zone",
            with(pods(1, "1"), &[("/pods/0/spec/nodeSelector", json!({ZONE: "zone-1"}))]),
            json!({"claims": [zoned(&["zone-1"], &["c-4x"], &["p0"])]}),
        ),
        plan(
            "one of two terms",
            each(pods(1, "1").node(node()), |pod| {
                let term =
                    |zone: &str| json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]});
                pod["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                    {"nodeSelectorTerms": [term("zone-9"), term("zone-1")]}}});
            }),
            on_node(&["default/p0"]),
        ),
        plan(
            "a label of the pool",
            with(
                pods(1, "1"),
                &[
                    ("/nodePools/0/spec/template/metadata", json!({"labels": {"team": "a"}})),
                    ("/pods/0/spec/nodeSelector", json!({"team": "a"})),
                ],
            ),
            one(&["c-4x"]),
        ),
        plan(
            "a label of the claim",
            with(
                pods(1, "1"),
                &[
                    (
                        "/nodePools/0/spec/template/spec/requirements",
                        json!([{"key": "team", "operator": "In", "values": ["a", "b"]}]),
                    ),
                    ("/pods/0/spec/nodeSelector", json!({"team": "a"})),
                ],
            ),
            {
                let mut answer = one(&["c-4x"]);
                answer["claims"][0]["requirements"] = json!([{"key": "team", "operator": "In", "values": ["a"]}]);
                answer
            },
        ),
        plan("volumes", volumes(pods(2, "1"), 2), json!({"claims": [zoned(&["zone-1"], &["c-4x"], &["p0", "p1"])]})),
        plan("volumes one by one", volumes(pods(2, "1"), 1), apart(&["zone-1"], &["zone-1"])),
        plan(
            "a volume that is there",
            with(
                volumes(pods(2, "1"), 2),
                &[
                    ("/persistentVolumeClaims/0/spec/volumeName", json!("pv")),
                    (
                        "/persistentVolumes",
                        json!([{"metadata": {"name": "pv"}, "spec": {
                    "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "v"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                        {"key": ZONE, "operator": "In", "values": ["zone-2"]}]}]}}}}]),
                    ),
                ],
            ),
            apart(&["zone-2"], &["zone-1"]),
        ),
        plan(
            "ports",
            with(
                pods(2, "1"),
                &[("/pods/0/spec/containers/0/ports", port("TCP")), ("/pods/1/spec/containers/0/ports", port("UDP"))],
            ),
            json!({"claims": [claim("default", &["c-4x"], &["p0", "p1"])]}),
        ),
        plan(
            "ports apart",
            each(pods(2, "1"), |pod| {
                pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 80}])
            }),
            apart(&["zone-1"], &["zone-1"]),
        ),
        plan("zone spread", each(pods(2, "1"), |pod| spread(pod, ZONE, 1)), apart(&["zone-1"], &["zone-2"])),
        plan("hostname spread", each(pods(2, "1"), |pod| spread(pod, HOST, 1)), apart(&["zone-1"], &["zone-1"])),
        plan(
            "an old imbalance",
            each(pods(1, "1").node(node()).bound("a", "n", json!({})).bound("b", "n", json!({})), |pod| {
                spread(pod, ZONE, 1)
            }),
            json!({"claims": [zoned(&["zone-2"], &["c-4x"], &["p0"])]}),
        ),
        plan(
            "zone affinity",
            each(pods(2, "1"), |pod| {
                app(pod);
                affinity(pod, "podAffinity", ZONE);
            }),
            apart(&["zone-1"], &["zone-1"]),
        ),
        plan(
            "affinity to who runs",
            {
                let mut case = pods(1, "1").node(node()).bound("old", "n", json!({}));
                app(&mut case.problem["pods"][1]);
                affinity(&mut case.problem["pods"][0], "podAffinity", ZONE);
                case
            },
            json!({"claims": [zoned(&["zone-1"], &["c-4x"], &["p0"])]}),
        ),
        plan(
            "hostname anti-affinity",
            each(pods(2, "1"), |pod| {
                app(pod);
                affinity(pod, "podAntiAffinity", HOST);
            }),
            apart(&["zone-1"], &["zone-1"]),
        ),
        plan(
            "zone anti-affinity",
            each(pods(2, "1"), |pod| {
                app(pod);
                affinity(pod, "podAntiAffinity", ZONE);
            }),
            apart(&["zone-1"], &["zone-2"]),
        ),
        plan(
            "anti-affinity of who runs",
            {
                let mut case = pods(1, "1").node(node()).bound("old", "n", json!({}));
                app(&mut case.problem["pods"][0]);
                affinity(&mut case.problem["pods"][1], "podAntiAffinity", ZONE);
                case
            },
            json!({"claims": [zoned(&["zone-2"], &["c-4x"], &["p0"])]}),
        ),
        plan(
            "a CPU limit",
            with(pods(2, "3"), &[("/nodePools/0/spec/limits", json!({"cpu": "8"}))]),
            apart(&["zone-1"], &["zone-2"]),
        ),
    ];
    all.extend([
        plan(
            "one of two pools",
            with(
                pods(1, "1"),
                &[("/nodePools/-", {
                    let mut dedicated = pool_json("dedicated", json!([]));
                    dedicated["spec"]["template"]["spec"]["taints"] = json!([{"key": "own", "effect": "NoSchedule"}]);
                    dedicated
                })],
            ),
            one(&["c-4x"]),
        ),
        plan(
            "a node limit",
            with(pods(2, "1"), &[("/nodePools/0/spec/limits", json!({"nodes": "1"}))]),
            json!({"claims": [claim("default", &["c-4x"], &["p0", "p1"])]}),
        ),
        plan("a reservation", reserved(pods(2, "3"), 1), {
            let mut answer = apart(&["zone-1"], &["zone-1"]);
            answer["claims"][0]["reservations"] = json!(["r-1"]);
            answer
        }),
        plan(
            "a full reservation",
            reserved(pods(1, "3"), 0),
            json!({"claims": [zoned(&["zone-1"], &["c-4x"], &["p0"])]}),
        ),
        plan("minValues", pods(1, "1").pool(pool_json("default", at_least_two.clone())), {
            let mut answer = one(&["c-4x", "c-8x"]);
            answer["claims"][0]["requirements"] = at_least_two.clone();
            answer
        }),
        plan(
            "minValues at best",
            with(
                pods(1, "5").pool(pool_json("default", at_least_two.clone())),
                &[("/options", json!({"minValuesPolicy": "BestEffort"}))],
            ),
            {
                let mut answer = one(&["c-8x"]);
                answer["claims"][0]["requirements"] = at_least_two;
                answer
            },
        ),
        plan(
            "a node that goes away",
            with(
                Case::new().node(node()).bound("p0", "n", json!({"cpu": "1"})),
                &[("/nodes/0/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))],
            ),
            one(&["c-4x"]),
        ),
        plan(
            "a node in flight",
            with(in_flight(pods(1, "1")), &[(TOLERATES, tolerant)]),
            json!({"existing": [{"node": "nc", "pods": ["default/p0"]}]}),
        ),
        plan(
            "types of the pool",
            with(pods(1, "1"), &[("/instanceTypesOf", json!({"default": ["c-4x"]}))]),
            one(&["c-4x"]),
        ),
        plan(
            "an offering that is gone",
            with(pods(1, "1"), &[("/instanceTypes/0/offerings/0/available", json!(false))]),
            one(&["c-4x", "c-8x"]),
        ),
    ]);
    all
}

#[test]
fn right_plans_are_accepted() {
    let plans = plans();
    assert!(plans.len() >= 25, "{}", plans.len());
    for plan in plans {
        let said: Vec<String> = judged(&plan.case.problem, &plan.answer).iter().map(ToString::to_string).collect();
        assert!(said.is_empty(), "{}: {said:?}", plan.name);
    }
}
