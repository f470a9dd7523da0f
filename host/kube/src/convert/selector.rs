//! Label selectors of PodDisruptionBudgets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::intern::Strings;
use crate::objects::LabelSelector;

/// One requirement on labels.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    In(Arc<str>, Vec<Arc<str>>),
    NotIn(Arc<str>, Vec<Arc<str>>),
    Exists(Arc<str>),
    DoesNotExist(Arc<str>),
}

/// A label selector. The default matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// `None` matches nothing; no rules match everything.
    rules: Option<Vec<Rule>>,
}

impl Selector {
    /// From the API type: a missing selector matches nothing, an empty one everything. An unknown operator makes the
    /// whole selector match everything: for a budget that is the careful reading.
    pub fn new(strings: &mut Strings, from: Option<&LabelSelector>) -> Self {
        let Some(from) = from else { return Self { rules: None } };
        let mut rules: Vec<Rule> =
            from.match_labels.iter().map(|(k, v)| Rule::In(strings.get(k), vec![strings.get(v)])).collect();
        for e in &from.match_expressions {
            let key = strings.get(&e.key);
            let values = e.values.iter().map(|v| strings.get(v)).collect();
            rules.push(match e.operator.as_str() {
                "In" => Rule::In(key, values),
                "NotIn" => Rule::NotIn(key, values),
                "Exists" => Rule::Exists(key),
                "DoesNotExist" => Rule::DoesNotExist(key),
                _ => return Self { rules: Some(Vec::new()) },
            });
        }
        Self { rules: Some(rules) }
    }

    /// Whether these labels are selected.
    pub fn matches(&self, labels: &BTreeMap<Arc<str>, Arc<str>>) -> bool {
        self.rules.as_ref().is_some_and(|rules| {
            rules.iter().all(|rule| match rule {
                Rule::In(key, values) => labels.get(key).is_some_and(|v| values.contains(v)),
                Rule::NotIn(key, values) => labels.get(key).is_none_or(|v| !values.contains(v)),
                Rule::Exists(key) => labels.contains_key(key),
                Rule::DoesNotExist(key) => !labels.contains_key(key),
            })
        })
    }
}
