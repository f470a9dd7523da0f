//! Label selectors: which pods or namespaces are meant.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::requirement::{Operator, Requirement};

/// A `LabelSelector`, `matchLabels` written as `In` of one value. All requirements must hold; none selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct LabelSelector {
    /// `In`, `NotIn`, `Exists` and `DoesNotExist` on label keys; any other operator matches nothing.
    pub requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Selects what has all these labels.
    pub fn labels<K: Into<Arc<str>>, V: Into<Arc<str>>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        let one = |(key, value): (K, V)| Requirement {
            key: key.into(),
            operator: Operator::In,
            values: vec![value.into()],
            min_values: None,
        };
        Self { requirements: labels.into_iter().map(one).collect() }
    }

    /// Whether these labels are selected.
    pub fn matches(&self, labels: &BTreeMap<Arc<str>, Arc<str>>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match requirement.operator {
                Operator::In => value.is_some_and(|value| requirement.values.contains(value)),
                Operator::NotIn => value.is_none_or(|value| !requirement.values.contains(value)),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
                _ => false,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_requirements_must_hold() {
        let labels = BTreeMap::from([(Arc::from("app"), Arc::from("web")), (Arc::from("tier"), Arc::from("front"))]);
        let selector = |key: &str, operator, values: &[&str]| LabelSelector {
            requirements: vec![Requirement::new(key, operator, values.iter().copied())],
        };
        assert!(LabelSelector::default().matches(&labels));
        assert!(LabelSelector::labels([("app", "web"), ("tier", "front")]).matches(&labels));
        assert!(!LabelSelector::labels([("app", "web"), ("tier", "back")]).matches(&labels));
        for (key, operator, values, expected) in [
            ("app", Operator::In, &["db", "web"][..], true),
            ("app", Operator::In, &[], false),
            ("app", Operator::NotIn, &["web"], false),
            ("new", Operator::NotIn, &["web"], true),
            ("app", Operator::Exists, &[], true),
            ("new", Operator::Exists, &[], false),
            ("app", Operator::DoesNotExist, &[], false),
            ("new", Operator::DoesNotExist, &[], true),
            ("app", Operator::Gt, &["1"], false),
        ] {
            assert_eq!(selector(key, operator, values).matches(&labels), expected, "{key} {operator:?} {values:?}");
        }
    }
}
