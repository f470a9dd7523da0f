//! Keys of the values, as dotted paths.

use std::collections::BTreeSet;

use serde_json::Value;

/// Keys of the schema down to what is open: an object that allows any key is one key.
pub(super) fn of_schema(schema: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    walk_schema(schema, "", &mut keys);
    // Helm's own, for parent charts.
    keys.remove("global");
    keys
}

fn walk_schema(schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
    match closed(schema) {
        Some(properties) => {
            for (name, schema) in properties {
                walk_schema(schema, &join(path, name), keys);
            }
        }
        None => {
            keys.insert(path.to_owned());
        }
    }
}

/// The properties of an object that allows no others.
fn closed(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    (schema.get("additionalProperties") == Some(&Value::Bool(false)))
        .then(|| schema.get("properties")?.as_object())
        .flatten()
}

/// Keys of the defaults, as deep as the schema is closed. Keys that the schema does not know are gone into wholly.
pub(super) fn of_defaults(defaults: &Value, schema: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    walk_defaults(defaults, Some(schema), "", &mut keys);
    keys
}

fn walk_defaults(value: &Value, schema: Option<&Value>, path: &str, keys: &mut BTreeSet<String>) {
    match (value.as_object(), schema.and_then(closed)) {
        (Some(object), Some(properties)) => {
            for (name, value) in object {
                walk_defaults(value, properties.get(name), &join(path, name), keys);
            }
        }
        _ => {
            keys.insert(path.to_owned());
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Whether a path leads to an object on the way to known keys, or into a value that is open below.
pub(super) fn is_inside(path: &str, keys: &BTreeSet<String>) -> bool {
    keys.iter().any(|key| key.starts_with(&format!("{path}.")) || path.starts_with(&format!("{key}.")))
}

/// Last parts of the keys under a prefix.
pub(super) fn under(keys: &BTreeSet<String>, prefix: &str) -> BTreeSet<String> {
    keys.iter().filter_map(|key| key.strip_prefix(prefix)).map(str::to_owned).collect()
}

/// A default as the environment would hold it; lists as comma lists.
pub(super) fn text(defaults: &Value, path: &str) -> Option<String> {
    let value = path.split('.').try_fold(defaults, |value, name| value.get(name))?;
    Some(match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    })
}
