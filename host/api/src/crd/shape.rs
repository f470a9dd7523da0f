//! From the schema that schemars derives to the one that an API server should be given.

use serde_json::{Map, Value};

/// Drops what kube writes into a CRD without need.
pub(super) fn crd(crd: &mut Value) {
    if let Some(names) = crd.pointer_mut("/spec/names").and_then(Value::as_object_mut) {
        names.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    }
    if let Some(version) = crd.pointer_mut("/spec/versions/0").and_then(Value::as_object_mut) {
        version.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    }
}

/// Makes a schema what users expect of it, all the way down:
/// - no `nullable`: a field is given or left out, a null counts as left out;
/// - no `title`, a name of a Rust type that means nothing to a user;
/// - a description is one paragraph, however it is broken in the source.
pub(super) fn schema(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("nullable");
            if object.get("title").is_some_and(Value::is_string) {
                object.remove("title");
            }
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            // kube empties the branches of an anyOf, so the two types are written after it.
            if object.get("x-kubernetes-int-or-string").is_some_and(|flag| flag == true) {
                object.insert("anyOf".into(), serde_json::json!([{"type": "integer"}, {"type": "string"}]));
                return;
            }
            // Rust's own integer widths are not formats of OpenAPI.
            if object.get("format").and_then(Value::as_str).is_some_and(|f| f.starts_with("uint")) {
                object.remove("format");
            }
            for (_, value) in object.iter_mut() {
                self::schema(value);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(self::schema),
        _ => {}
    }
}

/// The schema at a path such as `spec.requirements[].key`.
pub(super) fn place<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Map<String, Value>> {
    let mut here = schema;
    for segment in path.split('.').filter(|segment| !segment.is_empty()) {
        let (name, item) = match segment.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (segment, false),
        };
        here = here.get_mut("properties")?.get_mut(name)?;
        if item {
            here = here.get_mut("items")?;
        }
    }
    here.as_object_mut()
}
