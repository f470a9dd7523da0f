//! Structural schemas of CustomResourceDefinitions: defaulting, pruning, validation, and which lists are maps.
//!
//! CEL rules (`x-kubernetes-validations`) are **not** evaluated here; a real API server does.

mod validate;

use serde_json::{Map, Value};

use super::error::FieldError;
use super::structure::ListKind;

/// A schema, ready to use. Absent = anything goes.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    root: Option<Value>,
}

impl Schema {
    pub(crate) fn compile(schema: &Value) -> Self {
        Self { root: schema.is_object().then(|| schema.clone()) }
    }

    /// The schema as written.
    pub(crate) fn raw(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    /// Fills in defaults and removes fields that the schema does not know; returns the paths of the removed ones.
    pub(crate) fn admit(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        if let Some(root) = &self.root {
            default(root, object);
            prune(root, object, "", true, &mut unknown);
        }
        unknown
    }

    /// Checks types, required fields, enums, patterns and bounds.
    pub(crate) fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(root) = &self.root {
            validate::check(root, object, "", true, &mut errors);
        }
        errors
    }

    /// How the list or map at a path of field names merges; `None` when the schema does not say.
    pub(crate) fn list_kind(&self, path: &[&str]) -> Option<ListKind> {
        let mut at = self.root.as_ref()?;
        for part in path {
            while at["type"] == "array" {
                at = &at["items"];
            }
            at = match at["properties"].get(*part) {
                Some(next) => next,
                None => at.get("additionalProperties").filter(|v| v.is_object())?,
            };
        }
        Some(match at["type"].as_str() {
            Some("array") => match at["x-kubernetes-list-type"].as_str() {
                Some("map") => {
                    let keys = at["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                    ListKind::Map(keys.filter_map(Value::as_str).map(str::to_owned).collect())
                }
                Some("set") => ListKind::Set,
                _ => ListKind::Atomic,
            },
            Some("object") if at["x-kubernetes-map-type"] == "atomic" => ListKind::AtomicMap,
            _ => return None,
        })
    }
}

fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(preset) = property.get("default")
                    && fields.get(name).is_none_or(|v| v.is_null() && property["nullable"] != Value::Bool(true))
                {
                    fields.insert(name.clone(), preset.clone());
                }
                if let Some(child) = fields.get_mut(name) {
                    default(property, child);
                }
            }
            if let Some(additional) = schema.get("additionalProperties").filter(|v| v.is_object()) {
                fields.values_mut().for_each(|child| default(additional, child));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| default(&schema["items"], item)),
        _ => {}
    }
}

fn prune(schema: &Value, value: &mut Value, path: &str, root: bool, unknown: &mut Vec<String>) {
    if schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true) {
        return;
    }
    match value {
        Value::Object(fields) => prune_fields(schema, fields, path, root, unknown),
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                prune(&schema["items"], item, &format!("{path}[{at}]"), false, unknown);
            }
        }
        _ => {}
    }
}

fn prune_fields(schema: &Value, fields: &mut Map<String, Value>, path: &str, root: bool, unknown: &mut Vec<String>) {
    if let Some(additional) = schema.get("additionalProperties").filter(|v| v.is_object()) {
        fields.iter_mut().for_each(|(name, child)| prune(additional, child, &join(path, name), false, unknown));
        return;
    }
    let Some(properties) = schema["properties"].as_object() else {
        // A leaf that says `type: object` and nothing else keeps nothing; quantities (`int-or-string`) are not objects.
        return;
    };
    let always = |name: &str| root && matches!(name, "apiVersion" | "kind" | "metadata");
    fields.retain(|name, _| {
        let keep = always(name) || properties.contains_key(name);
        if !keep {
            unknown.push(join(path, name));
        }
        keep
    });
    for (name, child) in fields.iter_mut().filter(|(name, _)| !always(name)) {
        if let Some(property) = properties.get(name) {
            prune(property, child, &join(path, name), false, unknown);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
