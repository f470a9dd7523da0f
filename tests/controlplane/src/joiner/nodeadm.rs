//! What nodeadm does with the user data, and the Node that the kubelet then registers.

use crate::aws::{Instance, REGION};
use crate::kwok;
use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The machine under an instance, from its type.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub vcpus: u64,
    pub memory_mib: u64,
    /// As Kubernetes spells it.
    pub architecture: String,
    /// Network interfaces and IPv4 addresses on each: how many pods get one.
    pub interfaces: u64,
    pub addresses: u64,
}

/// The merged NodeConfig documents of the user data.
#[derive(Debug, Clone)]
pub(super) struct NodeConfig {
    spec: Value,
}

impl NodeConfig {
    /// Reads MIME user data: every part of type `application/node.eks.aws` is a NodeConfig; later ones win.
    pub(super) fn parse(user_data: &str) -> Result<Self> {
        ensure!(!user_data.trim().is_empty(), "the instance has no user data: nodeadm has nothing to do");
        let mut spec = json!({});
        let mut found = 0;
        for (kind, body) in parts(user_data)? {
            if kind != "application/node.eks.aws" {
                continue;
            }
            let config: Value = serde_norway::from_str(&body).context("a NodeConfig in the user data is not YAML")?;
            let version = config.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let name = config.get("kind").and_then(Value::as_str).unwrap_or_default();
            ensure!(
                version == "node.eks.aws/v1alpha1" && name == "NodeConfig",
                "nodeadm knows node.eks.aws/v1alpha1 NodeConfig and not {version:?} {name:?}"
            );
            merge(&mut spec, config.get("spec").cloned().unwrap_or_default());
            found += 1;
        }
        ensure!(found > 0, "the user data has no NodeConfig");
        Ok(Self { spec })
    }

    fn text(&self, pointer: &str) -> &str {
        self.spec.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether a node with this configuration finds and trusts the API server.
    pub(super) fn reaches(&self, server: &str, ca_pem: &str) -> Result<()> {
        ensure!(!self.text("/cluster/name").is_empty(), "spec.cluster.name is missing");
        let endpoint = self.text("/cluster/apiServerEndpoint");
        ensure!(endpoint == server, "spec.cluster.apiServerEndpoint is {endpoint:?}, the API server is {server:?}");
        let ca = base64::engine::general_purpose::STANDARD
            .decode(self.text("/cluster/certificateAuthority"))
            .context("spec.cluster.certificateAuthority is not base64")?;
        ensure!(
            String::from_utf8_lossy(&ca).trim() == ca_pem.trim(),
            "spec.cluster.certificateAuthority is not the API server's"
        );
        let cidr = self.text("/cluster/cidr");
        ensure!(cidr == crate::control_plane::SERVICE_CIDR, "spec.cluster.cidr is {cidr:?}");
        Ok(())
    }

    /// Labels of the kubelet's `--node-labels` flags.
    fn labels(&self) -> Result<BTreeMap<String, String>> {
        let mut labels = BTreeMap::new();
        let flags = self.spec.pointer("/kubelet/flags").and_then(Value::as_array).cloned().unwrap_or_default();
        for flag in flags.iter().filter_map(Value::as_str) {
            let Some(list) = flag.strip_prefix("--node-labels=") else {
                bail!("the kubelet refuses the flag {flag:?}")
            };
            for pair in list.trim_matches('"').split(',').filter(|pair| !pair.is_empty()) {
                let (key, value) = pair.split_once('=').with_context(|| format!("label {pair:?} has no value"))?;
                kubelet_may_set(key)?;
                labels.insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(labels)
    }

    fn kubelet(&self, field: &str) -> Option<&Value> {
        self.spec.pointer(&format!("/kubelet/config/{field}"))
    }
}

/// The kubelet refuses labels of Kubernetes' own domains except the ones it knows: it would not start.
fn kubelet_may_set(key: &str) -> Result<()> {
    const KNOWN: [&str; 9] = [
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
    ];
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let owned = |suffix: &str| domain == suffix || domain.ends_with(&format!(".{suffix}"));
    let allowed_prefix = ["kubelet.kubernetes.io", "node.kubernetes.io"]
        .iter()
        .any(|it| domain == *it || domain.ends_with(&format!(".{it}")));
    ensure!(
        KNOWN.contains(&key) || allowed_prefix || !(owned("kubernetes.io") || owned("k8s.io")),
        "the kubelet refuses to set the label {key:?}"
    );
    Ok(())
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Content type (without parameters) and body of every part.
fn parts(user_data: &str) -> Result<Vec<(String, String)>> {
    let text = user_data.replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").context("the user data is no MIME document")?;
    let boundary = head
        .split("boundary=")
        .nth(1)
        .and_then(|rest| rest.trim_start_matches('"').split(['"', '\n', ';']).next())
        .context("the user data is no MIME multipart document: it names no boundary")?;
    let mut found = Vec::new();
    for section in body.split(&format!("--{boundary}")).skip(1) {
        if section.starts_with("--") {
            break;
        }
        let (headers, content) = section.trim_start_matches('\n').split_once("\n\n").unwrap_or((section, ""));
        let kind = headers
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-type"))
            .map(|(_, value)| value.split(';').next().unwrap_or_default().trim().to_owned())
            .unwrap_or_default();
        found.push((kind, content.to_owned()));
    }
    Ok(found)
}

/// The Node as it is first registered: not ready, its status complete but for the conditions.
pub(super) fn node(instance: &Instance, config: &NodeConfig, machine: &Machine, version: &str) -> Result<Node> {
    let mut labels = BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), instance.private_dns.clone()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("kubernetes.io/arch".to_owned(), machine.architecture.clone()),
        ("beta.kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("beta.kubernetes.io/arch".to_owned(), machine.architecture.clone()),
        // The cloud controller manager adds these; on EKS it does so within moments.
        ("node.kubernetes.io/instance-type".to_owned(), instance.instance_type.clone()),
        ("beta.kubernetes.io/instance-type".to_owned(), instance.instance_type.clone()),
        ("topology.kubernetes.io/region".to_owned(), REGION.to_owned()),
        ("topology.kubernetes.io/zone".to_owned(), instance.zone.clone()),
    ]);
    labels.extend(config.labels()?);
    let by_addresses = machine.interfaces * (machine.addresses.saturating_sub(1)) + 2;
    let pods = config.kubelet("maxPods").and_then(Value::as_u64).unwrap_or(by_addresses);
    // A real machine's kernel and hypervisor keep 3 to 7 % for themselves.
    let memory_kib = machine.memory_mib * 1024 * 94 / 100;
    let reserved_cpu = reservation(config, "cpu", kube_reserved_millicores(machine.vcpus))?;
    let reserved_kib = reservation(config, "memory", (11 * pods + 255) * 1024)?;
    let eviction_kib = 100 * 1024;
    let capacity = json!({
        "cpu": machine.vcpus.to_string(), "memory": format!("{memory_kib}Ki"), "pods": pods.to_string(),
        "ephemeral-storage": "20959212Ki",
    });
    let allocatable = json!({
        "cpu": format!("{}m", (machine.vcpus * 1000).saturating_sub(reserved_cpu)),
        "memory": format!("{}Ki", memory_kib.saturating_sub(reserved_kib + eviction_kib)),
        "pods": pods.to_string(), "ephemeral-storage": "18242267924",
    });
    let taints = config.kubelet("registerWithTaints").cloned().unwrap_or_else(|| json!([]));
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": instance.private_dns, "labels": labels,
            "annotations": {kwok::ANNOTATION: kwok::MANAGED},
        },
        "spec": {"providerID": instance.provider_id(), "taints": taints},
        "status": {
            "capacity": capacity, "allocatable": allocatable,
            "addresses": [
                {"type": "InternalIP", "address": instance.private_ip},
                {"type": "Hostname", "address": instance.private_dns},
            ],
            "nodeInfo": {
                "architecture": machine.architecture, "operatingSystem": "linux", "kubeletVersion": version,
                "bootID": "", "containerRuntimeVersion": "containerd://2.0.0", "kernelVersion": "6.1.0",
                "kubeProxyVersion": version, "machineID": instance.id, "osImage": "Amazon Linux 2023", "systemUUID": instance.id,
            },
        },
    }))
    .context("the registered taints are not taints")
}

/// What is reserved in sum: kube (nodeadm's own figure unless configured) and system.
fn reservation(config: &NodeConfig, resource: &str, nodeadm: u64) -> Result<u64> {
    let mut sum = 0;
    for (field, usual) in [("kubeReserved", nodeadm), ("systemReserved", 0)] {
        let value = config.kubelet(field).and_then(|map| map.get(resource)).and_then(Value::as_str);
        sum += match value {
            Some(text) => amount(text, resource).with_context(|| format!("{field}.{resource} is {text:?}"))?,
            None => usual,
        };
    }
    Ok(sum)
}

/// Millicores of a CPU quantity, KiB of a memory quantity.
fn amount(text: &str, resource: &str) -> Result<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().context("not a whole number")?;
    match (resource, text.get(digits.len()..).unwrap_or_default()) {
        ("cpu", "m") => Ok(number),
        ("cpu", "") => Ok(number * 1000),
        (_, "Ki") => Ok(number),
        (_, "Mi") => Ok(number * 1024),
        (_, "Gi") => Ok(number * 1024 * 1024),
        (_, "") => Ok(number / 1024),
        (_, unit) => bail!("unit {unit:?} is not understood"),
    }
}

/// nodeadm's table: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the others.
fn kube_reserved_millicores(vcpus: u64) -> u64 {
    let share = |core: u64| match core {
        0 => 600,
        1 => 100,
        2 | 3 => 50,
        _ => 25,
    };
    (0..vcpus).map(share).sum::<u64>() / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER_DATA: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\necho hi\n--//\nContent-Type: application/node.eks.aws\n\n# comment\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: c\n    apiServerEndpoint: https://x\n    certificateAuthority: QQ==\n    cidr: 10.100.0.0/16\n  kubelet:\n    config:\n      maxPods: 29\n      registerWithTaints:\n      - {key: karpenter.sh/unregistered, effect: NoExecute}\n    flags:\n    - --node-labels=\"a=b,karpenter.sh/nodepool=default\"\n--//--\n";

    fn instance() -> Instance {
        Instance {
            id: "i-1".into(),
            state: "running".into(),
            instance_type: "m5.large".into(),
            zone: "us-east-1a".into(),
            capacity_type: "spot".into(),
            image: "ami-1".into(),
            private_dns: "ip-10-0-0-4.ec2.internal".into(),
            private_ip: "10.0.0.4".into(),
            tags: BTreeMap::new(),
        }
    }

    #[test]
    fn a_node_comes_from_user_data() {
        let config = NodeConfig::parse(USER_DATA).expect("user data");
        config.reaches("https://x", "A").expect("reaches");
        assert!(config.reaches("https://y", "A").is_err());
        let machine =
            Machine { vcpus: 2, memory_mib: 8192, architecture: "amd64".into(), interfaces: 3, addresses: 10 };
        let node = node(&instance(), &config, &machine, "v1.36.3").expect("node");
        let labels = node.metadata.labels.expect("labels");
        assert_eq!(labels["karpenter.sh/nodepool"], "default");
        assert_eq!(labels["topology.kubernetes.io/zone"], "us-east-1a");
        let spec = node.spec.expect("spec");
        assert_eq!(spec.provider_id.as_deref(), Some("aws:///us-east-1a/i-1"));
        assert_eq!(spec.taints.expect("taints")[0].key, "karpenter.sh/unregistered");
        let allocatable = node.status.expect("status").allocatable.expect("allocatable");
        assert_eq!(allocatable["cpu"].0, "1930m");
        assert_eq!(allocatable["pods"].0, "29");
    }

    #[test]
    fn kubelet_refuses_labels_of_kubernetes() {
        assert!(kubelet_may_set("node-role.kubernetes.io/worker").is_err());
        assert!(kubelet_may_set("topology.kubernetes.io/zone").is_ok());
        assert!(kubelet_may_set("karpenter.k8s.aws/instance-family").is_ok());
    }

    #[test]
    fn broken_user_data_says_what_is_wrong() {
        for (text, expected) in [
            ("", "no user data"),
            ("x", "no MIME"),
            ("Content-Type: multipart/mixed; boundary=\"b\"\n\n--b--", "no NodeConfig"),
        ] {
            let error = format!("{:#}", NodeConfig::parse(text).expect_err("broken"));
            assert!(error.contains(expected), "{error}");
        }
    }
}
