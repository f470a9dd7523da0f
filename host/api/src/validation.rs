//! Checks that the schema cannot make, worded for the user: which field, what was found, what to do.
//!
//! The API server has refused most nonsense by the time an object gets here, but not all: rules on list items that
//! CEL cannot afford, values whose meaning the schema does not know, objects that come from a file without any API
//! server. Errors make the object unusable; warnings do not.

mod ec2nodeclass;
mod hint;
mod kubelet;
mod nodeoverlay;
mod nodepool;
mod syntax;

use std::fmt;

pub use ec2nodeclass::{ClassError, ec2_node_class};
pub use hint::nearest;
pub use nodeoverlay::node_overlay;
pub use nodepool::node_pool;
pub use syntax::{is_label_value, is_qualified_name, schedule_error};

/// One thing that is wrong, or suspicious, with one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// Path of the field, as in `spec.template.spec.requirements[0].key`.
    pub field: String,
    /// What is there; empty when the point is that nothing is.
    pub found: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl FieldError {
    fn new(field: impl Into<String>, found: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { field: field.into(), found: found.to_string(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.found.is_empty() {
            write!(f, "{}: {}", self.field, self.message)
        } else {
            write!(f, "{}: {:?}: {}", self.field, self.found, self.message)
        }
    }
}

/// What validation found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Make the object unusable.
    pub errors: Vec<FieldError>,
    /// For the user to know.
    pub warnings: Vec<FieldError>,
}

impl Findings {
    /// Whether the object can be used.
    pub fn is_usable(&self) -> bool {
        self.errors.is_empty()
    }

    /// All errors as one condition message.
    pub fn message(&self) -> String {
        joined(&self.errors)
    }

    fn error(&mut self, field: impl Into<String>, found: impl fmt::Display, message: impl Into<String>) {
        self.errors.push(FieldError::new(field, found, message));
    }

    fn warn(&mut self, field: impl Into<String>, found: impl fmt::Display, message: impl Into<String>) {
        self.warnings.push(FieldError::new(field, found, message));
    }
}

/// Errors as one line.
pub fn joined(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
