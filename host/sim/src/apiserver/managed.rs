//! `metadata.managedFields`: who owns which field.

use serde_json::{Value, json};

use super::fieldset::FieldSet;
use super::structure::Structure;

/// One manager's entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) manager: String,
    pub(crate) apply: bool,
    pub(crate) subresource: String,
    pub(crate) api_version: String,
    pub(crate) time: Option<String>,
    pub(crate) fields: FieldSet,
}

/// Who writes, how and when.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// `fieldManager`, or what stands before the slash in the User-Agent.
    pub(crate) manager: String,
    /// Subresource written; empty = the object.
    pub(crate) subresource: String,
    pub(crate) api_version: String,
    pub(crate) time: String,
}

impl Entry {
    pub(crate) fn is(&self, writer: &Writer, apply: bool) -> bool {
        self.apply == apply && self.manager == writer.manager && self.subresource == writer.subresource
    }

    pub(crate) fn new(writer: &Writer, apply: bool, fields: FieldSet) -> Self {
        Self {
            manager: writer.manager.clone(),
            apply,
            subresource: writer.subresource.clone(),
            api_version: writer.api_version.clone(),
            time: Some(writer.time.clone()),
            fields,
        }
    }
}

/// Reads the entries of an object.
pub(crate) fn read(object: &Value) -> Vec<Entry> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .filter(|e| e["manager"].is_string())
        .map(|e| Entry {
            manager: e["manager"].as_str().unwrap_or_default().to_owned(),
            apply: e["operation"] == "Apply",
            subresource: e["subresource"].as_str().unwrap_or_default().to_owned(),
            api_version: e["apiVersion"].as_str().unwrap_or_default().to_owned(),
            time: e["time"].as_str().map(str::to_owned),
            fields: FieldSet::parse(&e["fieldsV1"]),
        })
        .collect()
}

/// Writes the entries; those that own nothing are dropped, except an applier's (it may own nothing on purpose).
pub(crate) fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|e| !e.fields.is_empty());
    entries.sort_by(|a, b| (!a.apply, &a.time, &a.manager).cmp(&(!b.apply, &b.time, &b.manager)));
    let list: Vec<Value> = entries
        .into_iter()
        .map(|e| {
            let mut out = json!({
                "manager": e.manager, "operation": if e.apply { "Apply" } else { "Update" },
                "apiVersion": e.api_version, "fieldsType": "FieldsV1", "fieldsV1": e.fields.to_json(),
            });
            if let Some(time) = e.time {
                out["time"] = Value::String(time);
            }
            if !e.subresource.is_empty() {
                out["subresource"] = Value::String(e.subresource);
            }
            out
        })
        .collect();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        if list.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), Value::Array(list));
        }
    }
}

/// Records a create, update or patch: the writer takes over what it added or changed, nobody owns what is gone.
pub(crate) fn record_update(structure: Structure<'_>, before: Option<&Value>, after: &mut Value, writer: &Writer) {
    let mut entries = read(after);
    // Unchanged fields stay with whoever owns them.
    let changed = match before {
        Some(before) => FieldSet::changed(structure, before, after),
        None => FieldSet::of(structure, after),
    };
    for entry in &mut entries {
        entry.fields.retain_existing(after);
        if !entry.is(writer, false) {
            entry.fields.subtract(&changed);
        }
    }
    if !changed.is_empty() {
        match entries.iter_mut().find(|e| e.is(writer, false)) {
            Some(entry) => {
                entry.fields.union(&changed);
                entry.time = Some(writer.time.clone());
                entry.api_version.clone_from(&writer.api_version);
            }
            None => entries.push(Entry::new(writer, false, changed)),
        }
    }
    write(after, entries);
}

/// The set of one path.
pub(crate) fn single(path: &[String]) -> FieldSet {
    let mut json = json!({".": {}});
    for element in path.iter().rev() {
        let mut outer = serde_json::Map::new();
        outer.insert(element.clone(), json);
        json = Value::Object(outer);
    }
    FieldSet::parse(&json)
}
