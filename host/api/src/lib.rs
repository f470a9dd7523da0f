//! The public contract as types: NodePool, NodeClaim, EC2NodeClass, labels, annotations, taints, CRD YAML.
