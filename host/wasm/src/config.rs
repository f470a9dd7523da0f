//! `policies.yaml`: which plugins, in what order, with what configuration. Every key is known or refused by its path.

use serde_json::{Map, Value};

use crate::limits::{Hook, Limits};
use crate::slot::OnError;
use crate::source::{POLICIES_KEY, Rejection};

mod entry;
#[cfg(test)]
mod tests;

/// The version that this host reads.
pub(crate) const API_VERSION: &str = "mortise.dev/v1alpha1";

/// What a ConfigMap asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PolicySpec {
    pub paused: bool,
    /// Entries in order: filters, scorers, consolidator.
    pub entries: Vec<Entry>,
}

/// One plugin in one chain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// `score[1]`.
    pub path: String,
    pub hook: Hook,
    pub name: String,
    pub source: Source,
    /// sha256 of the component, hex.
    pub sha256: Option<String>,
    pub config: Map<String, Value>,
    pub limits: Limits,
    pub on_error: OnError,
}

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Embedded in this binary.
    Builtin(String),
    /// A key of `binaryData`.
    Inline(String),
}

impl Source {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Builtin(name) => format!("builtin:{name}"),
            Self::Inline(key) => format!("inline:{key}"),
        }
    }
}

/// The chains when `policies.yaml` names none.
pub(crate) fn default_entry(hook: Hook) -> Option<Entry> {
    let name = match hook {
        Hook::Filter => "constraints",
        Hook::Score => "price",
        Hook::Consolidate => "karpenter",
        Hook::Lifecycle => return None,
    };
    Some(Entry {
        path: hook.name().to_owned(),
        hook,
        name: name.to_owned(),
        source: Source::Builtin(name.to_owned()),
        sha256: None,
        config: Map::new(),
        limits: Limits::default(),
        on_error: OnError::LastGood,
    })
}

/// What holds without a ConfigMap.
pub(crate) fn defaults() -> PolicySpec {
    let entries = [Hook::Filter, Hook::Score, Hook::Consolidate].into_iter().filter_map(default_entry).collect();
    PolicySpec { paused: false, entries }
}

/// `disruption: paused` is there, however broken the rest may be.
pub(crate) fn is_paused(text: &str) -> bool {
    match serde_norway::from_str::<serde_norway::Value>(text) {
        Ok(value) => value.get("disruption").and_then(|v| v.as_str()) == Some("paused"),
        // The kill switch must work while the file is being repaired: a top-level line that says so is enough.
        Err(_) => text.lines().filter_map(|line| line.strip_prefix("disruption:")).any(|rest| {
            let value = rest.split('#').next().unwrap_or("").trim();
            value.trim_matches(['"', '\'']) == "paused"
        }),
    }
}

/// Reads `policies.yaml`.
pub(crate) fn parse(text: &str) -> Result<PolicySpec, Vec<Rejection>> {
    let mut reader = Reader::default();
    let spec = reader.document(text);
    match spec {
        Some(spec) if reader.rejections.is_empty() => Ok(spec),
        _ => Err(reader.rejections),
    }
}

/// Collects everything that is wrong.
#[derive(Default)]
struct Reader {
    rejections: Vec<Rejection>,
}

impl Reader {
    fn refuse(&mut self, path: &str, message: impl Into<String>) {
        let path = if path.is_empty() { POLICIES_KEY.to_owned() } else { format!("{POLICIES_KEY}: {path}") };
        self.rejections.push(Rejection { path, message: message.into() });
    }

    fn document(&mut self, text: &str) -> Option<PolicySpec> {
        // Through the YAML library's own value, which refuses a key that is there twice.
        let yaml = serde_norway::from_str::<serde_norway::Value>(text);
        let value = yaml.map_err(|e| e.to_string()).and_then(|y| serde_json::to_value(y).map_err(|e| e.to_string()));
        let value = match value {
            Ok(value) => value,
            Err(error) => {
                self.refuse("", format!("not YAML with text keys: {error}"));
                return None;
            }
        };
        let Value::Object(mut map) = value else {
            self.refuse("", format!("expected a mapping, found {}", kind(&value)));
            return None;
        };
        match map.remove("apiVersion") {
            Some(Value::String(version)) if version == API_VERSION => {}
            Some(other) => self.refuse("apiVersion", format!("this version reads {API_VERSION}, found {other}")),
            None => self.refuse("apiVersion", format!("is missing; write: apiVersion: {API_VERSION}")),
        }
        let paused = match map.remove("disruption") {
            None => false,
            Some(Value::String(text)) if text == "active" => false,
            Some(Value::String(text)) if text == "paused" => true,
            Some(other) => {
                self.refuse("disruption", format!("expected active or paused, found {other}"));
                false
            }
        };
        let mut entries = Vec::new();
        for hook in [Hook::Filter, Hook::Score] {
            match map.remove(hook.name()) {
                None => entries.extend(default_entry(hook)),
                Some(Value::Array(list)) => {
                    let read = |(i, value)| self.entry(hook, format!("{}[{i}]", hook.name()), value);
                    entries.extend(list.into_iter().enumerate().filter_map(read));
                }
                Some(other) => {
                    self.refuse(hook.name(), format!("expected a list of plugins, found {}", kind(&other)));
                }
            }
        }
        match map.remove("consolidate") {
            None => entries.extend(default_entry(Hook::Consolidate)),
            Some(value) => entries.extend(self.entry(Hook::Consolidate, "consolidate".to_owned(), value)),
        }
        if map.remove("plan").is_some() {
            self.refuse("plan", "this version asks no planner: pods are placed by the engine; remove the entry");
        }
        for key in map.keys() {
            self.unknown(key, "apiVersion, disruption, filter, score, consolidate");
        }
        Some(PolicySpec { paused, entries })
    }

    fn unknown(&mut self, path: &str, known: &str) {
        self.refuse(path, format!("is not a key that this version knows; known here: {known}"));
    }
}

/// Kind of a value, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
