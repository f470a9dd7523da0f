//! Finalizers.

/// On NodeClaims and Nodes: drain, terminate the instance, then let the object go.
pub const TERMINATION: &str = "karpenter.sh/termination";
/// On EC2NodeClasses: wait for its NodeClaims, delete profiles and launch templates.
pub const EC2NODECLASS_TERMINATION: &str = "karpenter.k8s.aws/termination";
