//! The policy host: runs policies as sandboxed components, with native twins as fallback.
//!
//! ```text
//! ConfigMap ─► admit (parse, size, digest, imports, compile, instantiate, schema, configure, golden batch)
//!                 │ all good                                   │ anything wrong
//!                 ▼                                            ▼
//!            ArcSwap<ActivePolicies>                      Rejections by key path; what runs stays
//!                 │ one per round
//!                 ▼
//!            PolicySet::begin ─► PolicyRound: fresh instance per plugin, limits per call, fallback per plugin
//! ```

mod active;
mod admit;
mod bindings;
mod clock;
mod columns;
mod config;
mod fault;
mod guest;
mod host;
mod limits;
mod native;
mod plugin;
mod round;
mod sandbox;
mod schema;
mod slot;
mod source;
mod status;

pub use active::ActivePolicies;
pub use fault::Fault;
pub use host::{Admitted, HostError, HostSettings, PolicyHost};
pub use limits::Limits;
pub use native::NativePolicies;
pub use slot::OnError;
pub use source::{ConfigMapData, Rejection};
pub use status::{FaultCounts, PluginState, PluginStatus, PolicyStatus, RejectedRevision};
