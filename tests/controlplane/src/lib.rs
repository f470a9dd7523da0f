//! End-to-end tests on a real Kubernetes control plane and a real AWS API endpoint.
//!
//! Nothing here stands in for the API server, the scheduler, the controllers or Helm: they are the real programs, built
//! once per machine by `tests/tools.sh`. What cannot be had without machines is played by programs that keep to the same
//! interfaces: KWOK writes node and pod status as kubelets do, moto answers the AWS APIs, [`proxy`] in front of it adds
//! what moto lacks (allocation strategies, client tokens, faults), and [`joiner`] turns instances into nodes.
//!
//! [`cluster::Cluster`] holds all of them together; `cargo run -p mortise-controlplane-tests --bin cluster` keeps one up
//! for debugging.

pub mod audit;
pub mod aws;
pub mod cluster;
pub mod control_plane;
pub mod controller;
pub mod helm;
pub mod joiner;
pub mod kubectl;
pub mod kwok;
pub mod measure;
pub mod process;
pub mod proxy;
pub mod tools;
pub mod wait;
pub mod workspace;
