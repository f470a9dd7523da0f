//! An embedded cluster: in-process Kubernetes API, scheduler, kubelet and EC2 stand-ins.
//!
//! ```text
//! kube::Client ─┐            ┌─► scheduler ─ kubelets ─ Deployment/ReplicaSet/DaemonSet/PDB controllers
//! kubectl ──────┴► apiserver ┤
//!                            └◄─ cloud (EC2 stand-in): launched instance ─boot─► Node
//! ```
//!
//! All time is tokio's, so a paused clock pauses all of it; [`clock::Clock`] gives simulated delays a speed.

mod actor;
pub mod apiserver;
pub mod clock;
pub mod cloud;
pub mod cluster;
pub mod controllers;
pub mod kubelet;
mod quantity;
pub mod scheduler;

pub use cluster::Cluster;

#[cfg(test)]
mod tests;
