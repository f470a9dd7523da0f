//! EC2 as a [`crate::CloudProvider`].
//!
//! ```text
//! resolve   network · images (alias) · profile · cluster      → status and conditions of a class
//! catalogs  types · market (prices, marks)                    → what can be bought
//! launcher  template (userdata) · fleet · attempts            → a machine for a claim
//! instances batch                                             → reading and ending machines
//! clients   one place for timeouts, retries, error reading and the count of calls
//! ```

mod alias;
mod batch;
mod catalogs;
mod clients;
mod cluster;
mod error;
mod filters;
mod fleet;
mod hash;
mod images;
mod instances;
mod launcher;
mod market;
mod network;
mod profile;
mod provider;
mod resolve;
mod settings;
mod tags;
mod template;
mod types;
mod userdata;

pub use provider::AwsProvider;
pub use settings::{AwsSettings, TestEndpoint};
