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

mod host;
mod native;
mod source;
mod status;

pub use host::{ActivePolicies, Admitted, HostError, HostSettings, PolicyHost};
pub use native::NativePolicies;
pub use source::{ConfigMapData, Rejection};
pub use status::{FaultCounts, PluginState, PluginStatus, PolicyStatus, RejectedRevision};
