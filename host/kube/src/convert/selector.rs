//! Label selectors.

use std::sync::Arc;

use mortise_engine::requirement::{Operator, Requirement};
use mortise_engine::selector::LabelSelector;

use super::affinity::{label_value, qualified_name};
use crate::intern::Strings;
use crate::objects;
use crate::record::Map;

/// A label selector; the message names the field and what is wrong. No requirements select everything.
///
/// # Errors
/// An unknown operator, an invalid key or value, or a number of values that the operator does not take.
pub fn label_selector(
    strings: &mut Strings,
    field: &str,
    from: &objects::LabelSelector,
) -> Result<LabelSelector, String> {
    let mut requirements = Vec::with_capacity(from.match_labels.len() + from.match_expressions.len());
    for (key, value) in &from.match_labels {
        check(field, key, std::slice::from_ref(value))?;
        requirements.push(equals(strings.get(key), strings.get(value)));
    }
    for expression in &from.match_expressions {
        let (key, values) = (&expression.key, &expression.values);
        check(field, key, values)?;
        let (operator, takes_values) = match expression.operator.as_str() {
            "In" => (Operator::In, true),
            "NotIn" => (Operator::NotIn, true),
            "Exists" => (Operator::Exists, false),
            "DoesNotExist" => (Operator::DoesNotExist, false),
            other => {
                return Err(format!(
                    "{field}: operator {other:?} of key {key:?} is unknown; use In, NotIn, Exists or DoesNotExist"
                ));
            }
        };
        if takes_values == values.is_empty() {
            let what = if takes_values { "needs a value" } else { "takes no values" };
            return Err(format!("{field}: key {key:?} with operator {} {what}", expression.operator));
        }
        let values = values.iter().map(|value| strings.get(value)).collect();
        requirements.push(Requirement { key: strings.get(key), operator, values, min_values: None });
    }
    Ok(LabelSelector { requirements })
}

fn check(field: &str, key: &str, values: &[String]) -> Result<(), String> {
    if !qualified_name(key) {
        return Err(format!("{field}: {key:?} is not a label key; write name or domain/name"));
    }
    match values.iter().find(|value| !label_value(value)) {
        Some(bad) => Err(format!("{field}: {bad:?} is not a label value for {key:?}")),
        None => Ok(()),
    }
}

/// `key = value`.
pub(crate) fn equals(key: Arc<str>, value: Arc<str>) -> Requirement {
    Requirement { key, operator: Operator::In, values: vec![value], min_values: None }
}

/// Adds what `matchLabelKeys` (`In`) or `mismatchLabelKeys` (`NotIn`) ask for: the pod's own values of these labels. A key
/// that the selector has already was merged by the API server as the pod was created, and labels may have changed since;
/// users cannot write it in both places. A key that the pod does not have asks for nothing.
pub(super) fn merge_own_labels(
    strings: &mut Strings,
    selector: &mut LabelSelector,
    keys: &[String],
    operator: Operator,
    labels: &Map,
) {
    let before = selector.requirements.len();
    for key in keys {
        let merged = selector.requirements.iter().take(before).any(|r| *r.key == **key);
        if let Some(value) = labels.get(key.as_str()).filter(|_| !merged) {
            let key = strings.get(key);
            selector.requirements.push(Requirement { operator, ..equals(key, Arc::clone(value)) });
        }
    }
}
