//! The AWS side: a small client for setting things up and looking at them, the moto server, and a stand-in account.

mod account;
mod client;
mod moto;

pub use account::{Account, CLUSTER_NAME, SSM_PREFIX, SSM_STORED_PREFIX, ZONES};
pub use client::{AwsClient, Xml};
pub use moto::Moto;

/// The region of the stand-in account.
pub const REGION: &str = "us-east-1";
/// The account number that moto gives everybody.
pub const ACCOUNT: &str = "123456789012";

/// A running or terminated instance as EC2 describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// `i-…`
    pub id: String,
    /// `running`, `terminated`, …
    pub state: String,
    /// `m6i.large`
    pub instance_type: String,
    /// `us-east-1a`
    pub zone: String,
    /// `spot` or `on-demand`.
    pub capacity_type: String,
    /// Image it was started from.
    pub image: String,
    /// Private DNS name, the node's name on EKS.
    pub private_dns: String,
    /// Private address.
    pub private_ip: String,
    /// Tags.
    pub tags: std::collections::BTreeMap<String, String>,
}

impl Instance {
    /// What a node of this instance has as its `spec.providerID`.
    pub fn provider_id(&self) -> String {
        format!("aws:///{}/{}", self.zone, self.id)
    }

    /// Whether it still costs money.
    pub fn lives(&self) -> bool {
        matches!(self.state.as_str(), "pending" | "running" | "stopping" | "stopped")
    }
}
