//! What can go wrong with a call.

use std::time::Duration;

/// What happens to a call that a fault matches.
#[derive(Debug, Clone)]
pub enum Effect {
    /// AWS refuses: HTTP status, error code, message. The call is not carried out.
    Refuse {
        /// HTTP status, 400 or 503 say.
        status: u16,
        /// AWS's error code.
        code: String,
        /// AWS's message.
        message: String,
    },
    /// The answer takes this much longer; the call is carried out at once.
    Late(Duration),
    /// The call is carried out, then the connection closes without an answer.
    LoseReply,
    /// The connection closes before the call is carried out.
    LoseRequest,
}

/// A fault: which calls, how often, what.
#[derive(Debug, Clone)]
pub struct Fault {
    operation: String,
    value: Option<String>,
    times: Option<u32>,
    effect: Effect,
}

impl Fault {
    /// Every call of an operation.
    pub fn on(operation: &str, effect: Effect) -> Self {
        Self { operation: operation.to_owned(), value: None, times: None, effect }
    }

    /// Only the next `times` calls.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Only calls that have this text as the value of a parameter (a pool's name in a tag, an instance id).
    #[must_use]
    pub fn with_value(mut self, value: &str) -> Self {
        self.value = Some(value.to_owned());
        self
    }

    /// Uses the fault up once if it matches.
    pub(super) fn take(&mut self, call: &super::Call) -> Option<Effect> {
        if self.operation != call.operation || self.times == Some(0) {
            return None;
        }
        if let Some(value) = &self.value
            && !call.parameters.values().any(|found| found == value)
        {
            return None;
        }
        if let Some(times) = &mut self.times {
            *times -= 1;
        }
        Some(self.effect.clone())
    }
}
