//! `spec.kubelet` of an EC2NodeClass: an open map in the schema, checked here field by field, so that a misspelt name is
//! found before a node boots without the setting.

mod fields;

use std::collections::BTreeMap;

use serde_json::Value;

use super::FieldError;
use super::hint::did_you_mean;
use crate::duration;
use fields::{FIELDS, Kind};

/// Signals that evictions can go by.
const SIGNALS: &[&str] = &[
    "imagefs.available",
    "imagefs.inodesFree",
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "pid.available",
];
/// Resources that can be reserved.
const RESERVABLE: &[&str] = &["cpu", "ephemeral-storage", "memory", "pid"];

/// Everything that is wrong with the settings. Wrong names and types are reported alone: while one is wrong the rest
/// cannot be judged.
pub(super) fn structure(kubelet: &BTreeMap<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, value) in kubelet {
        let field = format!("spec.kubelet.{name}");
        match FIELDS.iter().find(|(known, _)| known == name) {
            // An expression in the place of the number is judged as an expression.
            Some(_) if name == "maxPods" && value.is_string() => {}
            Some((_, kind)) => fits(&field, value, kind, &mut errors),
            None => errors.push(unknown(&field, name, FIELDS)),
        }
    }
    if errors.is_empty() { values(kubelet) } else { errors }
}

fn unknown(field: &str, name: &str, known: &[(&str, Kind)]) -> FieldError {
    let hint = did_you_mean(name, known.iter().map(|(name, _)| *name));
    FieldError::new(field, "", format!("is no field of KubeletConfiguration{hint}"))
}

/// Whether a value has the kind of its field.
fn fits(field: &str, value: &Value, kind: &Kind, errors: &mut Vec<FieldError>) {
    let (good, wanted) = match kind {
        Kind::Any => (true, ""),
        Kind::Bool => (value.is_boolean(), "true or false"),
        Kind::Int => (value.is_i64() || value.is_u64(), "a whole number"),
        Kind::Float => (value.is_number(), "a number"),
        Kind::Text => (value.is_string(), "a text"),
        Kind::Duration => (value.as_str().is_some_and(|text| duration::parse(text).is_ok()), "a duration such as 10s"),
        Kind::Map(item) => {
            if let Some(map) = value.as_object() {
                map.iter().for_each(|(key, value)| fits(&format!("{field}[{key}]"), value, item, errors));
            }
            (value.is_object(), "a map")
        }
        Kind::List(item) => {
            let items = value.as_array().into_iter().flatten().enumerate();
            items.for_each(|(i, value)| fits(&format!("{field}[{i}]"), value, item, errors));
            (value.is_array(), "a list")
        }
        Kind::Object(known) => {
            for (name, value) in value.as_object().into_iter().flatten() {
                let field = format!("{field}.{name}");
                match known.iter().find(|(known, _)| known == name) {
                    Some((_, kind)) => fits(&field, value, kind, errors),
                    None => errors.push(unknown(&field, name, known)),
                }
            }
            (value.is_object(), "an object")
        }
    };
    if !good {
        errors.push(FieldError::new(field, value, format!("must be {wanted}")));
    }
}

/// What the kinds alone do not tell.
fn values(kubelet: &BTreeMap<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bad = |field: String, found: String, message: String| errors.push(FieldError::new(field, found, message));
    let texts = |name: &str| -> Vec<(String, String)> {
        let map = kubelet.get(name).and_then(Value::as_object).into_iter().flatten();
        map.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_string())).collect()
    };
    let number = |name: &str| kubelet.get(name).and_then(Value::as_i64);
    if kubelet.contains_key("registerWithTaints") {
        let message = "is written by the controller: put taints in the NodePool";
        bad("spec.kubelet.registerWithTaints".into(), String::new(), message.into());
    }
    for name in ["evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim"] {
        for (signal, value) in texts(name) {
            let field = format!("spec.kubelet.{name}[{signal}]");
            if !SIGNALS.contains(&signal.as_str()) {
                let hint = did_you_mean(&signal, SIGNALS.iter().copied());
                bad(field.clone(), String::new(), format!("unknown signal: use one of {}{hint}", SIGNALS.join(", ")));
            }
            if name == "evictionSoftGracePeriod" {
                if let Err(error) = duration::parse(&value) {
                    bad(field, value, error.to_string());
                }
            } else if !is_threshold(&value) {
                bad(field, value, "write a percentage from 0% to 100% or a quantity from 0 up".into());
            }
        }
    }
    let (soft, grace) = (texts("evictionSoft"), texts("evictionSoftGracePeriod"));
    for (name, these, other, those) in [
        ("evictionSoft", &soft, "evictionSoftGracePeriod", &grace),
        ("evictionSoftGracePeriod", &grace, "evictionSoft", &soft),
    ] {
        for (signal, _) in these.iter().filter(|(signal, _)| !those.iter().any(|(other, _)| other == signal)) {
            bad(format!("spec.kubelet.{name}[{signal}]"), String::new(), format!("{other} must name this signal too"));
        }
    }
    for name in ["kubeReserved", "systemReserved"] {
        for (resource, value) in texts(name) {
            let field = format!("spec.kubelet.{name}[{resource}]");
            if !RESERVABLE.contains(&resource.as_str()) {
                bad(field.clone(), String::new(), format!("cannot be reserved: use one of {}", RESERVABLE.join(", ")));
            }
            if value.starts_with('-') {
                bad(field, value, "must not be negative".into());
            }
        }
    }
    for name in ["imageGCHighThresholdPercent", "imageGCLowThresholdPercent"] {
        if let Some(percent) = number(name).filter(|percent| !(0..=100).contains(percent)) {
            bad(format!("spec.kubelet.{name}"), percent.to_string(), "must be from 0 to 100".into());
        }
    }
    let (high, low) = (number("imageGCHighThresholdPercent"), number("imageGCLowThresholdPercent"));
    if let (Some(high), Some(low)) = (high, low)
        && high <= low
    {
        let message = format!("must be above imageGCLowThresholdPercent, which is {low}");
        bad("spec.kubelet.imageGCHighThresholdPercent".into(), high.to_string(), message);
    }
    for name in ["podsPerCore", "evictionMaxPodGracePeriod", "maxPods"] {
        if let Some(found) = number(name).filter(|found| !(0..=i64::from(i32::MAX)).contains(found)) {
            bad(format!("spec.kubelet.{name}"), found.to_string(), format!("must be from 0 to {}", i32::MAX));
        }
    }
    errors
}

/// A percentage or a quantity that is not negative.
fn is_threshold(text: &str) -> bool {
    match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().is_ok_and(|percent| (0.0..=100.0).contains(&percent)),
        None => is_quantity(text) && !text.starts_with('-'),
    }
}

/// Whether a text is a Kubernetes quantity: a number with at most one suffix or exponent.
pub(super) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let is_number =
        |text: &str| text.bytes().filter(|b| *b == b'.').count() <= 1 && text.bytes().any(|b| b.is_ascii_digit());
    let exponent = || suffix.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    let suffixes = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    is_number(number)
        && (suffixes.contains(&suffix)
            || exponent().is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())))
}

/// Fields whose value is an expression: text for `maxPods`, reserved entries that are no quantity.
pub(super) fn expressions(kubelet: &BTreeMap<String, Value>) -> Vec<FieldError> {
    let max_pods =
        kubelet.get("maxPods").and_then(Value::as_str).map(|text| ("spec.kubelet.maxPods".to_string(), text));
    let reserved = ["kubeReserved", "systemReserved"].into_iter().flat_map(|name| {
        let map = kubelet.get(name).and_then(Value::as_object).into_iter().flatten();
        map.filter_map(move |(key, value)| Some((format!("spec.kubelet.{name}[{key}]"), value.as_str()?)))
            .filter(|(_, text)| !is_quantity(text))
    });
    let message =
        "is an expression, which is not acted on: write a number for maxPods, a quantity for reserved resources";
    max_pods.into_iter().chain(reserved).map(|(field, text)| FieldError::new(field, text, message)).collect()
}
