use std::sync::Arc;

use mortise_engine::catalog::{CapacityType, InstanceType};
use mortise_engine::quantity::MicroUsd;
use mortise_engine::requirement::{Operator, Requirement};

use super::capacity::{GIB, MIB};
use super::*;

/// Sells everything in two zones at a flat price.
struct TwoZones;

impl Market for TwoZones {
    fn zones(&self, _: &str) -> Vec<Arc<str>> {
        vec![Arc::from("us-east-1b"), Arc::from("us-east-1a")]
    }
    fn offered(&self, _: &str, zone: &str) -> bool {
        zone == "us-east-1a" || zone == "us-east-1b"
    }
    fn quote(&self, _: &str, zone: &str, capacity_type: CapacityType) -> Quote {
        let in_stock = !(zone == "us-east-1b" && capacity_type == CapacityType::Spot);
        Quote { price: Some(MicroUsd(96_000)), estimated: false, in_stock }
    }
}

fn m5_large() -> TypeRow {
    TypeRow {
        name: "m5.large".into(),
        architectures: vec!["x86_64".into()],
        vcpus: 2,
        memory_mib: 8192,
        hypervisor: "nitro".into(),
        cpu_manufacturer: "Intel".into(),
        clock_mhz: Some(3100),
        on_demand: true,
        spot: true,
        ebs_mbps: Some(4750),
        network_mbps: Some(750),
        ipv4_per_eni: 10,
        cards: vec![NetworkCard { index: 0, interfaces: 3 }],
        ena: true,
        ..TypeRow::default()
    }
}

fn shape(family: AmiFamily) -> ClassShape {
    let zone = Zone { name: Arc::from("us-east-1a"), id: Some(Arc::from("use1-az1")) };
    ClassShape::plain(family, "us-east-1", vec![zone])
}

fn values<'a>(it: &'a InstanceType, key: &str) -> Vec<&'a str> {
    let r = requirement(it, key);
    r.values.iter().map(|v| &**v).collect()
}

fn requirement<'a>(it: &'a InstanceType, key: &str) -> &'a Requirement {
    it.requirements.iter().find(|r| &*r.key == key).unwrap_or_else(|| panic!("no requirement on {key}"))
}

fn kubelet(json: &str) -> std::collections::BTreeMap<String, serde_json::Value> {
    serde_json::from_str(json).unwrap()
}

#[test]
fn m5_large_as_in_the_worked_example() {
    let it = build(&m5_large(), &shape(AmiFamily::Al2023), &TwoZones);
    assert_eq!(it.capacity.cpu_milli, 2000);
    assert_eq!(it.capacity.memory, 7577 * MIB, "8192 less ceil(614.4)");
    assert_eq!(it.capacity.pods, 29, "3 interfaces of 10 addresses");
    assert_eq!(it.capacity.ephemeral_storage, 20 * GIB);
    assert_eq!(it.allocatable.cpu_milli, 1930, "70m for the kubelet");
    assert_eq!(it.allocatable.memory, 6903 * MIB, "574 Mi for the kubelet, 100 Mi before eviction");
    assert_eq!(it.allocatable.ephemeral_storage, 17 * GIB);
    assert_eq!(it.allocatable.pods, 29);
}

#[test]
fn kube_reserved_cpu_by_bands() {
    for (cpus, reserved) in [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (64, 230), (192, 550)] {
        assert_eq!(default_kube_reserved_cpu_milli(cpus * 1000), reserved, "{cpus} CPUs");
    }
    assert_eq!(default_kube_reserved_cpu_milli(0), 0);
}

#[test]
fn arm_hides_64_mib_before_the_share_is_taken() {
    let row = TypeRow { architectures: vec!["arm64".into()], ..m5_large() };
    let it = build(&row, &shape(AmiFamily::Al2023), &TwoZones);
    // 8128 less ceil(609.6)
    assert_eq!(it.capacity.memory, 7518 * MIB);
    assert_eq!(values(&it, "kubernetes.io/arch"), ["arm64"]);
}

#[test]
fn old_types_name_i386_first() {
    let row = TypeRow { architectures: vec!["i386".into(), "x86_64".into()], ..m5_large() };
    assert_eq!(arch_label(&row), Some("amd64"));
    let mac = TypeRow { architectures: vec!["arm64_mac".into()], ..m5_large() };
    assert!(!mac.is_usable());
}

#[test]
fn pods_follow_enis_reservations_max_pods_and_pods_per_core() {
    let row = m5_large();
    let mut s = shape(AmiFamily::Al2023);
    s.reserved_enis = 1;
    assert_eq!(pod_capacity(&row, &s), 20);
    s.reserved_enis = 5;
    assert_eq!(pod_capacity(&row, &s), 0, "no interface is left");
    s.max_pods = Some(110);
    assert_eq!(pod_capacity(&row, &s), 110);
    s.pods_per_core = Some(10);
    assert_eq!(pod_capacity(&row, &s), 20);
    s.family = AmiFamily::Bottlerocket;
    assert_eq!(pod_capacity(&row, &s), 110, "Bottlerocket has no podsPerCore");
    assert_eq!(pod_capacity(&row, &shape(AmiFamily::Windows2022)), 110);
}

#[test]
fn max_pods_changes_neither_memory_reservation_of_al2023_nor_hides_it_in_bottlerocket() {
    let mut al = shape(AmiFamily::Al2023);
    al.max_pods = Some(110);
    let it = build(&m5_large(), &al, &TwoZones);
    assert_eq!(it.allocatable.memory, 6903 * MIB, "the image reserves for 29 whatever maxPods says");
    let mut br = shape(AmiFamily::Bottlerocket);
    br.max_pods = Some(110);
    let it = build(&m5_large(), &br, &TwoZones);
    assert_eq!(it.allocatable.memory, (7577 - (11 * 110 + 255) - 100) * MIB);
}

#[test]
fn kubelet_settings_override_per_resource() {
    let mut s = shape(AmiFamily::Al2023);
    s.set_kubelet(&kubelet(
        r#"{"kubeReserved": {"cpu": "100m", "memory": "1Gi"}, "systemReserved": {"memory": "100Mi", "ephemeral-storage": "1Gi"},
            "evictionHard": {"memory.available": "5%", "nodefs.available": "100%"}, "maxPods": 58}"#,
    ))
    .unwrap();
    let it = build(&m5_large(), &s, &TwoZones);
    assert_eq!(it.allocatable.cpu_milli, 1900);
    let five_percent = (7577 * MIB * 5 + 99) / 100;
    assert_eq!(it.allocatable.memory, 7577 * MIB - 1024 * MIB - 100 * MIB - five_percent);
    assert_eq!(it.allocatable.ephemeral_storage, 18 * GIB, "100 % switches the threshold off");
    assert_eq!(it.capacity.pods, 58);
}

#[test]
fn bad_kubelet_settings_name_field_and_finding() {
    for (json, field, found) in [
        (r#"{"maxPods": "110"}"#, "kubelet.maxPods", "\"110\""),
        (r#"{"maxPods": -1}"#, "kubelet.maxPods", "-1"),
        (r#"{"kubeReserved": {"memory": "lots"}}"#, "kubelet.kubeReserved.memory", "\"lots\""),
        (r#"{"kubeReserved": 5}"#, "kubelet.kubeReserved", "5"),
        (r#"{"evictionHard": {"memory.available": "101%"}}"#, "kubelet.evictionHard.memory.available", "\"101%\""),
    ] {
        let error = shape(AmiFamily::Al2023).set_kubelet(&kubelet(json)).unwrap_err();
        assert_eq!((error.field.as_str(), error.found.as_str()), (field, found));
    }
}

#[test]
fn instance_store_counts_only_with_raid0() {
    let row = TypeRow { instance_store_gb: Some(75), nvme: true, ..m5_large() };
    let mut s = shape(AmiFamily::Al2023);
    assert_eq!(build(&row, &s, &TwoZones).capacity.ephemeral_storage, 20 * GIB);
    s.raid0 = true;
    let it = build(&row, &s, &TwoZones);
    assert_eq!(it.capacity.ephemeral_storage, 75_000_000_000);
    assert_eq!(values(&it, "karpenter.k8s.aws/instance-local-nvme"), ["75"]);
}

#[test]
fn devices_become_resources_and_labels() {
    let row = TypeRow {
        name: "g4dn.12xlarge".into(),
        gpus: vec![Gpu { name: "T4".into(), manufacturer: "NVIDIA".into(), count: 4, memory_mib: 16384 }],
        efa_max: 1,
        ..m5_large()
    };
    let it = build(&row, &shape(AmiFamily::Al2023), &TwoZones);
    assert_eq!(it.capacity.extended.get("nvidia.com/gpu"), Some(&4));
    assert_eq!(it.capacity.extended.get("vpc.amazonaws.com/efa"), Some(&1));
    assert_eq!(it.capacity.extended.get("amd.com/gpu"), None);
    assert_eq!(values(&it, "karpenter.k8s.aws/instance-gpu-name"), ["t4"]);
    assert_eq!(values(&it, "karpenter.k8s.aws/instance-gpu-manufacturer"), ["nvidia"]);
    assert_eq!(values(&it, "karpenter.k8s.aws/instance-gpu-memory"), ["16384"]);

    let inf2 = TypeRow {
        name: "inf2.24xlarge".into(),
        accelerators: vec![Accelerator { name: "Inferentia2".into(), manufacturer: "AWS".into(), count: 6 }],
        neuron: vec![NeuronDevice { name: "Inferentia2".into(), count: 6, cores: 2 }],
        ..m5_large()
    };
    let it = build(&inf2, &shape(AmiFamily::Al2023), &TwoZones);
    assert_eq!(it.capacity.extended.get("aws.amazon.com/neuron"), Some(&6));
    assert_eq!(it.capacity.extended.get("aws.amazon.com/neuroncore"), Some(&12));
    assert_eq!(values(&it, "karpenter.k8s.aws/instance-accelerator-name"), ["inferentia2"]);
    assert_eq!(requirement(&it, "karpenter.k8s.aws/instance-gpu-count").operator, Operator::DoesNotExist);
}

#[test]
fn names_give_category_generation_and_size() {
    use super::requirements::category_and_generation as split;
    assert_eq!(split("m5"), Some(("m", "5")));
    assert_eq!(split("c7gn"), Some(("c", "7")));
    assert_eq!(split("u-6tb1"), Some(("u", "1")));
    assert_eq!(split("u7i-12tb"), Some(("u", "7")));
    assert_eq!(split("m8i-flex"), Some(("m", "8")));
    assert_eq!(split("hpc7a"), Some(("hpc", "7")));
    assert_eq!(split("p6-b200"), Some(("p", "6")));
    assert_eq!(split("5m"), None);
    assert_eq!(split("mac"), None);
    assert_eq!(split(""), None);
    let it = build(&m5_large(), &shape(AmiFamily::Al2023), &TwoZones);
    assert_eq!(values(&it, "karpenter.k8s.aws/instance-size"), ["large"]);
    assert_eq!(values(&it, "karpenter.k8s.aws/instance-cpu-manufacturer"), ["intel"]);
    assert_eq!(values(&it, "karpenter.k8s.aws/instance-capability-flex"), ["false"]);
    assert_eq!(values(&it, "topology.kubernetes.io/zone"), ["us-east-1a"], "only zones with a subnet");
    assert_eq!(values(&it, "topology.k8s.aws/zone-id"), ["use1-az1"]);
    assert!(it.requirements.is_sorted_by(|a, b| a.key < b.key));
}

#[test]
fn every_well_known_label_is_defined() {
    let it = build(&m5_large(), &shape(AmiFamily::Al2023), &TwoZones);
    for key in mortise_api::labels::WELL_KNOWN.iter().filter(|k| **k != "karpenter.sh/nodepool") {
        assert!(it.requirements.iter().any(|r| &*r.key == *key), "{key}");
    }
}

#[test]
fn offerings_are_listed_even_when_they_cannot_be_had() {
    let it = build(&m5_large(), &shape(AmiFamily::Al2023), &TwoZones);
    let seen: Vec<_> = it.offerings.iter().map(|o| (&*o.zone, o.capacity_type, o.available)).collect();
    assert_eq!(
        seen,
        [
            ("us-east-1a", CapacityType::Spot, true),
            ("us-east-1a", CapacityType::OnDemand, true),
            ("us-east-1b", CapacityType::Spot, false),
            ("us-east-1b", CapacityType::OnDemand, false),
        ],
        "no subnet in 1b"
    );
    let a1 = TypeRow { name: "a1.large".into(), ..m5_large() };
    let it = build(&a1, &shape(AmiFamily::Al2023), &TwoZones);
    assert!(it.offerings.iter().all(|o| !o.available), "AL2023 does not run on a1");
    assert_eq!(it.offerings.len(), 4);
}

#[test]
fn class_options_narrow_the_types() {
    let row = m5_large();
    let mut s = shape(AmiFamily::Al2023);
    assert_eq!(incompatible(&row, &s), None);
    s.enclaves = true;
    assert!(incompatible(&row, &s).is_some());
    s.enclaves = false;
    s.nested_virtualization = true;
    assert!(incompatible(&row, &s).is_some());
    s.nested_virtualization = false;
    s.interfaces =
        vec![Interface { card: 0, device: 0, efa_only: false }, Interface { card: 1, device: 1, efa_only: true }];
    assert_eq!(incompatible(&row, &s), Some("too few network cards"));
    s.interfaces = vec![Interface { card: 0, device: 3, efa_only: false }];
    assert_eq!(incompatible(&row, &s), Some("too few interfaces on a network card"));
    s.interfaces.clear();
    s.connection_tracking = true;
    assert!(incompatible(&TypeRow { hypervisor: "xen".into(), ..row }, &s).is_some());
}

#[test]
fn rows_survive_json() {
    let row = m5_large();
    let json = serde_json::to_string(&row).unwrap();
    assert_eq!(serde_json::from_str::<TypeRow>(&json).unwrap(), row);
    assert!(!json.contains("gpus"), "absent facts take no room: {json}");
}
