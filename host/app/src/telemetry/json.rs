//! One log event as one JSON object.

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// Field names that hold the name of an object and are shown as `{"name": …}`, or `{"namespace": …, "name": …}` for
/// `a/b`, as Karpenter's logs do.
const OBJECTS: &[&str] = &["NodeClaim", "NodePool", "Node", "EC2NodeClass", "Pod", "ConfigMap", "Lease"];

/// Renders the event.
pub(super) fn line(event: &Event<'_>, now: jiff::Timestamp) -> String {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let level = match *event.metadata().level() {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        _ => "DEBUG",
    };
    let logger = match event.metadata().target().split("::").nth(1) {
        Some(module) if level == "DEBUG" => format!("controller.{module}"),
        _ => "controller".to_owned(),
    };
    // `Map` keeps insertion order only with a feature we do not take, so the fixed head is written by hand.
    let head = [
        ("level", level.to_owned()),
        ("time", now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()),
        ("logger", logger),
        ("message", fields.message),
        ("commit", super::COMMIT.to_owned()),
    ];
    let mut out = String::with_capacity(256);
    for (key, value) in head {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(&format!("\"{key}\":{}", Value::String(value)));
    }
    for (key, value) in fields.rest {
        out.push_str(&format!(",{}:{value}", Value::String(key)));
    }
    out.push('}');
    out
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: Map<String, Value>,
}

impl Fields {
    fn text(&mut self, field: &Field, text: String) {
        let value = if OBJECTS.contains(&field.name()) {
            match text.split_once('/') {
                Some((namespace, name)) => json!({ "namespace": namespace, "name": name }),
                None => json!({ "name": text }),
            }
        } else {
            Value::String(text)
        };
        self.rest.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" { self.message = text } else { self.text(field, text) }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" { self.message = value.to_owned() } else { self.text(field, value.to_owned()) }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.rest.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.rest.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.rest.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.rest.insert(field.name().to_owned(), value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.rest.insert(field.name().to_owned(), Value::String(value.to_string()));
    }
}
