//! EC2 as a [`crate::CloudProvider`].

mod clients;
mod error;
mod filters;
mod market;
mod network;
mod settings;
mod types;

pub use settings::{AwsSettings, TestEndpoint};
