//! Node selectors and node affinity, with the checks of karpenter-algorithms §1.5.

use std::sync::Arc;

use mortise_api::labels;
use mortise_engine::pod::Term;
use mortise_engine::requirement::{Operator, Requirement};

use super::Converter;
use crate::intern::Strings;
use crate::objects::{Expression, NodeSelector, NodeSelectorTerm, PreferredTerm};

/// Longest label value and longest name part of a label key.
const MAX_PART: usize = 63;
/// Longest DNS prefix of a label key.
const MAX_PREFIX: usize = 253;

/// A requirement from key, operator and values; the message names the field and what is wrong.
///
/// # Errors
/// An unknown operator, an invalid or restricted key, invalid values, or a number of values the operator does not take.
pub fn requirement(strings: &mut Strings, field: &str, from: &Expression) -> Result<Requirement, String> {
    let key = labels::normalize(&from.key);
    let operator = match from.operator.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        "Gte" => Operator::Gte,
        "Lte" => Operator::Lte,
        other => {
            return Err(format!(
                "{field}: operator {other:?} of key {key:?} is unknown; use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte"
            ));
        }
    };
    if !qualified_name(key) {
        return Err(format!("{field}: {key:?} is not a label key; write name or domain/name"));
    }
    if labels::is_restricted(key) {
        return Err(format!("{field}: label {key:?} is restricted and cannot be selected on"));
    }
    match operator {
        Operator::In if from.values.is_empty() => {
            return Err(format!("{field}: key {key:?} with operator In needs a value"));
        }
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => {
            let number = match from.values.as_slice() {
                [one] => one.parse::<i64>().ok().filter(|n| *n >= 0),
                _ => None,
            };
            if number.is_none() {
                return Err(format!(
                    "{field}: key {key:?} with operator {} needs exactly one integer that is not negative, found {:?}",
                    from.operator, from.values
                ));
            }
        }
        _ => {}
    }
    if let Some(bad) = from.values.iter().find(|v| !label_value(v)) {
        return Err(format!(
            "{field}: {bad:?} is not a label value for {key:?} (at most {MAX_PART} of A-Z a-z 0-9 . _ -, alphanumeric at both ends)"
        ));
    }
    let markets = labels::capacity_type::ALL;
    if key == labels::CAPACITY_TYPE
        && operator == Operator::In
        && !from.values.iter().any(|v| markets.contains(&v.as_str()))
    {
        return Err(format!(
            "{field}: {key:?} must allow at least one of {}, found {:?}",
            markets.join(", "),
            from.values
        ));
    }
    let values = match operator {
        Operator::Exists | Operator::DoesNotExist => Vec::new(),
        _ => from.values.iter().map(|v| strings.get(v)).collect(),
    };
    Ok(Requirement { key: strings.get(key), operator, values, min_values: None })
}

/// The terms of a node selector, and what of it cannot be expressed. A term with a problem is left out of the terms.
pub fn selector_terms(strings: &mut Strings, field: &str, from: &NodeSelector) -> (Vec<Term>, Vec<String>) {
    let mut terms = Vec::with_capacity(from.node_selector_terms.len());
    let mut problems = Vec::new();
    for t in &from.node_selector_terms {
        match term(strings, field, t) {
            // A term without requirements matches no node.
            Ok(reqs) if reqs.is_empty() => {}
            Ok(reqs) => terms.push(reqs),
            Err(found) => problems.extend(found),
        }
    }
    if terms.is_empty() && problems.is_empty() {
        problems.push(format!("{field}: has only empty terms, which match no node; write a matchExpressions entry"));
    }
    (terms, problems)
}

fn term(strings: &mut Strings, field: &str, from: &NodeSelectorTerm) -> Result<Term, Vec<String>> {
    let mut problems = Vec::new();
    if !from.match_fields.is_empty() {
        problems.push(format!("{field}: matchFields is not acted on; use matchExpressions"));
    }
    let mut reqs = Vec::with_capacity(from.match_expressions.len());
    for expression in &from.match_expressions {
        match requirement(strings, field, expression) {
            Ok(r) => reqs.push(r),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(reqs) } else { Err(problems) }
}

impl Converter {
    /// Preferred terms, heaviest first. A term that cannot be expressed prefers nothing and is left out.
    pub(super) fn preferred(&mut self, from: &[PreferredTerm]) -> Vec<(i32, Term)> {
        let field = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";
        let mut terms: Vec<(i32, Term)> = from
            .iter()
            .filter_map(|p| Some((p.weight, term(&mut self.strings, field, &p.preference).ok()?)))
            .filter(|(_, t)| !t.is_empty())
            .collect();
        terms.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        terms
    }

    /// An In requirement for one `key: value` of a node selector, checked as such.
    pub(super) fn selector_entry(&mut self, key: &str, value: &str) -> Result<(Arc<str>, Arc<str>), String> {
        let entry = Expression { key: key.to_owned(), operator: "In".to_owned(), values: vec![value.to_owned()] };
        let checked = requirement(&mut self.strings, "spec.nodeSelector", &entry)?;
        Ok((checked.key, self.strings.get(value)))
    }
}

/// A label key: an optional DNS subdomain and a slash, then a name.
pub(super) fn qualified_name(key: &str) -> bool {
    let name = match key.split_once('/') {
        Some((prefix, name)) => {
            let part = |p: &str| {
                !p.is_empty()
                    && !p.starts_with('-')
                    && !p.ends_with('-')
                    && p.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            };
            if prefix.is_empty() || prefix.len() > MAX_PREFIX || !prefix.split('.').all(part) {
                return false;
            }
            name
        }
        None => key,
    };
    !name.is_empty() && label_value(name)
}

/// A label value: empty, or up to 63 characters with alphanumeric ends.
pub(super) fn label_value(value: &str) -> bool {
    let bytes = value.as_bytes();
    let ends = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    bytes.len() <= MAX_PART
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}
