//! Strategic merge patch: lists merge by their key, and directives (`$patch`, `$deleteFromPrimitiveList`,
//! `$setElementOrder`, `$retainKeys`) say what else is to happen.

use serde_json::{Map, Value};

use crate::apiserver::error::{ApiError, ApiResult};
use crate::apiserver::structure::{ListKind, Structure};

/// Merges a patch into an object.
pub(crate) fn merge(structure: Structure<'_>, object: &mut Value, patch: &Value) -> ApiResult<()> {
    merge_value(structure, object, patch, &mut Vec::new())
}

fn merge_value(structure: Structure<'_>, target: &mut Value, patch: &Value, path: &mut Vec<String>) -> ApiResult<()> {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return Ok(());
    };
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            *target = Value::Object(plain(patch));
            return Ok(());
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => return Err(ApiError::bad_request(format!("Unknown patch type found: {other}"))),
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return Ok(()) };
    if let Some(keep) = patch.get("$retainKeys").and_then(Value::as_array) {
        fields.retain(|name, _| keep.iter().any(|k| k == name));
    }
    for (name, items) in patch.iter() {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/")
            && let Some(Value::Array(current)) = fields.get_mut(list)
        {
            current.retain(|item| !items.as_array().is_some_and(|gone| gone.contains(item)));
        }
    }
    for (name, value) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        path.push(name.clone());
        merge_field(structure, fields, name, value, path)?;
        path.pop();
    }
    for (name, order) in patch.iter() {
        if let Some(list) = name.strip_prefix("$setElementOrder/")
            && let (Some(Value::Array(items)), Some(order)) = (fields.get_mut(list), order.as_array())
        {
            path.push(list.to_owned());
            let key = merge_key(structure, path);
            path.pop();
            reorder(items, order, key.as_deref());
        }
    }
    Ok(())
}

fn merge_field(
    structure: Structure<'_>,
    fields: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    path: &mut Vec<String>,
) -> ApiResult<()> {
    match value {
        Value::Null => _ = fields.remove(name),
        Value::Object(object) => {
            if object.get("$patch").and_then(Value::as_str) == Some("delete") {
                fields.remove(name);
            } else {
                let child = fields.entry(name).or_insert_with(|| Value::Object(Map::new()));
                merge_value(structure, child, value, path)?;
            }
        }
        Value::Array(items) => {
            let refs: Vec<&str> = path.iter().map(String::as_str).collect();
            let kind = structure.merge_kind(&refs);
            let child = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            if !child.is_array() {
                *child = Value::Array(Vec::new());
            }
            let Some(current) = child.as_array_mut() else { return Ok(()) };
            match kind {
                Some(ListKind::Map(keys)) => {
                    let key = keys.first().map(String::as_str).unwrap_or_default().to_owned();
                    merge_list(structure, current, items, &key, path)?;
                }
                Some(ListKind::Set) => {
                    for item in items {
                        if !current.contains(item) {
                            current.push(item.clone());
                        }
                    }
                }
                _ => *current = items.iter().map(plain_value).collect(),
            }
        }
        scalar => _ = fields.insert(name.to_owned(), scalar.clone()),
    }
    Ok(())
}

fn merge_list(
    structure: Structure<'_>,
    current: &mut Vec<Value>,
    items: &[Value],
    key: &str,
    path: &mut Vec<String>,
) -> ApiResult<()> {
    if items.iter().any(|item| item["$patch"] == "replace") {
        *current = items.iter().filter(|item| item["$patch"] != "replace").map(plain_value).collect();
        return Ok(());
    }
    for item in items {
        let Some(id) = item.get(key) else {
            let list = path.join(".");
            return Err(ApiError::bad_request(format!("map in list {list} does not contain its merge key \"{key}\"")));
        };
        let found = current.iter().position(|existing| existing.get(key) == Some(id));
        if item["$patch"] == "delete" {
            current.retain(|existing| existing.get(key) != Some(id));
        } else if let Some(existing) = found.and_then(|at| current.get_mut(at)) {
            merge_value(structure, existing, item, path)?;
        } else {
            let mut fresh = Value::Object(Map::new());
            merge_value(structure, &mut fresh, item, path)?;
            current.push(fresh);
        }
    }
    Ok(())
}

fn merge_key(structure: Structure<'_>, path: &[String]) -> Option<String> {
    let refs: Vec<&str> = path.iter().map(String::as_str).collect();
    match structure.merge_kind(&refs) {
        Some(ListKind::Map(keys)) => keys.into_iter().next(),
        _ => None,
    }
}

/// Puts listed items into the given order; the others keep their place behind the listed item they stood behind.
fn reorder(items: &mut Vec<Value>, order: &[Value], key: Option<&str>) {
    let rank = |item: &Value| -> Option<usize> {
        match key {
            Some(key) => order.iter().position(|o| o.get(key) == item.get(key)),
            None => order.iter().position(|o| o == item),
        }
    };
    let mut last = 0;
    let mut ranked: Vec<((usize, usize), Value)> = Vec::with_capacity(items.len());
    for (at, item) in items.drain(..).enumerate() {
        let place = match rank(&item) {
            Some(rank) => {
                last = rank + 1;
                (rank + 1, 0)
            }
            None => (last, at + 1),
        };
        ranked.push((place, item));
    }
    ranked.sort_by_key(|(place, _)| *place);
    items.extend(ranked.into_iter().map(|(_, item)| item));
}

/// Without directives.
fn plain(fields: &Map<String, Value>) -> Map<String, Value> {
    fields.iter().filter(|(name, _)| !name.starts_with('$')).map(|(n, v)| (n.clone(), plain_value(v))).collect()
}

fn plain_value(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(plain(fields)),
        Value::Array(items) => Value::Array(items.iter().map(plain_value).collect()),
        other => other.clone(),
    }
}
