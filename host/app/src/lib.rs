//! The `mortise` binary as a library: settings, telemetry, metrics, health, the provisioning loop, the actuators and the
//! command line.
//!
//! [`controller::run`] is what the binary, the demo and the tests all call.

pub mod cli;
pub mod clock;
pub mod controller;
pub mod health;
pub mod metrics;
pub mod patch;
pub mod quantity;
pub mod queue;
pub mod serve;
pub mod settings;
pub mod telemetry;

mod actuate;
mod buffers;
mod catalogs;
mod context;
mod events;
mod notes;
mod observe;
mod overlays;
mod pipeline;
mod route;
mod shared;
mod snapshots;
mod write;
