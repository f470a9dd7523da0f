//! The public contract as types: NodePool and NodeClaim (`karpenter.sh/v1`), EC2NodeClass (`karpenter.k8s.aws/v1`),
//! the labels, annotations, taints and finalizers that mean something, and the CRDs made from all that.
//!
//! No client and no decision lives here. Every field of the API is present, whether it is acted on or not: what a
//! field not acted on yet does to its object is the controller's to say, in a condition.
//!
//! Reading never fails on an object that an API server with these CRDs accepted, nor on one of a newer schema as far as
//! possible: unknown fields are left out, unknown words of an enumeration are kept as `Other`. Whether an object makes
//! sense is the business of [`validation`], whose findings are for the user to read.
//!
//! NodeOverlay (`karpenter.sh/v1alpha1`) and CapacityBuffer (`autoscaling.x-k8s.io/v1beta1`) belong here too, as
//! `nodeoverlay` and `capacitybuffer` beside [`nodepool`], with a table of rules in [`crd`] each.

pub mod annotations;
pub mod condition;
pub mod crd;
pub mod duration;
pub mod ec2nodeclass;
pub mod finalizers;
pub mod hash;
pub mod labels;
pub mod nodeclaim;
pub mod nodepool;
mod open_enum;
pub mod requirement;
pub mod taints;
pub mod validation;

pub use ec2nodeclass::EC2NodeClass;
pub use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
pub use nodeclaim::NodeClaim;
pub use nodepool::NodePool;
