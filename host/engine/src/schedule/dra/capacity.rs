//! Shares of devices that several claims may have at once.

use std::sync::Arc;

use crate::device::{Amounts, Capacity, Device, SharePolicy};
use crate::quantity::Quantity;

/// What a claim that asks for `asked` takes of each capacity of the device; `None` if it cannot have that.
pub(super) fn share(device: &Device, asked: &Amounts) -> Option<Vec<(Arc<str>, Quantity)>> {
    if asked.keys().any(|name| !device.capacity.contains_key(name)) {
        return None;
    }
    device
        .capacity
        .iter()
        .map(|(name, capacity)| Some((Arc::clone(name), part(capacity, asked.get(name).copied())?)))
        .collect()
}

/// The share of one capacity: the amount asked for rounded up to what the policy admits, or its default.
fn part(capacity: &Capacity, asked: Option<Quantity>) -> Option<Quantity> {
    let Some(policy) = &capacity.policy else { return Some(asked.unwrap_or(capacity.value)) };
    let Some(asked) = asked else { return Some(policy.default.unwrap_or(capacity.value)) };
    let rounded = match (&policy.range, &*policy.values) {
        (Some((Some(least), _, step)), _) if asked > *least => match step {
            Some(step) => asked.round_up(*least, *step)?,
            None => asked,
        },
        (Some((Some(least), ..)), _) => *least,
        (Some(_), _) | (None, []) => asked,
        (None, values) => values.iter().copied().find(|value| asked <= *value).unwrap_or(asked),
    };
    admits(policy, rounded).then_some(rounded)
}

fn admits(policy: &SharePolicy, share: Quantity) -> bool {
    if policy.default == Some(share) {
        return true;
    }
    match (&policy.range, &*policy.values) {
        (Some((_, most, _)), _) => most.is_none_or(|most| share <= most),
        (None, []) => true,
        (None, values) => values.contains(&share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap()
    }

    #[test]
    fn shares_are_rounded_up_to_what_the_policy_admits() {
        let range = |least: &str, most: &str, step: Option<&str>| SharePolicy {
            default: Some(quantity("2Gi")),
            range: Some((Some(quantity(least)), Some(quantity(most)), step.map(quantity))),
            ..SharePolicy::default()
        };
        let values = SharePolicy { values: vec![quantity("1Gi"), quantity("4Gi")], ..SharePolicy::default() };
        for (policy, asked, expected) in [
            (None, Some("3Gi"), Some("3Gi")),
            (None, None, Some("40Gi")),
            (Some(range("1Gi", "8Gi", None)), None, Some("2Gi")),
            (Some(range("1Gi", "8Gi", None)), Some("512Mi"), Some("1Gi")),
            (Some(range("1Gi", "8Gi", None)), Some("9Gi"), None),
            (Some(range("1Gi", "8Gi", Some("2Gi"))), Some("4Gi"), Some("5Gi")),
            (Some(range("1Gi", "8Gi", Some("0"))), Some("4Gi"), None),
            (Some(values.clone()), Some("2Gi"), Some("4Gi")),
            (Some(values.clone()), Some("5Gi"), None),
            (Some(values), None, Some("40Gi")),
        ] {
            let capacity = Capacity { value: quantity("40Gi"), policy: policy.clone() };
            assert_eq!(part(&capacity, asked.map(quantity)), expected.map(quantity), "{policy:?} {asked:?}");
        }
    }

    #[test]
    fn a_capacity_that_the_device_lacks_cannot_be_had() {
        let device = Device {
            capacity: [(Arc::from("memory"), Capacity { value: quantity("1Gi"), policy: None })].into(),
            ..Device::default()
        };
        assert!(share(&device, &[(Arc::from("cores"), quantity("1"))].into()).is_none());
        assert_eq!(share(&device, &Amounts::new()), Some(vec![(Arc::from("memory"), quantity("1Gi"))]));
    }
}
