//! Constraints over the devices of a claim.

use super::stock::{Entry, Profile};
use crate::device::Attribute;

/// What the devices of a matchAttribute constraint have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Common {
    /// This value.
    Value(Attribute),
    /// A value that shows when the node runs: the group of devices bound to it, by index.
    Bound(usize),
}

impl Common {
    /// What a device has of an attribute; `None` = neither a value nor a binding. `templates`: the profile it is from.
    pub(super) fn of(entry: &Entry<'_>, attribute: &str, templates: Option<&Profile<'_>>) -> Option<Self> {
        let own = || attribute.split_once('/').filter(|(domain, _)| *domain == &**entry.driver).map(|(_, name)| name);
        let attributes = &entry.device.attributes;
        let value = attributes.get(attribute).or_else(|| attributes.get(own()?));
        match value {
            Some(value) => Some(Self::Value(value.clone())),
            None => templates?.bound(attribute, entry).map(Self::Bound),
        }
    }
}
