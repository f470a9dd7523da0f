//! Annotation keys.

/// On a Pod, Node or NodeClaim: "true" blocks voluntary disruption; on a Pod also a duration from its start.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// On a Node or NodeClaim: "true" blocks node repair.
pub const DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";
/// On a NodePool and its NodeClaims: hash of the template fields whose change is drift.
pub const NODEPOOL_HASH: &str = "karpenter.sh/nodepool-hash";
/// Which algorithm wrote [`NODEPOOL_HASH`].
pub const NODEPOOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// On a NodeClaim: RFC 3339 time at which draining ends whatever is still there.
pub const NODECLAIM_TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// On a NodeClaim: whether `minValues` had to be lowered for it.
pub const NODECLAIM_MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// On a NodeClaim: comma list of DRA drivers whose devices its pods were given.
pub const REQUESTED_DRA_DRIVERS: &str = "karpenter.sh/requested-dra-drivers";
/// On a NodeClaim: bound of the drain before a reboot.
pub const REBOOT_TERMINATION_GRACE_PERIOD: &str = "karpenter.sh/reboot-termination-grace-period";
/// On a NodeClaim: boot id before the reboot.
pub const REBOOT_PRE_BOOT_ID: &str = "karpenter.sh/reboot-pre-boot-id";
/// On a Pod: 32-bit eviction cost.
pub const DISRUPTION_COST: &str = "karpenter.sh/disruption-cost";
/// On a Pod, of Kubernetes: read for the eviction cost when [`DISRUPTION_COST`] is absent.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// On a NodeClaim: a NodeOverlay changed its price.
pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
/// On a NodeClaim: a NodeOverlay changed its capacity.
pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";
/// On an EC2NodeClass and its NodeClaims: hash of the class fields whose change is drift.
pub const EC2NODECLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
/// Which algorithm wrote [`EC2NODECLASS_HASH`].
pub const EC2NODECLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
/// On a NodeClaim: "true" once the tags that need the node's name are on the instance.
pub const TAGGED: &str = "karpenter.k8s.aws/tagged";
/// On a NodeClaim: "true" once the instance's cluster name tag is assured.
pub const CLUSTER_NAME_TAGGED: &str = "compatibility.karpenter.k8s.aws/cluster-name-tagged";
/// On a NodeClaim: instance profile it was launched with, which garbage collection must keep.
pub const INSTANCE_PROFILE_NAME: &str = "karpenter.k8s.aws/instance-profile-name";
/// On an EC2NodeClass: how the NVIDIA DRA driver shares GPUs.
pub const NVIDIA_CONSUMABLE_CAPACITY: &str = "karpenter.k8s.aws/nvidia-consumable-capacity";
/// On a Kubernetes object: the KWOK controller runs it, as a kubelet would.
pub const KWOK_NODE: &str = "kwok.x-k8s.io/node";

/// The value that switches an annotation on.
pub const TRUE: &str = "true";
