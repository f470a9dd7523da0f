//! What a node class asks of its nodes, as far as it changes capacity, overhead and the choice of types.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::quantity::Quantity;
use serde_json::{Map, Value};

use super::capacity::GIB;

/// `spec.kubelet` as written.
type Kubelet = BTreeMap<String, Value>;

/// Image family: decides how a node joins and a few of its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AmiFamily {
    /// Amazon Linux 2.
    Al2,
    /// Amazon Linux 2023.
    Al2023,
    /// Bottlerocket.
    Bottlerocket,
    /// Windows Server 2019.
    Windows2019,
    /// Windows Server 2022.
    Windows2022,
    /// Windows Server 2025.
    Windows2025,
    /// The user's own image and user data.
    Custom,
}

impl AmiFamily {
    /// From `amiFamily` (`AL2023`) or an alias's family (`al2023`).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "al2" => Self::Al2,
            "al2023" => Self::Al2023,
            "bottlerocket" => Self::Bottlerocket,
            "windows2019" => Self::Windows2019,
            "windows2022" => Self::Windows2022,
            "windows2025" => Self::Windows2025,
            "custom" => Self::Custom,
            _ => return None,
        })
    }

    /// As in `amiFamily`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Al2 => "AL2",
            Self::Al2023 => "AL2023",
            Self::Bottlerocket => "Bottlerocket",
            Self::Windows2019 => "Windows2019",
            Self::Windows2022 => "Windows2022",
            Self::Windows2025 => "Windows2025",
            Self::Custom => "Custom",
        }
    }

    /// `node.kubernetes.io/windows-build`.
    #[must_use]
    pub fn windows_build(self) -> Option<&'static str> {
        match self {
            Self::Windows2019 => Some("10.0.17763"),
            Self::Windows2022 => Some("10.0.20348"),
            Self::Windows2025 => Some("10.0.26100"),
            _ => None,
        }
    }

    /// Device that holds pods' ephemeral storage; `None` when only the image knows.
    #[must_use]
    pub fn ephemeral_device(self) -> Option<&'static str> {
        match self {
            Self::Al2 | Self::Al2023 => Some("/dev/xvda"),
            Self::Bottlerocket => Some("/dev/xvdb"),
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => Some("/dev/sda1"),
            Self::Custom => None,
        }
    }

    /// Devices and sizes in GiB when the class names none.
    #[must_use]
    pub fn default_devices(self) -> &'static [(&'static str, i32)] {
        match self {
            Self::Al2 | Self::Al2023 => &[("/dev/xvda", 20)],
            Self::Bottlerocket => &[("/dev/xvda", 6), ("/dev/xvdb", 20)],
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => &[("/dev/sda1", 50)],
            Self::Custom => &[],
        }
    }

    /// Addresses bound the number of pods.
    #[must_use]
    pub fn eni_limited(self) -> bool {
        self.windows_build().is_none()
    }

    /// The bootstrap reserves memory for as many pods as addresses allow, whatever `maxPods` says.
    #[must_use]
    pub fn reserves_by_eni(self) -> bool {
        matches!(self, Self::Al2 | Self::Al2023 | Self::Custom)
    }

    /// `podsPerCore` reaches the kubelet.
    #[must_use]
    pub fn has_pods_per_core(self) -> bool {
        self != Self::Bottlerocket
    }
}

/// A zone in which the class has a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Zone {
    /// `us-east-1a`.
    pub name: Arc<str>,
    /// `use1-az1`, when known.
    pub id: Option<Arc<str>>,
}

/// A reservation that replaces the default, per resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reserved {
    /// Thousandths of a CPU.
    pub cpu_milli: Option<i64>,
    /// Bytes.
    pub memory: Option<i64>,
    /// Bytes.
    pub ephemeral_storage: Option<i64>,
}

/// An eviction threshold as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Threshold {
    /// Bytes.
    Amount(i64),
    /// Share of capacity; 1,000,000 is all of it.
    PartsPerMillion(u32),
}

/// A network interface that the class asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interface {
    /// Network card.
    pub card: u32,
    /// Device on it.
    pub device: u32,
    /// `efa-only`: takes a slot, carries no pod addresses.
    pub efa_only: bool,
}

/// What a node class asks, resolved to numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClassShape {
    /// Image family.
    pub family: AmiFamily,
    /// Region.
    pub region: Arc<str>,
    /// Zones with a subnet of the class, sorted by name.
    pub zones: Vec<Zone>,
    /// `kubelet.maxPods`.
    pub max_pods: Option<u32>,
    /// `kubelet.podsPerCore`.
    pub pods_per_core: Option<u32>,
    /// `kubelet.kubeReserved`.
    pub kube_reserved: Reserved,
    /// `kubelet.systemReserved`.
    pub system_reserved: Reserved,
    /// `kubelet.evictionHard["memory.available"]`.
    pub eviction_memory: Option<Threshold>,
    /// `kubelet.evictionHard["nodefs.available"]`.
    pub eviction_storage: Option<Threshold>,
    /// `instanceStorePolicy: RAID0`.
    pub raid0: bool,
    /// Size in bytes of the volume that holds pods' ephemeral storage.
    pub root_volume: i64,
    /// Interfaces that pods must not count on (`RESERVED_ENIS`).
    pub reserved_enis: u32,
    /// Share of memory that the hypervisor keeps, parts per million (`VM_MEMORY_OVERHEAD_PERCENT` × 1,000,000).
    pub vm_memory_overhead_ppm: u32,
    /// `networkInterfaces`.
    pub interfaces: Vec<Interface>,
    /// `cpuOptions.nestedVirtualization: enabled`.
    pub nested_virtualization: bool,
    /// `enclaveOptions.enabled: true`.
    pub enclaves: bool,
    /// `connectionTracking` is set.
    pub connection_tracking: bool,
}

/// Default of `VM_MEMORY_OVERHEAD_PERCENT` (0.075) in parts per million.
pub const DEFAULT_VM_MEMORY_OVERHEAD_PPM: u32 = 75_000;

impl ClassShape {
    /// A class of this family that asks nothing special.
    #[must_use]
    pub fn plain(family: AmiFamily, region: &str, zones: Vec<Zone>) -> Self {
        let device = family.ephemeral_device();
        let size = family.default_devices().iter().find(|(name, _)| Some(*name) == device).map_or(20, |(_, gib)| *gib);
        Self {
            family,
            region: Arc::from(region),
            zones,
            max_pods: None,
            pods_per_core: None,
            kube_reserved: Reserved::default(),
            system_reserved: Reserved::default(),
            eviction_memory: None,
            eviction_storage: None,
            raid0: false,
            root_volume: i64::from(size) * GIB,
            reserved_enis: 0,
            vm_memory_overhead_ppm: DEFAULT_VM_MEMORY_OVERHEAD_PPM,
            interfaces: Vec::new(),
            nested_virtualization: false,
            enclaves: false,
            connection_tracking: false,
        }
    }

    /// EFA-only interfaces on one card.
    #[must_use]
    pub fn efa_only_on_card(&self, card: u32) -> u32 {
        let count = self.interfaces.iter().filter(|i| i.efa_only && i.card == card).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// EFA-only interfaces in all; `None` when the class leaves interfaces to us.
    #[must_use]
    pub fn efa_only_total(&self) -> Option<u32> {
        if self.interfaces.is_empty() {
            return None;
        }
        u32::try_from(self.interfaces.iter().filter(|i| i.efa_only).count()).ok()
    }

    /// Takes over what `spec.kubelet` says about pods, reservations and eviction.
    ///
    /// # Errors
    /// The field, what was found, and what is expected.
    pub fn set_kubelet(&mut self, kubelet: &Kubelet) -> Result<(), ShapeError> {
        self.max_pods = count(kubelet, "maxPods")?;
        self.pods_per_core = count(kubelet, "podsPerCore")?;
        self.kube_reserved = reserved(kubelet, "kubeReserved")?;
        self.system_reserved = reserved(kubelet, "systemReserved")?;
        self.eviction_memory = threshold(kubelet, "memory.available")?;
        self.eviction_storage = threshold(kubelet, "nodefs.available")?;
        Ok(())
    }
}

/// A field of a node class that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.{field}: found {found}, expected {expected}")]
pub struct ShapeError {
    /// Path below `spec`.
    pub field: String,
    /// What was found.
    pub found: String,
    /// What is expected.
    pub expected: &'static str,
}

fn error(field: String, found: &Value, expected: &'static str) -> ShapeError {
    ShapeError { field, found: found.to_string(), expected }
}

/// A number of pods.
fn count(kubelet: &Kubelet, name: &str) -> Result<Option<u32>, ShapeError> {
    match kubelet.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| i32::try_from(*n).is_ok()) {
            Some(n) => Ok(Some(n)),
            None => Err(error(
                format!("kubelet.{name}"),
                value,
                "a whole number of pods, 0 to 2147483647 (expressions need the NodeClassCEL gate, which is not acted on)",
            )),
        },
    }
}

/// The named map below `kubelet`.
fn map_of<'a>(kubelet: &'a Kubelet, name: &str) -> Result<Option<&'a Map<String, Value>>, ShapeError> {
    match kubelet.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(other) => Err(error(format!("kubelet.{name}"), other, "a map of names to quantities")),
    }
}

fn quantity(field: String, value: &Value) -> Result<Quantity, ShapeError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return Err(error(field, other, "a quantity such as 100m or 1Gi")),
    };
    text.parse::<Quantity>().map_err(|_| {
        error(
            field,
            value,
            "a quantity such as 100m or 1Gi (expressions need the NodeClassCEL gate, which is not acted on)",
        )
    })
}

fn reserved(kubelet: &Kubelet, name: &str) -> Result<Reserved, ShapeError> {
    let Some(map) = map_of(kubelet, name)? else { return Ok(Reserved::default()) };
    let read = |key: &str| map.get(key).map(|v| quantity(format!("kubelet.{name}.{key}"), v)).transpose();
    Ok(Reserved {
        cpu_milli: read("cpu")?.map(Quantity::milli),
        memory: read("memory")?.map(Quantity::value),
        ephemeral_storage: read("ephemeral-storage")?.map(Quantity::value),
    })
}

fn threshold(kubelet: &Kubelet, signal: &str) -> Result<Option<Threshold>, ShapeError> {
    let Some(value) = map_of(kubelet, "evictionHard")?.and_then(|m| m.get(signal)) else { return Ok(None) };
    let field = format!("kubelet.evictionHard.{signal}");
    if let Some(percent) = value.as_str().and_then(|t| t.strip_suffix('%')) {
        let ppm = percent_ppm(percent).ok_or_else(|| error(field, value, "a percentage from 0% to 100%"))?;
        return Ok(Some(Threshold::PartsPerMillion(ppm)));
    }
    Ok(Some(Threshold::Amount(quantity(field, value)?.value())))
}

/// `"5"` or `"2.5"` percent as parts per million (four decimals of a percent count); 0 to 100.
fn percent_ppm(text: &str) -> Option<u32> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let decimals: u32 = format!("{fraction:0<4}").get(..4)?.parse().ok()?;
    let ppm = whole.parse::<u32>().ok()?.checked_mul(10_000)?.checked_add(decimals)?;
    (ppm <= 1_000_000).then_some(ppm)
}
