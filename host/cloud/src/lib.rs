//! The provider edge: the [`CloudProvider`] trait and, behind the `aws` feature, EC2.
//!
//! ```text
//! EC2NodeClass ─resolve──► ClassResolution (status and conditions)
//! EC2NodeClass ─catalog──► Arc<Catalog>      generation moves with types, prices, subnets, stock
//! LaunchRequest ─launch──► Instance | LaunchError
//! ```
//!
//! Nothing in the trait names a cloud vendor's SDK: the demo and the tests implement it in memory.
//! What every provider shares lives here too: instance type arithmetic ([`catalog_build`]), the table of list prices
//! ([`price`]) and the memory of failed offerings ([`unavailable`]).

#[cfg(feature = "aws")]
pub mod aws;
pub mod catalog_build;
pub mod class;
pub mod error;
pub mod instance;
pub mod launch;
pub mod observe;
pub mod price;
pub mod provider;
pub mod unavailable;

pub use class::{ClassResolution, ConditionOutcome, Finalize, Verdict};
pub use error::CloudError;
pub use instance::{Instance, InstanceState};
pub use launch::{LaunchError, LaunchRequest};
pub use observe::{CallObserver, Unobserved};
pub use provider::CloudProvider;
