use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mortise_engine::taint::{Effect, Taint};

use super::*;

fn cluster() -> ClusterInfo {
    ClusterInfo {
        name: Arc::from("prod"),
        endpoint: Some(Arc::from("https://abc.eks.amazonaws.com")),
        ca_bundle: Some(Arc::from("Q0E=")),
        service_cidr: Some(Arc::from("10.100.0.0/16")),
        kubernetes: Some(Arc::from("1.33")),
        dns_ip: Some(Arc::from("10.100.0.10")),
    }
}

fn labels() -> BTreeMap<Arc<str>, Arc<str>> {
    [
        ("karpenter.sh/nodepool", "default"),
        ("karpenter.sh/capacity-type", "spot"),
        ("team", "a"),
        ("topology.kubernetes.io/zone", "us-east-1a"),
        ("node-restriction.kubernetes.io/x", "y"),
    ]
    .into_iter()
    .map(|(k, v)| (Arc::from(k), Arc::from(v)))
    .collect()
}

fn render(custom: Option<&str>, family: AmiFamily, raid0: bool) -> Result<String, UserDataError> {
    let cluster = cluster();
    let labels = labels();
    let taints = [Taint { key: Arc::from("dedicated"), value: Arc::from("gpu"), effect: Effect::NoSchedule }];
    let kubelet = serde_json::from_str(r#"{"evictionHard": {"memory.available": "5%"}, "maxPods": 58}"#).unwrap();
    let bootstrap = Bootstrap {
        family,
        cluster: &cluster,
        labels: &labels,
        taints: &taints,
        kubelet: &kubelet,
        max_pods: 58,
        raid0,
        custom,
    };
    let encoded = bootstrap.encoded()?.unwrap_or_default();
    Ok(String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap())
}

#[test]
fn al2023_golden() {
    let text = render(None, AmiFamily::Al2023, true).unwrap();
    assert_eq!(
        text,
        r#"MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

# Generated: settings of earlier parts are merged with these, and these win
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    apiServerEndpoint: https://abc.eks.amazonaws.com
    certificateAuthority: Q0E=
    cidr: 10.100.0.0/16
    name: prod
  instance:
    localStorage:
      strategy: RAID0
  kubelet:
    config:
      clusterDNS:
      - 10.100.0.10
      evictionHard:
        memory.available: 5%
      maxPods: 58
      registerWithTaints:
      - effect: NoSchedule
        key: dedicated
        value: gpu
      - effect: NoExecute
        key: karpenter.sh/unregistered
    flags:
    - --node-labels=karpenter.sh/capacity-type=spot,karpenter.sh/nodepool=default,team=a

--//--
"#
    );
}

#[test]
fn a_users_script_and_node_config_come_first() {
    let text = render(Some("#!/bin/bash\necho hi\n"), AmiFamily::Al2023, false).unwrap();
    let script = text.find("text/x-shellscript").unwrap();
    assert!(script < text.find("application/node.eks.aws").unwrap());
    assert!(text.contains("\n\n#!/bin/bash\necho hi\n\n--//"));
    let text = render(Some("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"), AmiFamily::Al2023, false).unwrap();
    assert_eq!(text.matches("application/node.eks.aws").count(), 2);
}

#[test]
fn a_users_mime_parts_are_copied() {
    let custom = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed;\r\n boundary=\"BOUND\"\r\n\r\npreamble\r\n--BOUND\r\nContent-Type: text/x-shellscript\r\nX-Extra: 1\r\n\r\n#!/bin/sh\r\ntrue\r\n--BOUND\r\nContent-Type: text/cloud-config\r\n\r\na: b\r\n--BOUND--\r\n";
    let text = render(Some(custom), AmiFamily::Al2023, false).unwrap();
    assert!(text.contains("--//\nContent-Type: text/x-shellscript\nX-Extra: 1\n\n#!/bin/sh\ntrue\n\n--//\n"), "{text}");
    assert!(text.contains("Content-Type: text/cloud-config\n\na: b\n\n--//\n"));
    assert!(!text.contains("preamble") && !text.contains("BOUND"));
}

#[test]
fn broken_mime_is_told() {
    let no_boundary = "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nx";
    assert!(
        matches!(render(Some(no_boundary), AmiFamily::Al2023, false), Err(UserDataError::Custom(m)) if m.contains("boundary"))
    );
    let open = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\n\nx\n";
    assert!(
        matches!(render(Some(open), AmiFamily::Al2023, false), Err(UserDataError::Custom(m)) if m.contains("--B--"))
    );
}

#[test]
fn custom_goes_through_as_it_is() {
    assert_eq!(render(Some("anything"), AmiFamily::Custom, false).unwrap(), "anything");
    assert_eq!(render(None, AmiFamily::Custom, false).unwrap(), "");
    assert_eq!(render(None, AmiFamily::Bottlerocket, false), Err(UserDataError::Family("Bottlerocket")));
}

#[test]
fn too_long_is_told_before_ec2_does() {
    let long = "x".repeat(17_000);
    assert!(matches!(render(Some(&long), AmiFamily::Al2023, false), Err(UserDataError::TooLong(n)) if n > 17_000));
}
