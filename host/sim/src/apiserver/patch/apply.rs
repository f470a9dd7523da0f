//! Server-side apply: the fields of the applied configuration become the manager's, fields it applied before and no
//! longer names go away unless another manager owns them, and a field that another manager holds with another value is
//! a conflict unless the request forces it.
//!
//! Limits: ownership is by leaf field, items of keyed lists and members of sets, as `FieldsV1` has it; a manager's entry
//! is not converted between API versions; defaults that the server fills in are owned by nobody.

use serde_json::{Map, Value};

use crate::apiserver::error::{ApiError, ApiResult};
use crate::apiserver::fieldset::{FieldSet, display, key_element, lookup_path, remove_path};
use crate::apiserver::managed::{self, Entry, Writer};
use crate::apiserver::structure::{ListKind, Structure};

/// The object after an apply. `current` = `None` when it does not exist yet.
pub(crate) fn apply(
    structure: Structure<'_>,
    current: Option<&Value>,
    config: &Value,
    writer: &Writer,
    force: bool,
) -> ApiResult<Value> {
    if config["metadata"]
        .get("managedFields")
        .is_some_and(|m| !m.is_null() && m.as_array().is_none_or(|l| !l.is_empty()))
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let mut config = config.clone();
    if let Some(metadata) = config["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let applied = FieldSet::of(structure, &config);
    let mut object = current.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let mut entries = managed::read(&object);

    let members = applied.members();
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|e| !e.is(writer, true)) {
        let mut lost = FieldSet::default();
        for path in members.iter().filter(|path| entry.fields.has(path)) {
            let is_item = path.last().is_some_and(|e| e.starts_with("k:"));
            if is_item || lookup_path(&object, path) == lookup_path(&config, path) {
                continue;
            }
            conflicts.push((describe(entry), display(path)));
            lost.union(&managed::single(path));
        }
        entry.fields.subtract(&lost);
    }
    if !conflicts.is_empty() && !force {
        return Err(ApiError::apply_conflict(&conflicts));
    }

    let previous = entries.iter().position(|e| e.is(writer, true)).map(|at| entries.remove(at));
    if let Some(previous) = &previous {
        let mut gone = previous.fields.members();
        gone.retain(|path| !applied.contains_any(path) && !entries.iter().any(|e| e.fields.contains_any(path)));
        // Items first: once its key field is gone, an item can no longer be found.
        gone.sort_by_key(Vec::len);
        for path in &gone {
            remove_path(&mut object, path);
        }
    }
    merge(structure, &mut object, &config, &mut Vec::new());

    for entry in &mut entries {
        entry.fields.retain_existing(&object);
    }
    let mut entry = Entry::new(writer, true, applied);
    if let Some(previous) = previous.filter(|p| p.fields == entry.fields) {
        entry.time = previous.time;
    }
    entries.push(entry);
    managed::write(&mut object, entries);
    Ok(object)
}

fn describe(entry: &Entry) -> String {
    let mut out = entry.manager.clone();
    if !entry.apply {
        out.push_str(&format!("\" using \"{}", entry.api_version));
    }
    out
}

fn merge(structure: Structure<'_>, target: &mut Value, config: &Value, path: &mut Vec<String>) {
    let refs: Vec<&str> = path.iter().map(String::as_str).collect();
    match config {
        Value::Object(fields) if target.is_object() && !structure.is_atomic_map(&refs) => {
            if let Some(into) = target.as_object_mut() {
                for (name, value) in fields {
                    path.push(name.clone());
                    merge(structure, into.entry(name).or_insert(Value::Null), value, path);
                    path.pop();
                }
            }
        }
        Value::Array(items) if target.is_array() => {
            let kind = structure.apply_kind(&refs);
            let Some(current) = target.as_array_mut() else { return };
            match kind {
                Some(ListKind::Map(keys)) => {
                    for item in items {
                        let key = key_element(&keys, item);
                        match current.iter_mut().find(|existing| key_element(&keys, existing) == key) {
                            Some(existing) => merge(structure, existing, item, path),
                            None => current.push(item.clone()),
                        }
                    }
                }
                Some(ListKind::Set) => {
                    for item in items {
                        if !current.contains(item) {
                            current.push(item.clone());
                        }
                    }
                }
                _ => *current = items.clone(),
            }
        }
        other => *target = other.clone(),
    }
}

/// Whether two states are the same but for bookkeeping: the resource version and the times of managed fields.
pub(crate) fn same_content(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let rest = |m: &Map<String, Value>| m.len() - usize::from(m.contains_key("metadata"));
    rest(a) == rest(b)
        && a.iter().all(|(name, value)| name == "metadata" || b.get(name) == Some(value))
        && same_metadata(a.get("metadata").unwrap_or(&Value::Null), b.get("metadata").unwrap_or(&Value::Null))
}

fn same_metadata(a: &Value, b: &Value) -> bool {
    const OWN: &[&str] = &["resourceVersion", "managedFields"];
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let rest = |m: &Map<String, Value>| m.len() - OWN.iter().filter(|name| m.contains_key(**name)).count();
    let entries =
        |m: &Map<String, Value>| -> usize { m.get("managedFields").and_then(Value::as_array).map_or(0, Vec::len) };
    let owned = |m: &Map<String, Value>, at: usize, field: &str| -> Value {
        m.get("managedFields").map(|list| list[at][field].clone()).unwrap_or_default()
    };
    rest(a) == rest(b)
        && a.iter().all(|(name, value)| OWN.contains(&name.as_str()) || b.get(name) == Some(value))
        && entries(a) == entries(b)
        && (0..entries(a)).all(|at| {
            ["manager", "operation", "subresource", "apiVersion", "fieldsV1"]
                .iter()
                .all(|field| owned(a, at, field) == owned(b, at, field))
        })
}
