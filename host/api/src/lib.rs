//! The public contract as types: NodePool and NodeClaim (`karpenter.sh/v1`), NodeOverlay (`karpenter.sh/v1alpha1`),
//! EC2NodeClass (`karpenter.k8s.aws/v1`), CapacityBuffer (`autoscaling.x-k8s.io/v1beta1`), the labels, annotations, taints and finalizers that mean something, and the CRDs made from all that.
//!
//! No client and no decision lives here. Every field of the API is present, whether it is acted on or not: what a
//! field not acted on yet does to its object is the controller's to say, in a condition.
//!
//! Reading never fails on an object that an API server with these CRDs accepted, nor on one of a newer schema as far as
//! possible: unknown fields are left out, unknown words of an enumeration are kept as `Other`. Whether an object makes
//! sense is the business of [`validation`], whose findings are for the user to read.

pub mod annotations;
pub mod capacitybuffer;
pub mod condition;
pub mod crd;
pub mod duration;
pub mod ec2nodeclass;
pub mod finalizers;
pub mod hash;
pub mod labels;
pub mod nodeclaim;
pub mod nodeoverlay;
pub mod nodepool;
mod open_enum;
pub mod requirement;
pub mod taints;
pub mod validation;

pub use capacitybuffer::CapacityBuffer;
pub use ec2nodeclass::EC2NodeClass;
pub use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
pub use nodeclaim::NodeClaim;
pub use nodeoverlay::NodeOverlay;
pub use nodepool::NodePool;
