use std::collections::BTreeMap;

use super::*;
use crate::taints::{Effect, Taint};

fn pool(text: &str) -> NodePool {
    serde_json::from_str(text).unwrap()
}

fn base() -> NodePool {
    pool(
        r#"{"metadata":{"name":"a"},"spec":{"template":{"metadata":{"labels":{"team":"a"}},"spec":{
        "nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"default"},
        "requirements":[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}],
        "taints":[{"key":"a","effect":"NoSchedule"},{"key":"b","value":"x","effect":"NoExecute"}]}}}}"#,
    )
}

fn class() -> EC2NodeClass {
    serde_json::from_str(
        r#"{"metadata":{"name":"a"},"spec":{"role":"r","amiSelectorTerms":[{"alias":"al2023@latest"}],
        "subnetSelectorTerms":[{"tags":{"a":"b"}}],"securityGroupSelectorTerms":[{"id":"sg-1"}]}}"#,
    )
    .unwrap()
}

#[test]
fn stays_the_same_across_releases() {
    // Were one of these numbers to change, every node of every cluster would lose its chance of drift once: raise
    // VERSION instead.
    assert_eq!(VERSION, "mortise-v1");
    assert_eq!(node_pool(&base()), "7730545906451008313");
    assert_eq!(ec2_node_class(&class(), "Y2E="), "534158080229077706");
}

#[test]
fn node_pool_fields_that_count() {
    type Change = (&'static str, fn(&mut NodePool));
    let counts: [Change; 8] = [
        ("label", |p| drop(p.spec.template.metadata.labels.insert("team".into(), "b".into()))),
        ("annotation", |p| drop(p.spec.template.metadata.annotations.insert("x".into(), "y".into()))),
        ("taint value", |p| p.spec.template.spec.taints[1].value = Some("y".into())),
        ("taint effect", |p| p.spec.template.spec.taints[0].effect = Effect::NoExecute),
        ("startup taint", |p| p.spec.template.spec.startup_taints.push(Taint::new("s", None, Effect::NoSchedule))),
        ("class", |p| p.spec.template.spec.node_class_ref.name = "other".into()),
        ("expireAfter", |p| p.spec.template.spec.expire_after = "Never".into()),
        ("grace period", |p| p.spec.template.spec.termination_grace_period = Some("0s".into())),
    ];
    for (what, change) in counts {
        let mut changed = base();
        change(&mut changed);
        assert_ne!(node_pool(&changed), node_pool(&base()), "{what}");
    }
    let does_not: [Change; 8] = [
        ("requirements", |p| p.spec.template.spec.requirements.clear()),
        ("disruption", |p| p.spec.disruption.consolidate_after = "1h".into()),
        ("limits", |p| p.spec.limits = Some(BTreeMap::new())),
        ("weight", |p| p.spec.weight = Some(3)),
        ("replicas", |p| p.spec.replicas = Some(3)),
        ("order of taints", |p| p.spec.template.spec.taints.reverse()),
        ("another way to write the expiry", |p| p.spec.template.spec.expire_after = "43200m".into()),
        ("name", |p| p.metadata.name = Some("other".into())),
    ];
    for (what, change) in does_not {
        let mut changed = base();
        change(&mut changed);
        assert_eq!(node_pool(&changed), node_pool(&base()), "{what}");
    }
}

#[test]
fn ec2_node_class_fields_that_count() {
    type Change = (&'static str, &'static str, bool);
    let changes: [Change; 15] = [
        ("role", r#"{"role":"s"}"#, true),
        ("tags", r#"{"tags":{"a":"b"}}"#, true),
        ("user data", r#"{"userData":"x"}"#, true),
        ("public address said to be off", r#"{"associatePublicIPAddress":false}"#, true),
        ("enclaves said to be off", r#"{"enclaveOptions":{"enabled":false}}"#, true),
        ("kubelet", r#"{"kubelet":{"maxPods":10}}"#, true),
        ("metadata options", r#"{"metadataOptions":{"httpPutResponseHopLimit":2}}"#, true),
        ("volumes", r#"{"blockDeviceMappings":[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"20Gi"}}]}"#, true),
        ("family", r#"{"amiFamily":"Custom"}"#, true),
        ("the family that the alias names", r#"{"amiFamily":"AL2023"}"#, false),
        ("version of the alias", r#"{"amiSelectorTerms":[{"alias":"al2023@v1"}]}"#, false),
        ("subnets", r#"{"subnetSelectorTerms":[{"id":"subnet-1"}]}"#, false),
        ("security groups", r#"{"securityGroupSelectorTerms":[{"id":"sg-2"}]}"#, false),
        ("prefixes", r#"{"ipPrefixCount":1}"#, false),
        ("an empty kubelet block", r#"{"kubelet":{}}"#, false),
    ];
    for (what, patch, counts) in changes {
        let mut value = serde_json::to_value(class()).unwrap();
        let patch: Map<String, Value> = serde_json::from_str(patch).unwrap();
        value["spec"].as_object_mut().unwrap().extend(patch);
        let changed: EC2NodeClass = serde_json::from_value(value).unwrap();
        assert_eq!(ec2_node_class(&changed, "") != ec2_node_class(&class(), ""), counts, "{what}");
    }
    assert_ne!(ec2_node_class(&class(), "Y2E="), ec2_node_class(&class(), ""), "CA bundle");
}

#[test]
fn order_matters_only_within_kubelet() {
    let with = |patch: &str| {
        let mut value = serde_json::to_value(class()).unwrap();
        value["spec"].as_object_mut().unwrap().extend(serde_json::from_str::<Map<String, Value>>(patch).unwrap());
        ec2_node_class(&serde_json::from_value(value).unwrap(), "")
    };
    let devices = |a: &str, b: &str| {
        with(&format!(r#"{{"blockDeviceMappings":[{{"deviceName":"{a}"}},{{"deviceName":"{b}"}}]}}"#))
    };
    assert_eq!(devices("/dev/xvda", "/dev/xvdb"), devices("/dev/xvdb", "/dev/xvda"));
    let dns = |a: &str, b: &str| with(&format!(r#"{{"kubelet":{{"clusterDNS":["{a}","{b}"]}}}}"#));
    assert_ne!(dns("10.0.0.1", "10.0.0.2"), dns("10.0.0.2", "10.0.0.1"));
}
