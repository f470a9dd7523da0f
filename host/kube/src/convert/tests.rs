use serde_json::{Value, json};

use super::*;
use crate::objects::{DaemonSet, Pdb, PersistentVolume, Pod, StorageClass};
use crate::record::{Hold, Owner, PdbRecord, Phase, PodRecord};
use crate::testing::pod_json;

mod topology;
mod volumes;

fn read(spec: Value) -> PodRecord {
    read_with(json!({}), spec, json!({}))
}

fn read_with(metadata: Value, spec: Value, status: Value) -> PodRecord {
    let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap();
    Converter::default().pod(&pod)
}

fn container(requests: Value) -> Value {
    json!({"name": "c", "resources": {"requests": requests}})
}

fn problems(record: &PodRecord) -> String {
    record.shape.unsupported.join("\n")
}

#[test]
fn a_real_pod_is_read_and_equal_pods_share_their_shape() {
    let mut converter = Converter::default();
    let a: Pod = serde_json::from_value(pod_json("burst-1", "u1")).unwrap();
    let b: Pod = serde_json::from_value(pod_json("burst-2", "u2")).unwrap();
    let (a, b) = (converter.pod(&a), converter.pod(&b));
    assert!(Arc::ptr_eq(&a.shape, &b.shape));
    assert_eq!((a.shape.requests.cpu_milli, a.shape.requests.memory, a.shape.requests.pods), (1000, 1 << 30, 1));
    assert!(a.provisionable() && a.shape.unsupported.is_empty());
    assert_eq!(a.phase, Phase::Pending);
    assert_eq!(a.created_unix_ms, 1_767_225_600_000);
    assert_eq!(a.shape.tolerations.len(), 2);
    assert_eq!(a.eviction_cost_milli, 1000);
    assert_eq!(a.grace_seconds, Some(0));
    assert_eq!(&*a.shape.labels["app"], "burst");
}

#[test]
fn containers_are_summed_and_init_containers_count_at_their_peak() {
    let r = read(json!({
        "containers": [container(json!({"cpu": "250m", "memory": "100Mi"})), container(json!({"cpu": "250m"}))],
        "initContainers": [container(json!({"cpu": "2", "memory": "10Mi"}))],
    }));
    assert_eq!(r.shape.requests.cpu_milli, 2000);
    assert_eq!(r.shape.requests.memory, 100 << 20);
}

#[test]
fn sidecars_run_beside_later_init_containers_and_beside_the_containers() {
    let sidecar = |cpu: &str| json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
    // 1 sidecar + 4 init at the peak, against 3 + 1 in the long run.
    let r = read(json!({
        "containers": [container(json!({"cpu": "3"}))],
        "initContainers": [sidecar("1"), container(json!({"cpu": "4"}))],
    }));
    assert_eq!(r.shape.requests.cpu_milli, 5000);
    // An init container before the sidecar does not run beside it.
    let r = read(json!({
        "containers": [container(json!({"cpu": "3"}))],
        "initContainers": [container(json!({"cpu": "4"})), sidecar("1")],
    }));
    assert_eq!(r.shape.requests.cpu_milli, 4000);
    let r = read(json!({
        "containers": [container(json!({"cpu": "3"}))],
        "initContainers": [container(json!({"cpu": "1"})), sidecar("2"), sidecar("2")],
    }));
    assert_eq!(r.shape.requests.cpu_milli, 7000);
}

#[test]
fn limits_overhead_pod_level_and_extended_resources() {
    let r = read(
        json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 1}}}], "overhead": {"cpu": "250m", "memory": "1Mi"}}),
    );
    assert_eq!(r.shape.requests.cpu_milli, 2250);
    assert_eq!(r.shape.requests.memory, 1 << 20);
    assert_eq!(r.shape.requests.get("nvidia.com/gpu"), 1);
    // Pod-level requests replace the sum for what they name, cpu and memory only.
    let r = read(json!({
        "containers": [container(json!({"cpu": "1", "memory": "1Gi"}))],
        "resources": {"requests": {"cpu": "3", "nvidia.com/gpu": "4"}},
        "overhead": {"cpu": "100m"},
    }));
    assert_eq!(r.shape.requests.cpu_milli, 3100);
    assert_eq!(r.shape.requests.memory, 1 << 30);
    assert_eq!(r.shape.requests.get("nvidia.com/gpu"), 0);
}

#[test]
fn a_resize_counts_the_larger_of_asked_and_allocated() {
    let status = |cpu: &str| json!({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": cpu}}]});
    let spec = json!({"containers": [container(json!({"cpu": "1", "memory": "1Gi"}))]});
    assert_eq!(read_with(json!({}), spec.clone(), status("3")).shape.requests.cpu_milli, 3000);
    assert_eq!(read_with(json!({}), spec.clone(), status("500m")).shape.requests.cpu_milli, 1000);
    assert_eq!(read_with(json!({}), spec.clone(), status("3")).shape.requests.memory, 1 << 30);
    // Shrinking: allocated already, still in effect as it was.
    let mut shrinking = status("500m");
    shrinking["containerStatuses"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    assert_eq!(read_with(json!({}), spec.clone(), shrinking).shape.requests.cpu_milli, 2000);
    // What the node can never grant does not count.
    let mut infeasible = status("500m");
    infeasible["containerStatuses"][0]["allocatedResources"]["memory"] = json!("1Gi");
    infeasible["conditions"] = json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
    assert_eq!(read_with(json!({}), spec.clone(), infeasible.clone()).shape.requests.cpu_milli, 500);
    infeasible["conditions"][0]["reason"] = json!("Deferred");
    assert_eq!(read_with(json!({}), spec, infeasible).shape.requests.cpu_milli, 1000);
}

#[test]
fn keys_are_normalised_and_terms_kept_in_order() {
    let r = read(json!({
        "nodeSelector": {"beta.kubernetes.io/arch": "arm64"},
        "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": ["b", "a"]}]},
                {"matchExpressions": [{"key": "cpu", "operator": "Gt", "values": ["4"]}]},
                {},
            ]},
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}},
                {"weight": 50, "preference": {"matchExpressions": [{"key": "y", "operator": "Exists"}]}},
                {"weight": 90, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}},
            ],
        }},
    }));
    assert_eq!(problems(&r), "");
    assert_eq!(&*r.shape.node_selector["kubernetes.io/arch"], "arm64");
    let keys: Vec<&str> = r.shape.required_affinity.iter().map(|t| &*t[0].key).collect();
    assert_eq!(keys, ["topology.kubernetes.io/zone", "cpu"]);
    let weights: Vec<i32> = r.shape.preferred_affinity.iter().map(|(w, _)| *w).collect();
    assert_eq!(weights, [50, 1]);
}

#[test]
fn what_is_not_acted_on_is_named() {
    let cases = [
        (json!({"resourceClaims": [{"name": "gpu"}]}), "resourceClaims"),
        (json!({"containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}]}), "resourceClaims"),
        (json!({"nodeSelector": {"karpenter.sh/registered": "true"}}), "\"karpenter.sh/registered\" is restricted"),
        (json!({"nodeSelector": {"kubernetes.io/hostname": "n1"}}), "restricted"),
        (json!({"nodeSelector": {"a b": "x"}}), "not a label key"),
        (json!({"nodeSelector": {"a": "-x"}}), "not a label value"),
        (json!({"nodeSelector": {"karpenter.sh/capacity-type": "cheap"}}), "at least one of on-demand, reserved, spot"),
        (json!({"nodeSelector": {"beta.kubernetes.io/os": "linux", "kubernetes.io/os": "windows"}}), "asked for twice"),
        (json!({"tolerations": [{"key": "k", "operator": "Gt", "value": "3"}]}), "operator \"Gt\""),
        (json!({"containers": [container(json!({"cpu": "two"}))]}), "spec.containers[].resources.requests[cpu]"),
        (
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}}),
            "only empty terms",
        ),
    ];
    for (spec, expected) in cases {
        let found = problems(&read(spec.clone()));
        assert!(found.contains(expected), "{spec}: {found:?} lacks {expected:?}");
    }
    for (expression, expected) in [
        (json!({"key": "a", "operator": "Near", "values": ["1"]}), "operator \"Near\""),
        (json!({"key": "a", "operator": "In"}), "needs a value"),
        (json!({"key": "a", "operator": "Gt", "values": ["-1"]}), "exactly one integer"),
        (json!({"key": "a", "operator": "Lt", "values": ["1", "2"]}), "exactly one integer"),
    ] {
        // Every term is checked, not only the first.
        let terms =
            json!([{"matchExpressions": [{"key": "b", "operator": "Exists"}]}, {"matchExpressions": [expression]}]);
        let r = read(
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}),
        );
        assert!(problems(&r).contains(expected), "{expression}: {}", problems(&r));
        assert_eq!(r.shape.required_affinity.len(), 1);
    }
    let fields = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]);
    let r = read(
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": fields}}}}),
    );
    assert!(problems(&r).contains("matchFields"));
}

#[test]
fn annotations_decide_protection_and_cost() {
    let with = |annotations: Value| {
        read_with(
            json!({"annotations": annotations}),
            json!({"priority": 1 << 25}),
            json!({"startTime": "2026-01-01T00:00:00Z"}),
        )
    };
    let start = 1_767_225_600_000;
    let r = with(json!({"karpenter.sh/do-not-disrupt": "true"}));
    assert!(r.held(i64::MAX));
    assert_eq!(r.eviction_cost_milli, 2000);
    let r = with(json!({"karpenter.sh/do-not-disrupt": "1h30m"}));
    assert!(r.held(start + 5_399_999) && !r.held(start + 5_400_000));
    for odd in ["false", "-1h", "0s", "soon", ""] {
        let r = with(json!({"karpenter.sh/do-not-disrupt": odd}));
        assert!(matches!(&r.hold, Hold::Invalid(text) if &**text == odd) && !r.held(start), "{odd}");
    }
    // Unparsable disruption cost: zero, and no falling back to the deletion cost.
    let cost = i32::MAX.to_string();
    assert_eq!(
        with(json!({"karpenter.sh/disruption-cost": "1.5", "controller.kubernetes.io/pod-deletion-cost": cost}))
            .eviction_cost_milli,
        2000
    );
    assert_eq!(with(json!({"controller.kubernetes.io/pod-deletion-cost": cost})).eviction_cost_milli, 10_000);
    assert_eq!(with(json!({"karpenter.sh/disruption-cost": i32::MIN.to_string()})).eviction_cost_milli, -10_000);
}

#[test]
fn owners_volumes_and_refusal() {
    let owner = |api: &str, kind: &str| json!({"name": "p", "ownerReferences": [{"apiVersion": api, "kind": kind, "name": "o", "uid": "u"}]});
    let of = |metadata: Value| read_with(metadata, json!({}), json!({})).owner;
    assert_eq!(of(owner("apps/v1", "DaemonSet")), Owner::DaemonSet("u".into()));
    assert_eq!(of(owner("v1", "Node")), Owner::Node);
    assert_eq!(of(owner("apps/v1", "StatefulSet")), Owner::StatefulSet("o".into()));
    assert_eq!(of(owner("apps/v1", "ReplicaSet")), Owner::Other, "only a controller's selector counts");
    let controlled = |api: &str, kind: &str| {
        let mut metadata = owner(api, kind);
        metadata["ownerReferences"][0]["controller"] = json!(true);
        of(metadata)
    };
    assert_eq!(controlled("apps/v1", "ReplicaSet"), Owner::ReplicaSet("o".into()));
    assert_eq!(controlled("v1", "ReplicationController"), Owner::ReplicationController("o".into()));
    assert_eq!(of(owner("example.com/v1", "DaemonSet")), Owner::Other);
    let r = read_with(
        json!({"name": "p"}),
        json!({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}, {"name": "c", "emptyDir": {}}]}),
        json!({}),
    );
    let claims: Vec<&str> = r.volumes.iter().map(|v| &*v.claim).collect();
    assert_eq!(claims, ["data", "p-b"]);
    assert_eq!((&r.volumes[0].made, &r.volumes[1].made), (&None, &Some(Some("fast".into()))));
    let term = json!({"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]});
    let r = read(
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}),
    );
    assert!(r.refuses_nodepools);
}

#[test]
fn tolerating_the_disruption_taint() {
    let tolerates = |t: Value| read(json!({"tolerations": [t]})).tolerates_disrupted;
    assert!(tolerates(json!({"operator": "Exists"})));
    assert!(tolerates(json!({"key": "karpenter.sh/disrupted"})));
    assert!(tolerates(json!({"key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoSchedule"})));
    assert!(!tolerates(json!({"key": "karpenter.sh/disrupted", "value": "x"})));
    assert!(!tolerates(json!({"key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoExecute"})));
    assert!(!tolerates(json!({"key": "other", "operator": "Exists"})));
}

#[test]
fn budgets_daemonsets_and_storage() {
    let covers = |pdb: &PdbRecord, labels: &Map| pdb.selector.as_ref().is_some_and(|s| s.matches(labels));
    let mut c = Converter::default();
    let pdb: Pdb = serde_json::from_value(json!({"metadata": {"namespace": "n", "name": "web"}, "spec": {"maxUnavailable": 0, "selector": {
        "matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]}}, "status": {"disruptionsAllowed": 0}})).unwrap();
    let pdb = c.pdb(&pdb);
    assert!(pdb.never);
    let labels = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect::<Map>();
    assert!(covers(&pdb, &labels(&[("app", "web")])));
    assert!(!covers(&pdb, &labels(&[("app", "web"), ("tier", "x")])));
    assert!(!covers(&pdb, &labels(&[])));
    for (spec, never) in [
        (json!({"minAvailable": "100%"}), true),
        (json!({"minAvailable": 1}), false),
        (json!({"maxUnavailable": "0%"}), true),
    ] {
        let pdb: Pdb = serde_json::from_value(json!({ "spec": spec })).unwrap();
        assert_eq!(c.pdb(&pdb).never, never);
    }
    let selecting = |selector: Value| -> PdbRecord {
        let pdb: Pdb = serde_json::from_value(json!({"spec": {"selector": selector}})).unwrap();
        Converter::default().pdb(&pdb)
    };
    assert!(!covers(&selecting(json!(null)), &labels(&[])), "no selector covers no pod");
    assert!(covers(&selecting(json!({})), &labels(&[])), "an empty one covers all");
    let unknown = json!({"matchExpressions": [{"key": "tier", "operator": "Near"}]});
    assert!(covers(&selecting(unknown), &labels(&[])), "one that cannot be read protects all");
    let ds: DaemonSet = serde_json::from_value(json!({"metadata": {"namespace": "kube-system", "name": "cni", "uid": "d"}, "spec": {"template": {"spec": {
        "containers": [{"name": "c", "resources": {"limits": {"memory": "1Gi"}}}], "tolerations": [{"operator": "Exists"}]}}}})).unwrap();
    let ds = c.daemonset(&ds);
    assert_eq!(ds.template.requests.memory, 1 << 30);
    let pv = |spec: Value| -> PersistentVolume {
        serde_json::from_value(json!({"metadata": {"name": "pv"}, "spec": spec})).unwrap()
    };
    let affinity = |key: &str| json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": ["v"]}]}]}});
    assert_eq!(
        &*c.pv(&pv(json!({"nodeAffinity": affinity("topology.ebs.csi.aws.com/zone")}))).terms[0][0].key,
        "topology.kubernetes.io/zone"
    );
    let local = c.pv(&pv(json!({"local": {"path": "/x"}, "nodeAffinity": affinity("kubernetes.io/hostname")})));
    assert!(local.terms.is_empty() && local.problem.is_none());
    let pinned = c.pv(&pv(json!({"nodeAffinity": affinity("kubernetes.io/hostname")})));
    assert!(pinned.problem.unwrap().contains("hostname"));
    let class: StorageClass = serde_json::from_value(json!({"metadata": {"name": "gp3"}, "allowedTopologies": [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["a"]}]}]})).unwrap();
    let class = c.storage_class(&class);
    assert!(class.immediate && class.terms.len() == 1);
}

mod garbage {
    use super::*;
    use crate::objects::Node;
    use proptest::prelude::*;

    fn words() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("In".to_owned()),
            Just("Gt".to_owned()),
            Just("DoesNotExist".to_owned()),
            Just("karpenter.sh/nodepool".to_owned()),
            Just("kubernetes.io/arch".to_owned()),
            Just("cpu".to_owned()),
            Just("1e99".to_owned()),
            Just("-5Gi".to_owned()),
            Just("9223372036854775807".to_owned()),
            "\\PC{0,12}",
        ]
    }

    fn list() -> impl Strategy<Value = Value> {
        proptest::collection::btree_map(words(), words(), 0..4).prop_map(|m| json!(m))
    }

    fn term() -> impl Strategy<Value = Value> {
        proptest::collection::vec((words(), words(), proptest::collection::vec(words(), 0..3)), 0..3).prop_map(|es| {
            let es: Vec<Value> =
                es.into_iter().map(|(k, o, v)| json!({"key": k, "operator": o, "values": v})).collect();
            json!({"matchExpressions": es})
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_pod_or_node_panics(
            requests in list(), limits in list(), overhead in list(), selector in list(), annotations in list(),
            terms in proptest::collection::vec(term(), 0..3), word in words(), number in any::<i32>(),
        ) {
            let spec = json!({
                "nodeName": word, "nodeSelector": selector, "overhead": overhead, "priority": number,
                "containers": [{"name": word, "resources": {"requests": requests, "limits": limits}, "ports": [{"hostPort": number, "protocol": word}]}],
                "resources": {"requests": limits},
                "tolerations": [{"key": word, "operator": word, "effect": word}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
                "volumes": [{"name": word, "persistentVolumeClaim": {"claimName": word}}],
                "topologySpreadConstraints": [{"maxSkew": number, "minDomains": number, "topologyKey": word, "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": selector}, "matchLabelKeys": [word]}],
            });
            let mut metadata = json!({"name": word, "annotations": annotations});
            metadata["annotations"]["karpenter.sh/do-not-disrupt"] = json!(word);
            metadata["annotations"]["karpenter.sh/disruption-cost"] = json!(word);
            let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": {"phase": word}})).unwrap();
            let record = Converter::default().pod(&pod);
            prop_assert!(record.shape.requests.cpu_milli >= 0);
            prop_assert!(record.shape.spread.iter().all(|s| s.max_skew > 0 && s.min_domains != Some(0)));
            prop_assert!(record.shape.host_ports.iter().all(|p| i64::from(p.port) == i64::from(number)));
            prop_assert!((-10_000..=10_000).contains(&record.eviction_cost_milli));
            let _ = (record.held(i64::MAX), record.drainable(i64::MIN), record.provisionable());
            let node: Node = serde_json::from_value(json!({"metadata": {"name": word}, "spec": {"taints": [{"key": word, "effect": word}]},
                "status": {"capacity": requests, "allocatable": limits}})).unwrap();
            prop_assert!(Converter::default().node(&node).taints.len() <= 1);
        }
    }

    #[test]
    fn nulls_and_missing_fields_are_absent() {
        for text in [
            r"{}",
            r#"{"metadata":null,"spec":null,"status":null}"#,
            r#"{"metadata":{"labels":null,"annotations":null,"ownerReferences":null},"spec":{"containers":null,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":null}}},"tolerations":[{}]},"status":{"conditions":[{"type":null}]}}"#,
        ] {
            let pod: Pod = serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let record = Converter::default().pod(&pod);
            assert!(!record.provisionable());
        }
    }
}
