//! Events are stored once, in the core form, and served in `events.k8s.io` form too.

use serde_json::{Map, Value};

/// Field names of `events.k8s.io/v1` and of core `v1`.
const NAMES: &[(&str, &str)] = &[
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
];

/// Written as `events.k8s.io/v1`.
pub(crate) fn is_new_style(object: &Value) -> bool {
    object["apiVersion"] == "events.k8s.io/v1"
}

/// To the core form.
pub(crate) fn to_core(object: &Value) -> Value {
    rename(object, "v1", |name| NAMES.iter().find(|(new, _)| *new == name).map(|(_, core)| *core))
}

/// To the `events.k8s.io` form.
pub(crate) fn to_new(object: &Value) -> Value {
    rename(object, "events.k8s.io/v1", |name| NAMES.iter().find(|(_, core)| *core == name).map(|(new, _)| *new))
}

fn rename(object: &Value, api_version: &str, name_of: impl Fn(&str) -> Option<&'static str>) -> Value {
    let mut out = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        out.insert(name_of(name).unwrap_or(name).to_owned(), value.clone());
    }
    out.insert("apiVersion".to_owned(), Value::from(api_version));
    Value::Object(out)
}
