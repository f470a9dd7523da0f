//! Node → [`NodeRecord`].

use std::sync::Arc;

use super::{Converter, opt_unix_ms, resources};
use crate::objects::Node;
use crate::record::{NodeCondition, NodeRecord};

impl Converter {
    /// What is kept of a node. Quantities that do not parse count as zero (the kubelet writes them, so none should).
    pub fn node(&mut self, node: &Node) -> NodeRecord {
        let meta = &node.metadata;
        let mut problems = Vec::new();
        let capacity = resources(&node.status.capacity, "status.capacity", &mut problems);
        let allocatable = resources(&node.status.allocatable, "status.allocatable", &mut problems);
        if !problems.is_empty() {
            tracing::warn!(Node = meta.name, problems = problems.join("; "), "node has quantities that do not parse");
        }
        NodeRecord {
            name: self.strings.get(meta.name.as_deref().unwrap_or_default()),
            uid: Arc::from(meta.uid.as_deref().unwrap_or_default()),
            resource_version: Arc::from(meta.resource_version.as_deref().unwrap_or_default()),
            provider_id: node.spec.provider_id.as_deref().filter(|p| !p.is_empty()).map(|p| self.strings.get(p)),
            labels: self.map(meta.labels.as_ref()),
            annotations: self.map(meta.annotations.as_ref()),
            taints: node.spec.taints.iter().filter_map(|t| self.taint(t)).collect(),
            unschedulable: node.spec.unschedulable,
            capacity,
            allocatable,
            conditions: node
                .status
                .conditions
                .iter()
                .map(|c| NodeCondition {
                    kind: self.strings.get(&c.kind),
                    status: self.strings.get(&c.status),
                    reason: self.strings.get(&c.reason),
                    since_unix_ms: opt_unix_ms(c.last_transition_time.as_ref()),
                })
                .collect(),
            finalizers: meta.finalizers.iter().flatten().map(|f| self.strings.get(f)).collect(),
            owners: meta
                .owner_references
                .iter()
                .flatten()
                .filter(|o| o.kind == "NodeClaim" && o.api_version.starts_with("karpenter.sh/"))
                .map(|o| self.strings.get(&o.name))
                .collect(),
            boot_id: Arc::from(node.status.node_info.boot_id.as_str()),
            created_unix_ms: opt_unix_ms(meta.creation_timestamp.as_ref()).unwrap_or_default(),
            deletion_unix_ms: opt_unix_ms(meta.deletion_timestamp.as_ref()),
        }
    }
}
