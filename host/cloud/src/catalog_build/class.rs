//! From an EC2NodeClass, as written and with its status, to a [`ClassShape`].

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_api::EC2NodeClass;
use mortise_api::ec2nodeclass::{EC2NodeClassSpec, InstanceStorePolicy, InterfaceType, Toggle};

use super::capacity::GIB;
use super::shape::{AmiFamily, ClassShape, DEFAULT_VM_MEMORY_OVERHEAD_PPM, Interface, ShapeError, Zone};

/// What the operator sets for all classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeSettings {
    /// Region.
    pub region: Arc<str>,
    /// `RESERVED_ENIS`.
    pub reserved_enis: u32,
    /// `VM_MEMORY_OVERHEAD_PERCENT` × 1,000,000.
    pub vm_memory_overhead_ppm: u32,
}

impl ShapeSettings {
    /// Defaults for a region.
    #[must_use]
    pub fn for_region(region: &str) -> Self {
        Self { region: Arc::from(region), reserved_enis: 0, vm_memory_overhead_ppm: DEFAULT_VM_MEMORY_OVERHEAD_PPM }
    }
}

impl ClassShape {
    /// What a node class asks. Zones come from the subnets in its status.
    ///
    /// # Errors
    /// The field that cannot be understood, what was found and what is expected.
    pub fn from_class(class: &EC2NodeClass, settings: &ShapeSettings) -> Result<Self, ShapeError> {
        let spec = &class.spec;
        let family = family(spec)?;
        // A zone may have many subnets; ids of one zone agree.
        let mut zones: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for subnet in class.status.iter().flat_map(|s| &s.subnets) {
            let id = zones.entry(&subnet.zone).or_default();
            *id = id.or(subnet.zone_id.as_deref());
        }
        let zones = zones.into_iter().map(|(name, id)| Zone { name: Arc::from(name), id: id.map(Arc::from) }).collect();
        let mut shape = Self::plain(family, &settings.region, zones);
        shape.reserved_enis = settings.reserved_enis;
        shape.vm_memory_overhead_ppm = settings.vm_memory_overhead_ppm;
        shape.raid0 = spec.instance_store_policy == Some(InstanceStorePolicy::Raid0);
        if let Some(size) = root_volume(spec, family)? {
            shape.root_volume = size;
        }
        shape.set_kubelet(&spec.kubelet)?;
        shape.interfaces = spec
            .network_interfaces
            .iter()
            .map(|i| Interface {
                card: u32::try_from(i.network_card_index).unwrap_or(u32::MAX),
                device: u32::try_from(i.device_index).unwrap_or(u32::MAX),
                efa_only: i.interface_type == InterfaceType::EfaOnly,
            })
            .collect();
        shape.nested_virtualization =
            spec.cpu_options.as_ref().is_some_and(|c| c.nested_virtualization == Some(Toggle::Enabled));
        shape.enclaves = spec.enclave_options.as_ref().is_some_and(|e| e.enabled);
        shape.connection_tracking = spec.connection_tracking.is_some();
        Ok(shape)
    }
}

/// Family of the class's images.
fn family(spec: &EC2NodeClassSpec) -> Result<AmiFamily, ShapeError> {
    let text = spec.resolved_ami_family();
    let text = text.as_ref().map_or("", |f| f.as_str());
    AmiFamily::parse(text).ok_or_else(|| ShapeError {
        field: "amiFamily".to_owned(),
        found: format!("{text:?}"),
        expected: "AL2023 or another family by name, here or in an alias such as al2023@latest",
    })
}

/// Size of the volume that holds pods' ephemeral storage, where the class says it.
fn root_volume(spec: &EC2NodeClassSpec, family: AmiFamily) -> Result<Option<i64>, ShapeError> {
    let mappings = &spec.block_device_mappings;
    let sized =
        |m: &&mortise_api::ec2nodeclass::BlockDeviceMapping| m.ebs.as_ref().is_some_and(|e| e.volume_size.is_some());
    let chosen = mappings.iter().filter(sized).find(|m| m.root_volume == Some(true)).or_else(|| {
        match family.ephemeral_device() {
            // Only the image knows which one it is; the last is the best guess there is.
            None => mappings.last().filter(sized),
            Some(device) => mappings.iter().filter(sized).find(|m| m.device_name.as_deref() == Some(device)),
        }
    });
    let Some(text) = chosen.and_then(|m| m.ebs.as_ref()).and_then(|e| e.volume_size.as_deref()) else {
        return Ok(None);
    };
    volume_bytes(text).map(Some).ok_or_else(|| ShapeError {
        field: "blockDeviceMappings.ebs.volumeSize".to_owned(),
        found: format!("{text:?}"),
        expected: "a size such as 20Gi or 1Ti",
    })
}

/// A volume size (`20Gi`, `64000G`, `1Ti`, `64T`) in bytes.
#[must_use]
pub fn volume_bytes(text: &str) -> Option<i64> {
    let (number, unit) = if let Some(n) = text.strip_suffix("Gi") {
        (n, GIB)
    } else if let Some(n) = text.strip_suffix("Ti") {
        (n, GIB.checked_mul(1024)?)
    } else if let Some(n) = text.strip_suffix('G') {
        (n, 1_000_000_000)
    } else if let Some(n) = text.strip_suffix('T') {
        (n, 1_000_000_000_000)
    } else {
        return None;
    };
    number.parse::<i64>().ok().filter(|n| *n > 0)?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(json: serde_json::Value) -> EC2NodeClass {
        let mut spec = serde_json::json!({
            "role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
        });
        for (key, value) in json.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let mut class = EC2NodeClass::new("default", serde_json::from_value(spec).unwrap());
        class.status = serde_json::from_value(serde_json::json!({"subnets": [
            {"id": "subnet-2", "zone": "us-east-1b"},
            {"id": "subnet-1", "zone": "us-east-1a", "zoneID": "use1-az1"},
            {"id": "subnet-3", "zone": "us-east-1a"},
        ]}))
        .unwrap();
        class
    }

    fn shape(json: serde_json::Value) -> Result<ClassShape, ShapeError> {
        ClassShape::from_class(&class(json), &ShapeSettings::for_region("us-east-1"))
    }

    #[test]
    fn zones_come_from_the_status() {
        let shape = shape(serde_json::json!({})).unwrap();
        let zones: Vec<_> = shape.zones.iter().map(|z| (&*z.name, z.id.as_deref())).collect();
        assert_eq!(zones, [("us-east-1a", Some("use1-az1")), ("us-east-1b", None)]);
        assert_eq!(shape.family, AmiFamily::Al2023);
        assert_eq!(shape.root_volume, 20 * GIB);
    }

    #[test]
    fn root_volume_by_mark_then_device() {
        let two = serde_json::json!({"blockDeviceMappings": [
            {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi"}},
            {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "1Ti"}},
        ]});
        assert_eq!(shape(two.clone()).unwrap().root_volume, 100 * GIB);
        let mut marked = two;
        marked["blockDeviceMappings"][1]["rootVolume"] = true.into();
        assert_eq!(shape(marked).unwrap().root_volume, 1024 * GIB);
        let bad =
            serde_json::json!({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "big"}}]});
        assert_eq!(shape(bad).unwrap_err().found, "\"big\"");
    }

    #[test]
    fn options_are_taken_over() {
        let it = shape(serde_json::json!({
            "instanceStorePolicy": "RAID0", "kubelet": {"maxPods": 42}, "enclaveOptions": {"enabled": true},
            "cpuOptions": {"nestedVirtualization": "enabled"},
            "networkInterfaces": [
                {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
                {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}],
        }))
        .unwrap();
        assert!(it.raid0 && it.enclaves && it.nested_virtualization && !it.connection_tracking);
        assert_eq!(it.max_pods, Some(42));
        assert_eq!(it.efa_only_total(), Some(1));
        assert_eq!(it.efa_only_on_card(0), 0);
    }

    #[test]
    fn a_family_must_be_known() {
        let terms = serde_json::json!({"amiSelectorTerms": [{"id": "ami-1"}]});
        assert_eq!(shape(terms).unwrap_err().field, "amiFamily");
    }

    #[test]
    fn sizes() {
        assert_eq!(volume_bytes("20Gi"), Some(20 * GIB));
        assert_eq!(volume_bytes("64T"), Some(64_000_000_000_000));
        for bad in ["", "20", "Gi", "-1Gi", "0Gi", "1.5Gi", "9999999999999999Ti"] {
            assert_eq!(volume_bytes(bad), None, "{bad}");
        }
    }
}
