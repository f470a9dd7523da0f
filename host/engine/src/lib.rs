//! Scheduling and disruption decisions of Mortise, as pure functions of one [`snapshot::Snapshot`].
//!
//! ```text
//! Snapshot (Arc, immutable) ─► schedule::schedule ─► Schedule { claims, nominations, unplaced, … }
//!          PolicyRound ◄─asks─┘
//! ```
//!
//! No async, no I/O, no clock, no randomness: whatever varies is an argument, so the same snapshot and policies give
//! the same bytes in the controller, in `mortise simulate`, in a replay, in a benchmark and under a fuzzer.
//!
//! Boundary types (`pod`, `node`, `nodepool`, `catalog`, `snapshot`) speak in strings, as the edges do; they are interned
//! to symbols and columns when a round is prepared.

mod batch;
pub mod catalog;
pub mod decision;
pub mod device;
pub mod disrupt;
pub mod explain;
pub mod launch;
pub mod node;
pub mod nodepool;
pub mod overlay;
pub mod pod;
pub mod policy;
pub mod quantity;
mod rank;
pub mod requirement;
pub mod schedule;
pub mod selector;
pub mod snapshot;
pub mod static_pool;
mod symbol;
pub mod taint;
