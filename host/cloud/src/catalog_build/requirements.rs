//! Labels that a node of a type may have (karpenter-aws label set), as requirements.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::requirement::{Operator, Requirement};

use super::intern::Interner;
use super::offerings::Market;
use super::row::TypeRow;
use super::shape::ClassShape;

/// Label prefix of the provider.
const AWS: &str = "karpenter.k8s.aws/";

/// Labels that are absent unless a value is known. Listed so that a pod asking for one is refused, not let through as
/// "undefined".
const OPTIONAL: [&str; 27] = [
    "capacity-reservation-id",
    "capacity-reservation-interruptible",
    "capacity-reservation-type",
    "instance-accelerator-count",
    "instance-accelerator-manufacturer",
    "instance-accelerator-name",
    "instance-category",
    "instance-cpu",
    "instance-cpu-manufacturer",
    "instance-cpu-sustained-clock-speed-mhz",
    "instance-ebs-bandwidth",
    "instance-encryption-in-transit-supported",
    "instance-family",
    "instance-capability-flex",
    "instance-generation",
    "instance-gpu-count",
    "instance-gpu-manufacturer",
    "instance-gpu-memory",
    "instance-gpu-name",
    "instance-hypervisor",
    "instance-local-nvme",
    "instance-memory",
    "instance-network-bandwidth",
    "instance-size",
    "instance-tenancy",
    "placement-group-id",
    "placement-group-partition",
];

/// `kubernetes.io/arch` of a type: the first of its architectures that Kubernetes has a name for.
#[must_use]
pub fn arch_label(row: &TypeRow) -> Option<&'static str> {
    row.architectures.iter().find_map(|a| match a.as_str() {
        "x86_64" => Some("amd64"),
        "arm64" => Some("arm64"),
        _ => None,
    })
}

/// Lower case, spaces to `-`.
fn kebab(text: &str) -> String {
    text.to_lowercase().replace(' ', "-")
}

/// Category and generation from the family name: letters, an optional `-12tb`, digits. `u7i-12tb` is (`u`, `7`),
/// `u-6tb1` is (`u`, `1`). `None` when the name has another form.
pub(super) fn category_and_generation(family: &str) -> Option<(&str, &str)> {
    let letters = family.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(family.len());
    let (category, rest) = family.split_at_checked(letters)?;
    if category.is_empty() {
        return None;
    }
    // An infix such as "-6tb" stands between category and generation.
    let rest = rest
        .strip_prefix('-')
        .and_then(|r| {
            let digits = r.find(|c: char| !c.is_ascii_digit())?;
            (digits > 0).then(|| r.get(digits..)).flatten()?.strip_prefix("tb")
        })
        .unwrap_or(rest);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let generation = rest.get(..digits)?;
    (!generation.is_empty()).then_some((category, generation))
}

/// Builder keyed by label, so that a later value replaces the DoesNotExist that stood there.
struct Labels<'a> {
    by_key: BTreeMap<Arc<str>, Requirement>,
    names: &'a mut Interner,
}

impl Labels<'_> {
    fn put(&mut self, key: &str, operator: Operator, values: Vec<Arc<str>>) {
        let key = self.names.get(key);
        self.by_key.insert(Arc::clone(&key), Requirement { key, operator, values, min_values: None });
    }

    fn one(&mut self, key: &str, value: &str) {
        let value = self.names.get(value);
        self.put(key, Operator::In, vec![value]);
    }

    fn aws(&mut self, key: &str, value: &str) {
        self.one(&format!("{AWS}{key}"), value);
    }

    /// A set, sorted; an empty one means the label cannot be had.
    fn set<'t>(&mut self, key: &str, values: impl IntoIterator<Item = &'t str>) {
        let mut values: Vec<Arc<str>> = values.into_iter().map(|v| self.names.get(v)).collect();
        values.sort();
        values.dedup();
        let operator = if values.is_empty() { Operator::DoesNotExist } else { Operator::In };
        self.put(key, operator, values);
    }
}

/// Requirements of a type, sorted by key.
pub(super) fn requirements(
    row: &TypeRow,
    shape: &ClassShape,
    market: &dyn Market,
    names: &mut Interner,
) -> Vec<Requirement> {
    let mut labels = Labels { by_key: BTreeMap::new(), names };
    for key in OPTIONAL {
        labels.put(&format!("{AWS}{key}"), Operator::DoesNotExist, Vec::new());
    }
    labels.put("node.kubernetes.io/windows-build", Operator::DoesNotExist, Vec::new());
    topology(&mut labels, row, shape, market);
    identity(&mut labels, row, shape);
    devices(&mut labels, row);
    labels.by_key.into_values().collect()
}

fn topology(labels: &mut Labels<'_>, row: &TypeRow, shape: &ClassShape, market: &dyn Market) {
    let here: Vec<_> = shape.zones.iter().filter(|z| market.offered(&row.name, &z.name)).collect();
    labels.set("topology.kubernetes.io/zone", here.iter().map(|z| &*z.name));
    labels.set("topology.k8s.aws/zone-id", here.iter().filter_map(|z| z.id.as_deref()));
    labels.one("topology.kubernetes.io/region", &shape.region);
    let markets = [(row.on_demand, "on-demand"), (row.spot, "spot")];
    labels.set("karpenter.sh/capacity-type", markets.into_iter().filter(|(sold, _)| *sold).map(|(_, name)| name));
}

fn identity(labels: &mut Labels<'_>, row: &TypeRow, shape: &ClassShape) {
    labels.one("node.kubernetes.io/instance-type", &row.name);
    let arch = arch_label(row);
    if let Some(arch) = arch {
        labels.one("kubernetes.io/arch", arch);
    }
    match shape.family.windows_build() {
        None => labels.one("kubernetes.io/os", "linux"),
        Some(build) => {
            labels.set("kubernetes.io/os", (arch == Some("amd64")).then_some("windows"));
            labels.one("node.kubernetes.io/windows-build", build);
        }
    }
    let family = row.family();
    labels.aws("instance-family", family);
    labels.aws("instance-size", row.size());
    if let Some((category, generation)) = category_and_generation(family) {
        labels.aws("instance-category", category);
        labels.aws("instance-generation", generation);
    }
    labels.aws("instance-capability-flex", if family.contains("-flex") { "true" } else { "false" });
    labels.aws("instance-hypervisor", &row.hypervisor);
    let encrypted = if row.encryption_in_transit { "true" } else { "false" };
    labels.aws("instance-encryption-in-transit-supported", encrypted);
    labels.set(&format!("{AWS}instance-tenancy"), ["default", "dedicated"]);
    labels.aws("instance-cpu", &row.vcpus.to_string());
    labels.aws("instance-memory", &row.memory_mib.to_string());
    if !row.cpu_manufacturer.is_empty() {
        labels.aws("instance-cpu-manufacturer", &kebab(&row.cpu_manufacturer));
    }
    if let Some(mhz) = row.clock_mhz {
        labels.aws("instance-cpu-sustained-clock-speed-mhz", &mhz.to_string());
    }
}

fn devices(labels: &mut Labels<'_>, row: &TypeRow) {
    if let Some(mbps) = row.ebs_mbps {
        labels.aws("instance-ebs-bandwidth", &mbps.to_string());
    }
    if let Some(mbps) = row.network_mbps {
        labels.aws("instance-network-bandwidth", &mbps.to_string());
    }
    if let (Some(gb), true) = (row.instance_store_gb, row.nvme) {
        labels.aws("instance-local-nvme", &gb.to_string());
    }
    if let [gpu] = row.gpus.as_slice() {
        labels.aws("instance-gpu-name", &kebab(&gpu.name));
        labels.aws("instance-gpu-manufacturer", &kebab(&gpu.manufacturer));
        labels.aws("instance-gpu-count", &gpu.count.to_string());
        labels.aws("instance-gpu-memory", &gpu.memory_mib.to_string());
    }
    match (row.neuron.as_slice(), row.accelerators.as_slice()) {
        ([device], _) => {
            labels.aws("instance-accelerator-name", &kebab(&device.name));
            labels.aws("instance-accelerator-manufacturer", "aws");
            labels.aws("instance-accelerator-count", &device.count.to_string());
        }
        ([], [accelerator]) => {
            labels.aws("instance-accelerator-name", &kebab(&accelerator.name));
            labels.aws("instance-accelerator-manufacturer", &kebab(&accelerator.manufacturer));
            labels.aws("instance-accelerator-count", &accelerator.count.to_string());
        }
        _ => {}
    }
}
