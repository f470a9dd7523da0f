//! Label keys that mean something here, which of them users may set, and the old names that still arrive.

/// API group of NodePool and NodeClaim, and the domain of the core labels.
pub const GROUP: &str = "karpenter.sh";
/// API group of EC2NodeClass, and the domain of the EC2 labels.
pub const AWS_GROUP: &str = "karpenter.k8s.aws";
/// Domain of what is ours alone.
pub const MORTISE_DOMAIN: &str = "mortise.dev";

/// Name of the NodePool that a NodeClaim, Node or instance belongs to.
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
/// `on-demand`, `spot` or `reserved`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// "true" once the Node was matched to its NodeClaim.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// "true" once the Node is fit for pods for the first time.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// "true" when the bootstrap itself registers the taints, so that the controller must not.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Availability zone name.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Region name.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Availability zone id, the same in every AWS account.
pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";
/// EC2 instance type name.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// `amd64` or `arm64`.
pub const ARCH: &str = "kubernetes.io/arch";
/// `linux` or `windows`.
pub const OS: &str = "kubernetes.io/os";
/// Windows build number.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// Node name. Never allowed in a NodePool.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Name of the EC2NodeClass, on NodeClaims, Nodes and as an EC2 tag.
pub const EC2NODECLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
/// Letters before the generation digits: `m` of `m6i.large`.
pub const INSTANCE_CATEGORY: &str = "karpenter.k8s.aws/instance-category";
/// Generation digits: `6` of `m6i.large`.
pub const INSTANCE_GENERATION: &str = "karpenter.k8s.aws/instance-generation";
/// Text before the dot.
pub const INSTANCE_FAMILY: &str = "karpenter.k8s.aws/instance-family";
/// Text after the dot.
pub const INSTANCE_SIZE: &str = "karpenter.k8s.aws/instance-size";
/// "true" for flex families.
pub const INSTANCE_CAPABILITY_FLEX: &str = "karpenter.k8s.aws/instance-capability-flex";
/// `nitro`, `xen` or empty.
pub const INSTANCE_HYPERVISOR: &str = "karpenter.k8s.aws/instance-hypervisor";
/// "true" or "false".
pub const INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED: &str = "karpenter.k8s.aws/instance-encryption-in-transit-supported";
/// vCPUs.
pub const INSTANCE_CPU: &str = "karpenter.k8s.aws/instance-cpu";
/// `intel`, `amd`, `aws`, ...
pub const INSTANCE_CPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-cpu-manufacturer";
/// Sustained clock in MHz.
pub const INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ: &str = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
/// Memory in MiB as EC2 reports it.
pub const INSTANCE_MEMORY: &str = "karpenter.k8s.aws/instance-memory";
/// Largest EBS bandwidth in Mbps.
pub const INSTANCE_EBS_BANDWIDTH: &str = "karpenter.k8s.aws/instance-ebs-bandwidth";
/// Baseline network bandwidth in Mbps.
pub const INSTANCE_NETWORK_BANDWIDTH: &str = "karpenter.k8s.aws/instance-network-bandwidth";
/// Total NVMe instance store in GB.
pub const INSTANCE_LOCAL_NVME: &str = "karpenter.k8s.aws/instance-local-nvme";
/// GPU name, when there is one kind of GPU.
pub const INSTANCE_GPU_NAME: &str = "karpenter.k8s.aws/instance-gpu-name";
/// GPU manufacturer.
pub const INSTANCE_GPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
/// Number of GPUs.
pub const INSTANCE_GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
/// Memory of one GPU in MiB.
pub const INSTANCE_GPU_MEMORY: &str = "karpenter.k8s.aws/instance-gpu-memory";
/// Accelerator name.
pub const INSTANCE_ACCELERATOR_NAME: &str = "karpenter.k8s.aws/instance-accelerator-name";
/// Accelerator manufacturer.
pub const INSTANCE_ACCELERATOR_MANUFACTURER: &str = "karpenter.k8s.aws/instance-accelerator-manufacturer";
/// Number of accelerators.
pub const INSTANCE_ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";
/// `default` or `dedicated`.
pub const INSTANCE_TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
/// Capacity reservation id.
pub const CAPACITY_RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
/// `default` or `capacity-block`.
pub const CAPACITY_RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
/// "true" or "false".
pub const CAPACITY_RESERVATION_INTERRUPTIBLE: &str = "karpenter.k8s.aws/capacity-reservation-interruptible";
/// Placement group id.
pub const PLACEMENT_GROUP_ID: &str = "karpenter.k8s.aws/placement-group-id";
/// Partition of a partition placement group.
pub const PLACEMENT_GROUP_PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";

/// Values of [`CAPACITY_TYPE`].
pub mod capacity_type {
    /// Pay as you go.
    pub const ON_DEMAND: &str = "on-demand";
    /// Spare capacity, taken back with two minutes' notice.
    pub const SPOT: &str = "spot";
    /// A capacity reservation.
    pub const RESERVED: &str = "reserved";
    /// All of them.
    pub const ALL: &[&str] = &[ON_DEMAND, RESERVED, SPOT];
}

/// Values of [`INSTANCE_TENANCY`].
pub mod tenancy {
    /// Shared hardware.
    pub const DEFAULT: &str = "default";
    /// Hardware of one account.
    pub const DEDICATED: &str = "dedicated";
    /// All of them.
    pub const ALL: &[&str] = &[DEDICATED, DEFAULT];
}

/// Labels that instance types and offerings define, so a requirement on one of them is answered by the catalogue and
/// not by what a NodePool writes in its template. Sorted.
pub const WELL_KNOWN: &[&str] = &[
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_ACCELERATOR_MANUFACTURER,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_CAPABILITY_FLEX,
    INSTANCE_CATEGORY,
    INSTANCE_CPU,
    INSTANCE_CPU_MANUFACTURER,
    INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ,
    INSTANCE_EBS_BANDWIDTH,
    INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED,
    INSTANCE_FAMILY,
    INSTANCE_GENERATION,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_MANUFACTURER,
    INSTANCE_GPU_MEMORY,
    INSTANCE_GPU_NAME,
    INSTANCE_HYPERVISOR,
    INSTANCE_LOCAL_NVME,
    INSTANCE_MEMORY,
    INSTANCE_NETWORK_BANDWIDTH,
    INSTANCE_SIZE,
    INSTANCE_TENANCY,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    CAPACITY_TYPE,
    NODEPOOL,
    ARCH,
    OS,
    INSTANCE_TYPE,
    WINDOWS_BUILD,
    ZONE_ID,
    REGION,
    ZONE,
];

/// Domains whose labels belong to the controller. Sub-domains count too.
pub const RESTRICTED_DOMAINS: &[&str] = &[GROUP, AWS_GROUP];

/// Old label names and what they are called now. Applied to pod selectors, affinity and requirements.
pub const NORMALIZED: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
    ("beta.kubernetes.io/os", OS),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("topology.ebs.csi.aws.com/zone", ZONE),
];

/// Keys in the domain `karpenter.k8s.aws` that a NodePool or NodeClaim may name: the well-known ones and
/// [`EC2NODECLASS`].
pub fn aws_allowed() -> impl Iterator<Item = &'static str> {
    WELL_KNOWN.iter().copied().filter(|key| domain(key) == AWS_GROUP).chain([EC2NODECLASS])
}

/// Today's name of a label key.
pub fn normalize(key: &str) -> &str {
    NORMALIZED.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new)
}

/// The part before the slash; empty when there is none.
pub fn domain(key: &str) -> &str {
    key.split_once('/').map_or("", |(domain, _)| domain)
}

/// Whether instance types and offerings define this label.
pub fn is_well_known(key: &str) -> bool {
    WELL_KNOWN.contains(&key)
}

/// Whether `domain` is `parent` or below it.
fn within(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a user may not set this label or require it: the node name, and what lies in a domain of the controller
/// without being well known.
pub fn is_restricted(key: &str) -> bool {
    key == HOSTNAME
        || (!is_well_known(key) && RESTRICTED_DOMAINS.iter().any(|restricted| within(domain(key), restricted)))
}

/// Whether a kubelet may not give itself this label at bootstrap, so that the controller must set it on the Node.
pub fn is_kubelet_restricted(key: &str) -> bool {
    ["kubernetes.io", "k8s.io", "node-restriction.kubernetes.io"].iter().any(|parent| within(domain(key), parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aws_allow_list_has_the_28_keys_of_the_api() {
        assert_eq!(aws_allowed().count(), 28);
        assert!(aws_allowed().all(|key| key.starts_with("karpenter.k8s.aws/")));
    }

    #[test]
    fn restricted_keys() {
        for key in [HOSTNAME, "karpenter.sh/x", "a.karpenter.sh/x", REGISTERED, EC2NODECLASS, "karpenter.k8s.aws/cpu"] {
            assert!(is_restricted(key), "{key}");
        }
        for key in [NODEPOOL, CAPACITY_TYPE, INSTANCE_CPU, ZONE, "mykarpenter.sh/x", "team", "kubernetes.io/x"] {
            assert!(!is_restricted(key), "{key}");
        }
    }

    #[test]
    fn old_names_become_new_ones() {
        assert_eq!(normalize("beta.kubernetes.io/arch"), ARCH);
        assert_eq!(normalize("topology.ebs.csi.aws.com/zone"), ZONE);
        assert_eq!(normalize("team"), "team");
        assert!(NORMALIZED.iter().all(|(_, new)| normalize(new) == *new));
    }

    #[test]
    fn kubelets_may_not_set_kubernetes_labels() {
        assert!(is_kubelet_restricted(ZONE) && is_kubelet_restricted(INSTANCE_TYPE));
        assert!(!is_kubelet_restricted("team") && !is_kubelet_restricted(NODEPOOL));
        assert!(!is_kubelet_restricted("notkubernetes.io/x"));
    }
}
