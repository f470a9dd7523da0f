//! EC2 in process: real instance types and on-demand prices, modelled spot prices, launches that take time, machines
//! that join the cluster as nodes.
//!
//! [`SimCloud`] is for the embedded cluster: a machine boots and registers its Node, whose kubelet stand-in makes it
//! Ready. [`KwokCloud`] is for a real cluster with KWOK: the Node appears at once with the annotation that makes KWOK
//! run it. Both are the same [`Ec2`] with other settings.
//!
//! What is modelled: spot prices (28–42 % of on-demand, fixed per type and zone by the seed), stock (all of it there
//! unless a hook says otherwise), subnets, security groups and images (any selector finds them; their ids are made up).

mod class;
mod ec2;
mod market;
mod node;
mod table;

use std::sync::Arc;
use std::time::Duration;

pub use self::ec2::{Ec2, Launched};
use crate::clock::Clock;

/// The EC2 of the embedded cluster.
pub type SimCloud = Ec2;
/// The EC2 of a real cluster whose nodes KWOK runs.
pub type KwokCloud = Ec2;

/// Settings of [`Ec2`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Region; prices of regions other than us-east-1 are estimates.
    pub region: Arc<str>,
    /// Zones in which every subnet selector finds a subnet: letters after the region.
    pub zones: Vec<char>,
    /// Seed of spot prices, latencies and ids.
    pub seed: u64,
    /// From the request to the answer of a launch, least and most.
    pub launch_latency: (Duration, Duration),
    /// From the launch to the Node object, least and most.
    pub boot: (Duration, Duration),
    /// From the call to terminated.
    pub terminate: Duration,
    /// The Node is one for KWOK: it appears with the launch, and its kubelet is not ours.
    pub kwok: bool,
    /// Clock and speed.
    pub clock: Clock,
}

impl Options {
    /// As EC2 behaves: a launch answers within a second or two, a node registers after half a minute.
    pub fn sim(seed: u64, clock: Clock) -> Self {
        let seconds = Duration::from_secs_f64;
        Self {
            region: "us-east-1".into(),
            zones: vec!['a', 'b', 'c', 'd'],
            seed,
            launch_latency: (seconds(0.6), seconds(1.8)),
            boot: (seconds(18.0), seconds(34.0)),
            terminate: seconds(6.0),
            kwok: false,
            clock,
        }
    }

    /// Without any latency, for measuring the controller on a real API server with KWOK.
    pub fn kwok(seed: u64) -> Self {
        let none = (Duration::ZERO, Duration::ZERO);
        Self {
            launch_latency: none,
            boot: none,
            terminate: Duration::ZERO,
            kwok: true,
            ..Self::sim(seed, Clock::new(1.0))
        }
    }
}
