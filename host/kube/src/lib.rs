//! The Kubernetes edge: watches, cluster state, conversions, status writes, Events, lease, policy ConfigMap.
//!
//! ```text
//! API server ─► watch::Watches ─► mpsc<watch::Event> ─► state::ClusterState ─► engine Snapshot
//!                (narrow objects → small records)        (apply → Vec<Change>)
//! ```
//!
//! Everything the API server sends is decoded into structs that hold only what is used ([`objects`]), turned into
//! records of interned strings and shared pod shapes ([`record`], [`convert`]) and kept in [`state`]. Nothing here
//! decides anything, and nothing here panics on what the API server or a user wrote.

pub mod backoff;
pub mod batch;
pub mod client;
pub mod convert;
pub mod events;
pub mod intern;
pub mod lease;
pub mod mirror;
pub mod objects;
pub mod policies;
pub mod record;
pub mod state;
pub mod status;
pub mod watch;

#[cfg(test)]
mod testing;
