//! Validation of a value against a structural schema, with the messages of the API server.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use regex::Regex;
use serde_json::Value;

use super::join;
use crate::apiserver::error::FieldError;

pub(super) fn check(schema: &Value, value: &Value, path: &str, root: bool, errors: &mut Vec<FieldError>) {
    if value.is_null() && schema["nullable"] == Value::Bool(true) {
        return;
    }
    if !type_matches(schema, value) {
        let wanted = schema["type"].as_str().unwrap_or("integer or string");
        errors.push(FieldError {
            field: path.to_owned(),
            reason: "FieldValueTypeInvalid",
            message: format!(
                "Invalid value: \"{}\": {path} in body must be of type {wanted}: \"{}\"",
                type_name(value),
                type_name(value)
            ),
        });
        return;
    }
    check_enum(schema, value, path, errors);
    match value {
        Value::String(text) => check_string(schema, text, path, errors),
        Value::Number(number) => check_number(schema, number.as_f64().unwrap_or_default(), path, errors),
        Value::Array(items) => check_array(schema, items, path, errors),
        Value::Object(_) => check_object(schema, value, path, root, errors),
        _ => {}
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(part, value, path, root, errors);
    }
    if let Some(parts) =
        schema["anyOf"].as_array().filter(|_| schema["x-kubernetes-int-or-string"] != Value::Bool(true))
        && !parts.iter().any(|part| holds(part, value, root))
    {
        errors.push(invalid(path, value, "must validate at least one schema (anyOf)"));
    }
    if let Some(parts) = schema["oneOf"].as_array()
        && parts.iter().filter(|part| holds(part, value, root)).count() != 1
    {
        errors.push(invalid(path, value, "must validate one and only one schema (oneOf)"));
    }
    if let Some(part) = schema.get("not")
        && holds(part, value, root)
    {
        errors.push(invalid(path, value, "must not validate the schema (not)"));
    }
}

fn holds(schema: &Value, value: &Value, root: bool) -> bool {
    let mut errors = Vec::new();
    check(schema, value, "", root, &mut errors);
    errors.is_empty()
}

fn invalid(path: &str, value: &Value, why: &str) -> FieldError {
    let found = match value {
        Value::Object(_) | Value::Array(_) => format!("\"{}\"", type_name(value)),
        other => other.to_string(),
    };
    FieldError {
        field: path.to_owned(),
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {found}: {path} in body {why}"),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn type_matches(schema: &Value, value: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == Value::Bool(true) {
        return value.is_string() || value.is_i64() || value.is_u64();
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0),
        Some("number") => value.is_number(),
        _ => true,
    }
}

fn check_enum(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let list: Vec<String> = allowed.iter().map(Value::to_string).collect();
        errors.push(FieldError {
            field: path.to_owned(),
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {value}: supported values: {}", list.join(", ")),
        });
    }
}

fn check_string(schema: &Value, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    let value = Value::String(text.to_owned());
    let length = text.chars().count() as u64;
    if let Some(max) = schema["maxLength"].as_u64().filter(|max| length > *max) {
        errors.push(FieldError {
            field: path.to_owned(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {max} bytes"),
        });
    }
    if let Some(min) = schema["minLength"].as_u64().filter(|min| length < *min) {
        errors.push(invalid(path, &value, &format!("should be at least {min} chars long")));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && !pattern_matches(pattern, text)
    {
        errors.push(invalid(path, &value, &format!("should match '{pattern}'")));
    }
}

/// Patterns are few and compiling one costs more than everything else here.
static PATTERNS: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());

/// A pattern that does not compile (lookahead, say) is not held against the value.
fn pattern_matches(pattern: &str, text: &str) -> bool {
    let mut patterns = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
    if !patterns.contains_key(pattern) {
        patterns.insert(pattern.to_owned(), Regex::new(pattern).ok());
    }
    patterns.get(pattern).and_then(Option::as_ref).is_none_or(|regex| regex.is_match(text))
}

fn check_number(schema: &Value, number: f64, path: &str, errors: &mut Vec<FieldError>) {
    let value = serde_json::Number::from_f64(number)
        .map_or(Value::Null, |n| if number.fract() == 0.0 { Value::from(number as i64) } else { Value::Number(n) });
    if let Some(max) = schema["maximum"].as_f64().filter(|max| number > *max) {
        errors.push(invalid(path, &value, &format!("should be less than or equal to {max}")));
    }
    if let Some(min) = schema["minimum"].as_f64().filter(|min| number < *min) {
        errors.push(invalid(path, &value, &format!("should be greater than or equal to {min}")));
    }
}

fn check_array(schema: &Value, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let found = Value::Array(Vec::new());
    if let Some(max) = schema["maxItems"].as_u64().filter(|max| items.len() as u64 > *max) {
        errors.push(FieldError {
            field: path.to_owned(),
            reason: "FieldValueTooMany",
            message: format!("Too many: {}: must have at most {max} items", items.len()),
        });
    }
    if let Some(min) = schema["minItems"].as_u64().filter(|min| (items.len() as u64) < *min) {
        errors.push(invalid(path, &found, &format!("should have at least {min} items")));
    }
    for (at, item) in items.iter().enumerate() {
        check(&schema["items"], item, &format!("{path}[{at}]"), false, errors);
    }
    let keys: Vec<&str> =
        schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let set = schema["x-kubernetes-list-type"] == "set";
    if set || !keys.is_empty() {
        let key_of = |item: &Value| -> Value {
            if set { item.clone() } else { keys.iter().map(|key| item[*key].clone()).collect() }
        };
        let mut seen: Vec<Value> = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let key = key_of(item);
            if seen.contains(&key) {
                errors.push(FieldError {
                    field: format!("{path}[{at}]"),
                    reason: "FieldValueDuplicate",
                    message: format!("Duplicate value: {key}"),
                });
            }
            seen.push(key);
        }
    }
}

fn check_object(schema: &Value, value: &Value, path: &str, root: bool, errors: &mut Vec<FieldError>) {
    let Some(fields) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            errors.push(FieldError {
                field: join(path, name),
                reason: "FieldValueRequired",
                message: "Required value".to_owned(),
            });
        }
    }
    if let Some(max) = schema["maxProperties"].as_u64().filter(|max| fields.len() as u64 > *max) {
        errors.push(FieldError {
            field: path.to_owned(),
            reason: "FieldValueTooMany",
            message: format!("Too many: {}: must have at most {max} items", fields.len()),
        });
    }
    if let Some(min) = schema["minProperties"].as_u64().filter(|min| (fields.len() as u64) < *min) {
        errors.push(invalid(path, value, &format!("should have at least {min} properties")));
    }
    for (name, child) in fields {
        if root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let property = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        if let Some(property) = property.filter(|p| p.is_object()) {
            check(property, child, &join(path, name), false, errors);
        }
    }
}
