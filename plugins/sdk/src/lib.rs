//! Guest crate for Mortise policies in Rust.
//!
//! A policy is a value that is configured once per round and answers hooks with columns of integers:
//!
//! ```
//! use mortise_plugin_sdk::prelude::*;
//!
//! /// Makes every spot offering a tenth dearer.
//! struct SpotRisk;
//!
//! impl Plugin for SpotRisk {
//!     const NAME: &'static str = "spot-risk";
//!     const VERSION: &'static str = "0.1.0";
//!     fn configure(_: &Config) -> Result<Self, Invalid> {
//!         Ok(Self)
//!     }
//! }
//!
//! impl Score for SpotRisk {
//!     fn evaluate(&mut self, batch: &ClaimBatch<'_>, base: &[i64]) -> Result<Vec<i64>, PolicyError> {
//!         Ok(batch.map(base, |c| if c.capacity() == Capacity::Spot { c.cost + c.cost / 10 } else { c.cost }))
//!     }
//! }
//!
//! export_plugin!(SpotRisk: Score);
//! ```
//!
//! `cargo xtask plugins build` makes a component of it. It needs no Wasm to be tested: see [`testing`].
//! The contract, with units, is `wit/0.1/policy.wit`; [`types`] are its records as Rust.

#![no_std]

#[doc(hidden)]
pub extern crate alloc;
// A native build (tests, native twins) takes its allocator and panic handler from std.
#[cfg(not(target_arch = "wasm32"))]
extern crate std;

mod batch;
#[doc(hidden)]
pub mod bindings;
mod catalog;
pub mod config;
mod export;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod glue;
pub mod log;
pub mod metrics;
mod plugin;
mod rows;
#[cfg(all(target_arch = "wasm32", feature = "runtime"))]
mod runtime;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod verdict;

pub use batch::{Candidate, ClaimBatch, NodeBatch, PodBatch};
pub use catalog::{COST_DROPPED, COST_UNKNOWN, Capacity, PRICE_UNKNOWN, u32s, u64s};
pub use plugin::{Consolidate, Filter, Plugin, Score};
pub use rows::{Candidates, Rows};
pub use verdict::Drops;

/// The records of the contract.
pub mod types {
    pub use crate::bindings::consolidate::exports::mortise::policy::consolidate::{Nodes, Outcomes};
    pub use crate::bindings::filter::exports::mortise::policy::filter::Verdict;
    pub use crate::bindings::lifecycle::exports::mortise::policy::lifecycle::Diagnostic;
    pub use crate::bindings::lifecycle::mortise::policy::types::{
        Catalog, Choices, Claims, Column, ExtraColumn, Fleet, Groups, InstanceTypes, Nodepools, Offerings, Pods,
        PolicyError, Round,
    };
}

/// What a plugin usually needs.
pub mod prelude {
    pub use alloc::borrow::ToOwned;
    pub use alloc::format;
    pub use alloc::string::{String, ToString};
    pub use alloc::vec;
    pub use alloc::vec::Vec;

    pub use crate::config::{Config, Invalid};
    pub use crate::types::{Catalog, Diagnostic, Fleet, Groups, PolicyError, Round, Verdict};
    pub use crate::{
        COST_DROPPED, COST_UNKNOWN, Candidate, Capacity, ClaimBatch, Consolidate, Drops, Filter, NodeBatch,
        PRICE_UNKNOWN, Plugin, PodBatch, Score, export_plugin, log, metrics,
    };
}
