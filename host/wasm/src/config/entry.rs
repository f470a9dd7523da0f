//! One plugin of `policies.yaml`.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Entry, Reader, Source, kind};
use crate::limits::{Hook, Limits};
use crate::slot::OnError;

const KNOWN: &str = "name, source, sha256, config, limits, onError";

impl Reader {
    pub(super) fn entry(&mut self, hook: Hook, path: String, value: Value) -> Option<Entry> {
        let Value::Object(mut map) = value else {
            self.refuse(&path, format!("expected a mapping with name and source, found {}", kind(&value)));
            return None;
        };
        let at = |key: &str| format!("{path}.{key}");
        let name = self.name(&at("name"), map.remove("name"));
        let source = self.source(&at("source"), map.remove("source"));
        let sha256 = self.sha256(&at("sha256"), map.remove("sha256"));
        if let (Some(Source::Inline(_)), None) = (&source, &sha256) {
            self.refuse(
                &at("sha256"),
                "is missing: every component but a builtin is pinned by the sha256 of its bytes",
            );
        }
        let config = match map.remove("config") {
            None | Some(Value::Null) => Some(Map::new()),
            Some(Value::Object(config)) => Some(config),
            Some(other) => {
                self.refuse(&at("config"), format!("expected a mapping, found {}", kind(&other)));
                None
            }
        };
        let limits = self.limits(&at("limits"), map.remove("limits"));
        let on_error = self.on_error(&at("onError"), map.remove("onError"));
        if map.remove("mode").is_some_and(|mode| mode != "active") {
            self.refuse(&at("mode"), "shadow mode is not available in this version; remove the key");
        }
        for key in map.keys() {
            self.unknown(&at(key), KNOWN);
        }
        Some(Entry { hook, name: name?, source: source?, sha256, config: config?, limits, on_error, path })
    }

    fn name(&mut self, path: &str, value: Option<Value>) -> Option<String> {
        let legal = |text: &str| {
            let inner = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            !text.is_empty() && text.len() <= 63 && inner && !text.starts_with('-') && !text.ends_with('-')
        };
        match value {
            Some(Value::String(text)) if legal(&text) => return Some(text),
            Some(Value::String(text)) => {
                self.refuse(path, format!("{text:?}: use lower-case letters, digits and dashes, at most 63"));
            }
            Some(other) => self.refuse(path, format!("expected a text, found {}", kind(&other))),
            None => self.refuse(path, "is missing"),
        }
        None
    }

    fn source(&mut self, path: &str, value: Option<Value>) -> Option<Source> {
        const KNOWN: &str = "{ builtin: <name> } or { inline: <key of binaryData> }";
        let map = match value {
            Some(Value::Object(map)) => map,
            Some(other) => {
                self.refuse(path, format!("expected {KNOWN}, found {}", kind(&other)));
                return None;
            }
            None => {
                self.refuse(path, format!("is missing; write {KNOWN}"));
                return None;
            }
        };
        let mut fields = map.into_iter();
        let (Some((key, value)), None) = (fields.next(), fields.next()) else {
            self.refuse(path, format!("expected exactly one key: {KNOWN}"));
            return None;
        };
        let inner = format!("{path}.{key}");
        match (key.as_str(), value) {
            ("builtin", Value::String(name)) => return Some(Source::Builtin(name)),
            ("inline", Value::String(key)) => return Some(Source::Inline(key)),
            ("oci" | "file", _) => {
                self.refuse(&inner, format!("{key} sources are not available in this version; use {KNOWN}"));
            }
            ("builtin" | "inline", other) => self.refuse(&inner, format!("expected a text, found {}", kind(&other))),
            _ => self.unknown(&inner, "builtin, inline"),
        }
        None
    }

    fn sha256(&mut self, path: &str, value: Option<Value>) -> Option<String> {
        match value {
            None => None,
            Some(Value::String(text)) => {
                let hex = text.strip_prefix("sha256:").unwrap_or(&text).to_ascii_lowercase();
                if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return Some(hex);
                }
                self.refuse(path, format!("expected 64 hex digits, found {text:?}"));
                Some(hex)
            }
            Some(other) => {
                self.refuse(path, format!("expected a text of 64 hex digits, found {} (quote it)", kind(&other)));
                Some(String::new())
            }
        }
    }

    fn on_error(&mut self, path: &str, value: Option<Value>) -> OnError {
        let Some(value) = value else { return OnError::LastGood };
        let read = serde_json::from_value(value.clone());
        read.unwrap_or_else(|_| {
            self.refuse(path, format!("expected last-good, builtin, skip or stop, found {value}"));
            OnError::LastGood
        })
    }

    fn limits(&mut self, path: &str, value: Option<Value>) -> Limits {
        let mut limits = Limits::default();
        let map = match value {
            None | Some(Value::Null) => return limits,
            Some(Value::Object(map)) => map,
            Some(other) => {
                self.refuse(path, format!("expected a mapping, found {}", kind(&other)));
                return limits;
            }
        };
        for (key, value) in map {
            let path = format!("{path}.{key}");
            let mut number = |low: u64, high: u64| match value.as_u64() {
                Some(number) if (low..=high).contains(&number) => Some(number),
                _ => {
                    self.refuse(&path, format!("expected a whole number from {low} to {high}, found {value}"));
                    None
                }
            };
            match key.as_str() {
                "fuel" => limits.fuel = number(1_000_000, 100_000_000_000).or(limits.fuel),
                "fuelPerCandidate" => limits.fuel_per_candidate = number(0, 10_000_000).unwrap_or_default(),
                "deadlineMs" => limits.deadline = number(1, 60_000).map(Duration::from_millis),
                "memoryMiB" => limits.memory_mib = number(1, 1_024).unwrap_or_default(),
                "logLines" => {
                    limits.log_lines = number(0, 10_000).and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
                }
                _ => self.unknown(&path, "fuel, fuelPerCandidate, deadlineMs, memoryMiB, logLines"),
            }
        }
        limits
    }
}
