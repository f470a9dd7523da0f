//! What can go wrong with a plugin while it answers.

use crate::status::FaultCounts;

/// Why a plugin gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It trapped: a panic, stack overflow, a bad pointer.
    #[error("trapped: {0}")]
    Trap(String),
    /// It used up its fuel.
    #[error("ran out of fuel ({0} units for this call)")]
    Fuel(u64),
    /// It took longer than the deadline of the call.
    #[error("took longer than {0} ms")]
    Deadline(u64),
    /// The plugins of this round took longer than the deadline of the round.
    #[error("was not asked: the plugins of this round took longer than {0} ms")]
    RoundDeadline(u64),
    /// It asked for more memory, tables or instances than it may have.
    #[error("asked for more memory than its {0} MiB")]
    Memory(u64),
    /// Its answer has the wrong length, or is too large.
    #[error("answered with a wrong length: {0}")]
    Length(String),
    /// Its answer holds an index out of range, or not of the row's own set.
    #[error("answered with a bad index: {0}")]
    Index(String),
    /// It returned an error.
    #[error("returned an error: {0}")]
    Policy(String),
}

impl Fault {
    /// Name of the kind, for metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Trap(_) => "trap",
            Self::Fuel(_) => "fuel",
            Self::Deadline(_) | Self::RoundDeadline(_) => "deadline",
            Self::Memory(_) => "memory",
            Self::Length(_) => "length",
            Self::Index(_) => "index",
            Self::Policy(_) => "policy_error",
        }
    }

    /// The plugin is to blame: counts for its breaker.
    pub(crate) fn is_its_own(&self) -> bool {
        !matches!(self, Self::RoundDeadline(_))
    }
}

impl FaultCounts {
    pub(crate) fn count(&mut self, fault: &Fault) {
        let counter = match fault {
            Fault::Trap(_) => &mut self.trap,
            Fault::Fuel(_) => &mut self.fuel,
            Fault::Deadline(_) | Fault::RoundDeadline(_) => &mut self.deadline,
            Fault::Memory(_) => &mut self.memory,
            Fault::Length(_) => &mut self.length,
            Fault::Index(_) => &mut self.index,
            Fault::Policy(_) => &mut self.policy_error,
        };
        *counter += 1;
    }

    /// Faults of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.trap + self.fuel + self.deadline + self.memory + self.length + self.index + self.policy_error
    }
}
