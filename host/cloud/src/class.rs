//! What resolving and finalising a node class brings.

use std::sync::Arc;
use std::time::Duration;

use mortise_api::ec2nodeclass::EC2NodeClassStatus;

/// Outcome of one part of a node class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Condition True.
    Ready,
    /// Condition False.
    NotReady {
        /// Condition reason.
        reason: Arc<str>,
        /// Field, what was found, what to do.
        message: String,
    },
    /// Condition Unknown: it depends on another part.
    Unknown {
        /// Condition reason.
        reason: Arc<str>,
        /// What it waits for.
        message: String,
    },
    /// The provider could not be asked now. The condition keeps what it said before (Unknown with this reason if it
    /// said nothing), so that a throttled call does not stop launches.
    Unasked {
        /// Reason when nothing was said before.
        reason: Arc<str>,
        /// What happened.
        message: String,
    },
}

/// One condition of a node class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionOutcome {
    /// Condition type: `SubnetsReady`, `SecurityGroupsReady`, `AMIsReady`, `InstanceProfileReady`,
    /// `ValidationSucceeded`, `PlacementGroupReady`.
    pub condition: &'static str,
    /// Outcome.
    pub verdict: Verdict,
}

/// A node class as found at the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassResolution {
    /// Status to write, without its conditions: subnets, security groups, AMIs, instance profile. A part that could not
    /// be asked keeps its old value.
    pub status: EC2NodeClassStatus,
    /// One outcome per part, in the order in which they are written. `Ready` is the caller's: True when all are.
    pub conditions: Vec<ConditionOutcome>,
    /// When to resolve again even though nothing changed.
    pub requeue_after: Duration,
}

impl ClassResolution {
    /// All parts that a launch depends on are True. Capacity reservations are none of them.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.conditions
            .iter()
            .filter(|c| c.condition != mortise_api::condition::ec2nodeclass::CAPACITY_RESERVATIONS_READY)
            .all(|c| c.verdict == Verdict::Ready)
    }

    /// First part that is not True: its condition type, reason and message.
    #[must_use]
    pub fn first_trouble(&self) -> Option<(&'static str, &str, &str)> {
        self.conditions.iter().find_map(|c| match &c.verdict {
            Verdict::Ready => None,
            Verdict::NotReady { reason, message }
            | Verdict::Unknown { reason, message }
            | Verdict::Unasked { reason, message } => Some((c.condition, &**reason, message.as_str())),
        })
    }
}

/// Progress of removing what was made for a node class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finalize {
    /// Everything is gone; the finalizer may be removed.
    Done,
    /// NodeClaims still use it.
    WaitingForClaims {
        /// Names, sorted.
        claims: Vec<Arc<str>>,
    },
}
