//! Sets of field paths, as `metadata.managedFields` records them (the `FieldsV1` format).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::structure::{ListKind, Structure};

/// A tree of path elements. Elements are kept as they are written: `f:NAME`, `k:{"key":…}`, `v:VALUE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// The path that leads here is itself a member.
    member: bool,
    children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Reads `fieldsV1`.
    pub(crate) fn parse(fields: &Value) -> Self {
        let mut set = Self::default();
        for (name, child) in fields.as_object().into_iter().flatten() {
            if name == "." {
                set.member = true;
            } else {
                let mut parsed = Self::parse(child);
                if parsed.children.is_empty() {
                    parsed.member = true;
                }
                set.children.insert(name.clone(), parsed);
            }
        }
        set
    }

    /// Writes `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut out = Map::new();
        if self.member && !self.children.is_empty() {
            out.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (name, child) in &self.children {
            out.insert(name.clone(), child.to_json());
        }
        Value::Object(out)
    }

    /// Every field of an object that a manager who wrote it owns. Identity and what the server sets are left out.
    pub(crate) fn of(structure: Structure<'_>, object: &Value) -> Self {
        let mut set = Self::default();
        for (name, value) in object.as_object().into_iter().flatten() {
            match name.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => {
                    let mut metadata = Self::default();
                    for (field, value) in value.as_object().into_iter().flatten() {
                        if !SERVER_SET.contains(&field.as_str()) {
                            metadata
                                .children
                                .insert(element(field), of_value(structure, value, &mut vec!["metadata", field]));
                        }
                    }
                    if !metadata.is_empty() {
                        set.children.insert("f:metadata".to_owned(), metadata);
                    }
                }
                _ => {
                    set.children.insert(element(name), of_value(structure, value, &mut vec![name]));
                }
            }
        }
        set
    }

    /// The fields of an object that are new or differ from before.
    pub(crate) fn changed(structure: Structure<'_>, before: &Value, after: &Value) -> Self {
        let mut set = Self::default();
        for (name, value) in after.as_object().into_iter().flatten() {
            if before.get(name) == Some(value) || matches!(name.as_str(), "apiVersion" | "kind") {
                continue;
            }
            let old = before.get(name).unwrap_or(&Value::Null);
            let child = if name == "metadata" {
                let mut metadata = Self::default();
                for (field, value) in value.as_object().into_iter().flatten() {
                    if !SERVER_SET.contains(&field.as_str()) && old.get(field) != Some(value) {
                        let old = old.get(field).unwrap_or(&Value::Null);
                        let child = changed_value(structure, old, value, &mut vec!["metadata", field]);
                        metadata.children.insert(element(field), child);
                    }
                }
                metadata
            } else {
                changed_value(structure, old, value, &mut vec![name])
            };
            if !child.is_empty() {
                set.children.insert(element(name), child);
            }
        }
        set
    }

    pub(crate) fn union(&mut self, other: &Self) {
        self.member |= other.member;
        for (name, child) in &other.children {
            self.children.entry(name.clone()).or_default().union(child);
        }
    }

    /// Removes the members of `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        if other.member {
            self.member = false;
        }
        for (name, theirs) in &other.children {
            if let Some(ours) = self.children.get_mut(name) {
                ours.subtract(theirs);
                if ours.is_empty() {
                    self.children.remove(name);
                }
            }
        }
    }

    pub(crate) fn contains_any(&self, path: &[String]) -> bool {
        let mut at = self;
        for part in path {
            match at.children.get(part) {
                Some(next) => at = next,
                None => return false,
            }
        }
        !at.is_empty()
    }

    /// Paths of all members.
    pub(crate) fn members(&self) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
        if self.member {
            out.push(path.clone());
        }
        for (name, child) in &self.children {
            path.push(name.clone());
            child.collect(path, out);
            path.pop();
        }
    }

    pub(crate) fn has(&self, path: &[String]) -> bool {
        let mut at = self;
        for part in path {
            match at.children.get(part) {
                Some(next) => at = next,
                None => return false,
            }
        }
        at.member
    }

    /// Keeps the members that still exist in an object.
    pub(crate) fn retain_existing(&mut self, object: &Value) {
        self.children.retain(|name, child| match lookup(object, name) {
            Some(value) => {
                child.retain_existing(value);
                !child.is_empty()
            }
            None => false,
        });
    }
}

/// Metadata that no manager owns.
const SERVER_SET: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "generateName",
];

fn element(field: &str) -> String {
    format!("f:{field}")
}

fn leaf() -> FieldSet {
    FieldSet { member: true, children: BTreeMap::new() }
}

/// The changed fields of two values that differ.
fn changed_value<'a>(structure: Structure<'_>, before: &Value, after: &'a Value, path: &mut Vec<&'a str>) -> FieldSet {
    match (before, after) {
        (Value::Object(old), Value::Object(fields)) if !fields.is_empty() && !structure.is_atomic_map(path) => {
            let mut set = FieldSet::default();
            for (name, value) in fields.iter().filter(|(name, value)| old.get(*name) != Some(*value)) {
                path.push(name);
                let child = changed_value(structure, old.get(name).unwrap_or(&Value::Null), value, path);
                path.pop();
                if !child.is_empty() {
                    set.children.insert(element(name), child);
                }
            }
            set
        }
        (Value::Array(old), Value::Array(items)) if !items.is_empty() => match structure.apply_kind(path) {
            Some(ListKind::Map(keys)) => {
                let mut set = FieldSet::default();
                for item in items {
                    let key = key_element(&keys, item);
                    let child = match old.iter().find(|o| key_element(&keys, o) == key) {
                        Some(same) if same == item => continue,
                        Some(other) => changed_value(structure, other, item, path),
                        None => FieldSet { member: true, ..of_value(structure, item, path) },
                    };
                    if !child.is_empty() {
                        set.children.insert(key, child);
                    }
                }
                set
            }
            Some(ListKind::Set) => {
                let fresh = items.iter().filter(|item| !old.contains(item));
                FieldSet { member: false, children: fresh.map(|item| (format!("v:{item}"), leaf())).collect() }
            }
            _ => leaf(),
        },
        _ => of_value(structure, after, path),
    }
}

fn of_value<'a>(structure: Structure<'_>, value: &'a Value, path: &mut Vec<&'a str>) -> FieldSet {
    match value {
        Value::Object(fields) if !fields.is_empty() && !structure.is_atomic_map(path) => {
            let mut set = FieldSet::default();
            for (name, child) in fields {
                path.push(name);
                set.children.insert(element(name), of_value(structure, child, path));
                path.pop();
            }
            set
        }
        Value::Array(items) if !items.is_empty() => match structure.apply_kind(path) {
            Some(ListKind::Map(keys)) => {
                let mut set = FieldSet::default();
                for item in items {
                    let mut child = of_value(structure, item, path);
                    child.member = true;
                    set.children.insert(key_element(&keys, item), child);
                }
                set
            }
            Some(ListKind::Set) => {
                FieldSet { member: false, children: items.iter().map(|item| (format!("v:{item}"), leaf())).collect() }
            }
            _ => leaf(),
        },
        _ => leaf(),
    }
}

/// The element of a list item found by its keys. A missing `protocol` counts as TCP, its default.
pub(crate) fn key_element(keys: &[String], item: &Value) -> String {
    let mut key = Map::new();
    for name in keys {
        match item.get(name) {
            Some(value) => _ = key.insert(name.clone(), value.clone()),
            None if name == "protocol" => _ = key.insert(name.clone(), Value::from("TCP")),
            None => {}
        }
    }
    format!("k:{}", Value::Object(key))
}

/// Whether a list item is the one that an element names.
fn item_matches(item: &Value, element: &str) -> bool {
    if let Some(key) = element.strip_prefix("k:") {
        let Ok(Value::Object(key)) = serde_json::from_str::<Value>(key) else { return false };
        key.iter().all(|(name, value)| {
            item.get(name) == Some(value) || (item.get(name).is_none() && name == "protocol" && value == "TCP")
        })
    } else if let Some(text) = element.strip_prefix("v:") {
        serde_json::from_str::<Value>(text).is_ok_and(|value| &value == item)
    } else {
        false
    }
}

/// The child that an element names.
pub(crate) fn lookup<'a>(value: &'a Value, element: &str) -> Option<&'a Value> {
    match element.strip_prefix("f:") {
        Some(field) => value.get(field),
        None => value.as_array()?.iter().find(|item| item_matches(item, element)),
    }
}

/// The value at a path of elements.
pub(crate) fn lookup_path<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |at, element| lookup(at, element))
}

/// Removes what a path of elements names, and maps that become empty on the way up.
pub(crate) fn remove_path(value: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    if let Some(field) = first.strip_prefix("f:") {
        let Some(fields) = value.as_object_mut() else { return };
        if rest.is_empty() {
            fields.remove(field);
        } else if let Some(child) = fields.get_mut(field) {
            remove_path(child, rest);
            if child.as_object().is_some_and(Map::is_empty) || child.as_array().is_some_and(Vec::is_empty) {
                fields.remove(field);
            }
        }
    } else if let Some(items) = value.as_array_mut()
        && let Some(at) = items.iter().position(|item| item_matches(item, first))
    {
        if rest.is_empty() {
            items.remove(at);
        } else if let Some(item) = items.get_mut(at) {
            remove_path(item, rest);
        }
    }
}

/// A path as messages show it: `.spec.template.spec.containers[name="web"].image`.
pub(crate) fn display(path: &[String]) -> String {
    let mut out = String::new();
    for element in path {
        if let Some(field) = element.strip_prefix("f:") {
            out.push('.');
            out.push_str(field);
        } else if let Some(Ok(Value::Object(key))) = element.strip_prefix("k:").map(serde_json::from_str) {
            let parts: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
            out.push_str(&format!("[{}]", parts.join(",")));
        } else if let Some(text) = element.strip_prefix("v:") {
            out.push_str(&format!("[={text}]"));
        }
    }
    out
}
