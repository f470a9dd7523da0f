use super::*;
use crate::{EC2NodeClass, NodeOverlay, NodePool};

fn pool(spec: &str) -> NodePool {
    serde_norway::from_str(&format!("metadata: {{name: a}}\nspec:\n{spec}")).unwrap()
}

/// A pool with these requirements, otherwise without fault.
fn requiring(requirements: &str) -> NodePool {
    pool(&format!(
        "  limits: {{cpu: 10}}\n  template:\n    spec:\n      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}}\n      requirements: {requirements}"
    ))
}

fn class(spec: &str) -> EC2NodeClass {
    let text = format!(
        "metadata: {{name: a}}\nspec:\n  role: r\n  subnetSelectorTerms: [{{id: subnet-1}}]\n  securityGroupSelectorTerms: [{{id: sg-1}}]\n{spec}"
    );
    serde_norway::from_str(&text).unwrap()
}

#[test]
fn a_pool_without_fault() {
    let found = node_pool(&requiring("[{key: karpenter.k8s.aws/instance-category, operator: In, values: [m]}]"));
    assert_eq!(found, Findings::default());
}

#[test]
fn requirements_name_the_field_and_what_to_write() {
    for (requirement, says) in [
        (
            "{key: karpenter.k8s.aws/instance-categroy, operator: In, values: [m]}",
            r#"requirements[0].key: "karpenter.k8s.aws/instance-categroy": lies in a domain of the controller and is none of its well-known labels; did you mean karpenter.k8s.aws/instance-category?"#,
        ),
        ("{key: karpenter.sh/nodepool, operator: Exists}", "is set by the controller"),
        ("{key: kubernetes.io/hostname, operator: Exists}", "names a single node"),
        ("{key: -x-, operator: Exists}", "is not a label key"),
        (
            "{key: team, operator: in, values: [a]}",
            r#"operator: "in": use one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte; did you mean In?"#,
        ),
        ("{key: team, operator: In}", "operator In needs at least one value"),
        ("{key: team, operator: NotIn, values: [a b]}", r#"values[0]: "a b": is not a label value"#),
        (
            "{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [many]}",
            r#"values: "many": operator Gt needs exactly one value, a whole number from 0 up"#,
        ),
        ("{key: karpenter.k8s.aws/instance-cpu, operator: Lte, values: ['1', '2']}", r#""1, 2": operator Lte needs"#),
        ("{key: team, operator: In, values: [a, a], minValues: 2}", "fewer different values than minValues"),
        (
            "{key: karpenter.sh/capacity-type, operator: In, values: [Spot]}",
            r#"values[0]: "Spot": is no value of karpenter.sh/capacity-type, which has on-demand, reserved, spot; did you mean spot?"#,
        ),
        (
            "{key: karpenter.sh/capacity-type, operator: In, values: [spot, ondemand], minValues: 2}",
            r#"values[1]: "ondemand": is no value of karpenter.sh/capacity-type"#,
        ),
        ("{key: karpenter.k8s.aws/instance-tenancy, operator: In, values: [host]}", "which has dedicated, default"),
    ] {
        let found = node_pool(&requiring(&format!("[{requirement}]")));
        assert!(found.message().contains(says), "{requirement}: {}", found.message());
        assert!(found.message().starts_with("spec.template.spec.requirements[0]"), "{}", found.message());
        assert!(!found.is_usable());
    }
}

#[test]
fn suspicious_requirements_are_warned_of() {
    let types = "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge]}";
    for (requirements, says) in [
        (
            "[{key: topology.kubernetes.io/zones, operator: In, values: [a]}]",
            "did you mean topology.kubernetes.io/zone?",
        ),
        ("[{key: kubernetes.io/arch, operator: In, values: [amd64, ard64]}]", "did you mean amd64?"),
        (
            "[{key: karpenter.sh/capacity-type, operator: In, values: [spot, on_demand]}]",
            r#"values[1]: "on_demand": is no value"#,
        ),
        (&format!("[{types}]"), "leaves 2 instance types"),
        (
            "[{key: node.kubernetes.io/instance-type, operator: In, values: [a, b, c, d, e]}, {key: beta.kubernetes.io/instance-type, operator: NotIn, values: [e]}]",
            "leaves 4 instance types",
        ),
    ] {
        let found = node_pool(&requiring(requirements));
        assert!(found.is_usable(), "{requirements}: {}", found.message());
        assert!(joined(&found.warnings).contains(says), "{requirements}: {:?}", found.warnings);
    }
}

#[test]
fn the_rest_of_a_pool() {
    let template = "  limits: {cpu: 1}\n  template:\n    metadata: {labels: {'karpenter.k8s.aws/x': a, team: a b}}\n    spec:\n      nodeClassRef: {group: karpenter.k8s.aws, kind: NodeClass, name: ''}\n      requirements: []\n      expireAfter: 99999999h\n      terminationGracePeriod: 1d\n      taints: [{key: a, effect: NoSchedul}, {key: b, value: a/b/c, effect: NoSchedule}]\n      startupTaints: [{key: b, effect: NoSchedule}, {key: '', effect: NoExecute}]\n  disruption:\n    consolidationPolicy: WhenUnderutilized\n    budgets: [{nodes: 101%}, {nodes: '1', reasons: [Emtpy]}, {nodes: '1', schedule: '@daily'}, {nodes: '0'}, {nodes: '1', schedule: 0 9 * * mon-fry, duration: 8h}]";
    let found = node_pool(&pool(template));
    let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
    for says in [
        r#"spec.template.metadata.labels[karpenter.k8s.aws/x]: "karpenter.k8s.aws/x": lies in a domain"#,
        r#"spec.template.metadata.labels[team]: "a b": is not a label value"#,
        r#"spec.template.spec.nodeClassRef: "karpenter.k8s.aws/NodeClass": names a kind that is not known here"#,
        "spec.template.spec.nodeClassRef.name: write the name",
        r#"spec.template.spec.expireAfter: "99999999h": "99999999h" is longer than"#,
        r#"spec.template.spec.terminationGracePeriod: "1d""#,
        r#"spec.template.spec.taints[0].effect: "NoSchedul": use NoSchedule, PreferNoSchedule or NoExecute; did you mean NoSchedule?"#,
        r#"spec.template.spec.taints[1].value: "a/b/c""#,
        r#"spec.template.spec.startupTaints[0]: "b:NoSchedule": this key and effect are there twice"#,
        "spec.template.spec.startupTaints[1].key: is not a taint key",
        r#"spec.disruption.consolidationPolicy: "WhenUnderutilized": is the name of v1beta1: write WhenEmptyOrUnderutilized"#,
        r#"spec.disruption.budgets[0].nodes: "101%""#,
        r#"spec.disruption.budgets[1].reasons: "Emtpy": use one of Underutilized, Empty, Drifted, Unhealthy; did you mean Empty?"#,
        "spec.disruption.budgets[2]: schedule and duration go together",
    ] {
        assert!(errors.iter().any(|error| error.contains(says)), "{says}: {errors:#?}");
    }
    assert_eq!(errors.len(), 14, "{errors:#?}");
    let warnings = joined(&found.warnings);
    assert!(warnings.contains("spec.disruption.budgets[3].nodes: \"0\": without a schedule"), "{warnings}");
    assert!(warnings.contains("the day of week \"mon-fry\""), "{warnings}");
    let unlimited = pool(
        "  template:\n    spec:\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}\n      requirements: []",
    );
    assert!(joined(&node_pool(&unlimited).warnings).contains("spec.limits: no limits"));
}

#[test]
fn classes() {
    let al2023 = "  amiSelectorTerms: [{alias: al2023@v20240807}]\n";
    let (failure, found) = ec2_node_class(&class(al2023), false);
    assert_eq!((failure, found), (None, Findings::default()));
    let latest = ec2_node_class(&class("  amiSelectorTerms: [{alias: al2023@latest}]"), false).1;
    assert!(joined(&latest.warnings).contains("pin a version"));

    let bottlerocket = "  amiSelectorTerms: [{alias: bottlerocket@v1.20.4}]\n";
    for (terms, kubelet, reason, says) in [
        (
            al2023,
            "{maxPod: 5}",
            "InvalidKubeletConfiguration",
            "spec.kubelet.maxPod: is no field of KubeletConfiguration; did you mean maxPods?",
        ),
        (al2023, "{cpuCFSQuota: 'yes'}", "InvalidKubeletConfiguration", "must be true or false"),
        (
            al2023,
            "{authentication: {webhook: {cacheTL: 1m}}}",
            "InvalidKubeletConfiguration",
            "spec.kubelet.authentication.webhook.cacheTL: is no field of KubeletConfiguration; did you mean cacheTTL?",
        ),
        (
            al2023,
            "{featureGates: {A: 1}}",
            "InvalidKubeletConfiguration",
            "spec.kubelet.featureGates[A]: \"1\": must be true or false",
        ),
        (al2023, "{registerWithTaints: []}", "InvalidKubeletConfiguration", "put taints in the NodePool"),
        (al2023, "{evictionHard: {memory.free: 5%}}", "InvalidKubeletConfiguration", "unknown signal"),
        (al2023, "{evictionHard: {memory.available: 101%}}", "InvalidKubeletConfiguration", "write a percentage"),
        (al2023, "{evictionHard: {memory.available: ''}}", "InvalidKubeletConfiguration", "write a percentage"),
        (
            al2023,
            "{evictionSoft: {memory.available: 5%}}",
            "InvalidKubeletConfiguration",
            "evictionSoftGracePeriod must name this signal too",
        ),
        (al2023, "{evictionSoftGracePeriod: {memory.available: 5}}", "InvalidKubeletConfiguration", "must be a text"),
        (al2023, "{kubeReserved: {gpu: '1'}}", "InvalidKubeletConfiguration", "cannot be reserved"),
        (al2023, "{kubeReserved: {cpu: '-1'}}", "InvalidKubeletConfiguration", "must not be negative"),
        (
            al2023,
            "{imageGCHighThresholdPercent: 50, imageGCLowThresholdPercent: 50}",
            "InvalidKubeletConfiguration",
            "must be above",
        ),
        (al2023, "{maxPods: -1}", "InvalidKubeletConfiguration", "must be from 0"),
        (al2023, "{maxPods: '110'}", "KubeletExpressionsDisabled", "write a number for maxPods"),
        (
            al2023,
            "{systemReserved: {memory: vcpus * 10}}",
            "KubeletExpressionsDisabled",
            "spec.kubelet.systemReserved[memory]",
        ),
        (
            bottlerocket,
            "{singleProcessOOMKill: true}",
            "UnsupportedKubeletConfiguration",
            "not supported by the image family Bottlerocket",
        ),
        (bottlerocket, "{clusterDNS: [a, b]}", "UnsupportedKubeletConfiguration", "takes one DNS server"),
        (bottlerocket, "{podsPerCore: 5}", "UnsupportedKubeletConfiguration", "use maxPods"),
    ] {
        let failure = ec2_node_class(&class(&format!("{terms}  kubelet: {kubelet}")), false).0.unwrap();
        assert_eq!(failure.reason, reason, "{kubelet}");
        assert!(failure.message().contains(says), "{kubelet}: {}", failure.message());
    }
    let expression = class(&format!("{al2023}  kubelet: {{maxPods: 'max(10, vcpus)'}}"));
    assert_eq!(ec2_node_class(&expression, true).0, None);

    let (failure, _) =
        ec2_node_class(&class(&format!("{al2023}  tags: {{'kubernetes.io/cluster/a': owned, ok: x}}")), false);
    let failure = failure.unwrap();
    assert_eq!(failure.reason, "TagValidationFailed");
    assert_eq!(failure.message(), "spec.tags[kubernetes.io/cluster/a]: is set by the controller: remove it");
}

#[test]
fn sharing_of_gpus() {
    for (text, reason) in [
        ("disabled", None),
        ("memory", Some("DRADisabled")),
        ("4", Some("DRADisabled")),
        ("0", Some("NVIDIAConsumableCapacityInvalid")),
        ("some", Some("NVIDIAConsumableCapacityInvalid")),
    ] {
        let mut class = class("  amiSelectorTerms: [{alias: al2023@v20240807}]");
        let annotation = (crate::annotations::NVIDIA_CONSUMABLE_CAPACITY.to_owned(), text.to_owned());
        class.metadata.annotations = Some([annotation].into());
        let failure = ec2_node_class(&class, false).0;
        assert_eq!(failure.as_ref().map(|failure| failure.reason), reason, "{text}");
        assert!(failure.is_none_or(|failure| failure.message().contains("nvidia-consumable-capacity")));
    }
}

#[test]
fn words_of_a_newer_schema_are_not_passed_over() {
    let class = class("  amiFamily: AL2030\n  amiSelectorTerms: [{id: ami-1}]");
    let (_, found) = ec2_node_class(&class, false);
    assert_eq!(found.message(), r#"spec.amiFamily: "AL2030": is not known to this version"#);
}

#[test]
fn overlays_name_the_field_and_what_to_write() {
    for (spec, says) in [
        ("{requirements: [{key: team, operator: NotIn}]}", "requirements[0].values: operator NotIn needs"),
        ("{requirements: [{key: karpenter.sh/x, operator: Exists}]}", "lies in a domain of the controller"),
        ("{requirements: [{key: team, operator: near}]}", r#"operator: "near": use one of In"#),
        ("{requirements: [], price: cheap}", r#"spec.price: "cheap": is no price per hour"#),
        ("{requirements: [], price: '99999999999'}", "is no price per hour"),
        ("{requirements: [], priceAdjustment: '5'}", r#"spec.priceAdjustment: "5": is no change of a price"#),
        ("{requirements: [], price: '1', priceAdjustment: '+5'}", "exclude one another"),
        ("{requirements: [], capacity: {memory: 1Gi}}", "spec.capacity[memory]: \"1Gi\": is the instance type's own"),
        ("{requirements: [], capacity: {vpc.amazonaws.com/efa: 1}}", "is the instance type's own"),
        ("{requirements: [], capacity: {example.com/x: -1}}", "is less than nothing"),
        ("{requirements: [], capacity: {'a b': 1}}", "is no resource name"),
    ] {
        let overlay: NodeOverlay = serde_norway::from_str(&format!("metadata: {{name: a}}\nspec: {spec}")).unwrap();
        let found = node_overlay(&overlay).message();
        assert!(found.contains(says), "{spec}: {found}");
    }
    let pool = "metadata: {name: a}\nspec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [a]}]}";
    assert_eq!(node_overlay(&serde_norway::from_str(pool).unwrap()), Findings::default());
}
