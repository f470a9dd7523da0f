//! An embedded cluster: in-process Kubernetes API, scheduler, kubelet and EC2 stand-ins.

pub mod apiserver;
pub mod clock;
mod quantity;
