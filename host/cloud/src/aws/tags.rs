//! Tags: what everything carries, and what links a machine to its NodeClaim.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use mortise_api::EC2NodeClass;

pub(crate) const NODEPOOL: &str = "karpenter.sh/nodepool";
pub(crate) const NODECLAIM: &str = "karpenter.sh/nodeclaim";
pub(crate) const NODECLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
pub(crate) const CLUSTER: &str = "eks:eks-cluster-name";
/// UID of the NodeClaim. Ours: Karpenter tags only after registration, and so cannot find a launch whose answer was lost.
pub(crate) const CLAIM_UID: &str = "mortise.dev/nodeclaim-uid";

/// Tags of everything made for a class and pool: the class's own, and those that permissions and listing go by.
pub(crate) fn common(class: &EC2NodeClass, cluster: &str, nodepool: &str) -> BTreeMap<String, String> {
    let mut tags = class.spec.tags.clone();
    let name = class.metadata.name.clone().unwrap_or_default();
    tags.insert(format!("kubernetes.io/cluster/{cluster}"), "owned".to_owned());
    tags.insert(NODEPOOL.to_owned(), nodepool.to_owned());
    tags.insert(CLUSTER.to_owned(), cluster.to_owned());
    tags.insert(NODECLASS.to_owned(), name);
    tags
}

pub(crate) fn list(tags: &BTreeMap<String, String>) -> Vec<Tag> {
    tags.iter().map(|(k, v)| Tag::builder().key(k).value(v).build()).collect()
}

pub(crate) fn specification(resource: ResourceType, tags: &BTreeMap<String, String>) -> TagSpecification {
    TagSpecification::builder().resource_type(resource).set_tags(Some(list(tags))).build()
}
