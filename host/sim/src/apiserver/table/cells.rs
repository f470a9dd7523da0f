//! Cells of built-in kinds.

use jiff::Timestamp;
use serde_json::Value;

use crate::clock::Clock;

/// A duration since a timestamp in kubectl's short form.
pub(super) fn age(time: &Value, clock: &Clock) -> String {
    let Some(then) = time.as_str().and_then(|t| t.parse::<Timestamp>().ok()) else { return "<unknown>".to_owned() };
    short(clock.now().as_second() - then.as_second())
}

/// `5s`, `2m10s`, `45m`, `3h5m`, `26h`, `4d2h`, `90d`.
fn short(seconds: i64) -> String {
    let s = seconds.max(0);
    let (m, h, d) = (s / 60, s / 3600, s / 86_400);
    let two = |a: i64, unit: &str, b: i64, small: &str| {
        if b == 0 { format!("{a}{unit}") } else { format!("{a}{unit}{b}{small}") }
    };
    match s {
        0..=119 => format!("{s}s"),
        120..=599 => two(m, "m", s % 60, "s"),
        600..=10_799 => format!("{m}m"),
        10_800..=28_799 => two(h, "h", m % 60, "m"),
        28_800..=172_799 => format!("{h}h"),
        172_800..=691_199 => two(d, "d", h % 24, "h"),
        _ => format!("{d}d"),
    }
}

pub(super) fn number(value: &Value) -> Value {
    Value::from(value.as_i64().unwrap_or_default())
}

pub(super) fn or_na(value: &Value) -> Value {
    match value {
        Value::Null => Value::from("N/A"),
        Value::String(text) => Value::from(text.as_str()),
        other => Value::String(other.to_string()),
    }
}

pub(super) fn of_desired(object: &Value, ready: &str) -> Value {
    let number = |v: &Value| v.as_i64().unwrap_or_default();
    Value::String(format!("{}/{}", number(&object["status"][ready]), number(&object["spec"]["replicas"])))
}

pub(super) fn pod_ready(pod: &Value) -> Value {
    let total = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    let statuses = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let ready = statuses.filter(|s| s["ready"] == true).count();
    Value::String(format!("{ready}/{total}"))
}

pub(super) fn pod_status(pod: &Value) -> Value {
    if pod["metadata"].get("deletionTimestamp").is_some_and(|t| !t.is_null()) {
        return Value::from("Terminating");
    }
    match pod["status"]["reason"].as_str() {
        Some(reason) => Value::from(reason),
        None => Value::from(pod["status"]["phase"].as_str().unwrap_or("Unknown")),
    }
}

pub(super) fn node_status(node: &Value) -> Value {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.filter(|c| c["type"] == "Ready").map(|c| c["status"] == "True").next();
    let mut text = match ready {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node["spec"]["unschedulable"] == true {
        text.push_str(",SchedulingDisabled");
    }
    Value::String(text)
}

pub(super) fn node_address(node: &Value, kind: &str) -> Value {
    let mut addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let found = addresses.find(|a| a["type"] == kind).and_then(|a| a["address"].as_str());
    Value::from(found.unwrap_or("<none>"))
}

pub(super) fn event_age(event: &Value, clock: &Clock) -> String {
    for time in [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["metadata"]["creationTimestamp"],
    ] {
        if time.is_string() {
            return age(time, clock);
        }
    }
    "<unknown>".to_owned()
}

pub(super) fn event_object(event: &Value) -> Value {
    let object = &event["involvedObject"];
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    Value::String(format!("{kind}/{}", object["name"].as_str().unwrap_or_default()))
}

pub(super) fn containers(object: &Value, field: &str) -> Value {
    let containers = object["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
    let names: Vec<&str> = containers.filter_map(|c| c[field].as_str()).collect();
    Value::String(names.join(","))
}

pub(super) fn selector(object: &Value) -> Value {
    let labels = object["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let parts: Vec<String> = labels.map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    Value::String(parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn ages_are_short() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (130, "2m10s"),
            (600, "10m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (90_000, "25h"),
            (176_400, "2d1h"),
            (864_000, "10d"),
        ] {
            assert_eq!(short(seconds), text);
        }
    }
}
