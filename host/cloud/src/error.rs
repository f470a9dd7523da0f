//! What can go wrong at the provider, apart from launches (see [`crate::launch::LaunchError`]).

use std::time::Duration;

/// Error of a provider call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// The instance (or other object asked for) does not exist, or no longer.
    #[error("{what} not found")]
    NotFound {
        /// What was asked for, e.g. a provider id.
        what: String,
    },
    /// The node class cannot be used as it is; retrying does not help until it changes.
    #[error("{message}")]
    Class {
        /// Field, what was found, what to do.
        message: String,
    },
    /// The caller passed something that is not of this provider (a foreign provider id, say).
    #[error("{message}")]
    Invalid {
        /// Field, what was found, what to do.
        message: String,
    },
    /// The provider refuses for lack of permission.
    #[error("{call} is not permitted: {message}")]
    Unauthorized {
        /// API call.
        call: &'static str,
        /// Provider's words.
        message: String,
    },
    /// Throttled, timed out, unreachable or failing inside: worth another try.
    #[error("{call} failed: {message}")]
    Transient {
        /// API call.
        call: &'static str,
        /// Provider's error code, or what happened to the connection.
        message: String,
        /// Least time to wait, when the provider or our own limiter says so.
        retry_after: Option<Duration>,
    },
    /// Any other refusal.
    #[error("{call} failed: {code}: {message}")]
    Api {
        /// API call.
        call: &'static str,
        /// Provider's error code.
        code: String,
        /// Provider's words.
        message: String,
    },
}

impl CloudError {
    /// The object asked for does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Another try may well succeed with nothing changed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Transient { .. })
    }
}
