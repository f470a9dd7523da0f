//! Request bodies in the Kubernetes protobuf encoding, which kubectl uses for some of its writes (`create deployment`,
//! `create namespace`, evictions of `drain`). They become JSON here; answers are always JSON, as clients accept.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::{ApiError, ApiResult};
use crate::clock::{rfc3339, rfc3339_micro};

/// Media type of the encoding.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// Messages within messages; Kubernetes' own are less than twenty deep.
const MAX_DEPTH: usize = 64;

/// Fields that are no pointers in Go, so that false and zero there say nothing.
const PLAIN: &[&str] = &[
    "generation",
    "paused",
    "minReadySeconds",
    "stdin",
    "stdinOnce",
    "tty",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "readOnly",
];

static TABLE: &str = include_str!("../../data/protobuf.txt");
static MESSAGES: LazyLock<BTreeMap<&'static str, Message>> =
    LazyLock::new(|| TABLE.lines().filter_map(message).collect());

type Message = BTreeMap<u64, Field>;

#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    shape: Shape,
    kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    One,
    Many,
    Map,
    Inline,
}

fn message(line: &'static str) -> Option<(&'static str, Message)> {
    let mut parts = line.split_whitespace();
    let name = parts.next().filter(|n| !n.starts_with('#'))?;
    let fields = parts.filter_map(|part| {
        let mut columns = part.splitn(3, ':');
        let (name, number, kind) = (columns.next()?, columns.next()?.parse().ok()?, columns.next()?);
        let (shape, kind) = match kind.strip_prefix("[]") {
            Some(kind) => (Shape::Many, kind),
            None => match (kind.strip_prefix("{}"), kind.strip_prefix('!')) {
                (Some(kind), _) => (Shape::Map, kind),
                (_, Some(kind)) => (Shape::Inline, kind),
                _ => (Shape::One, kind),
            },
        };
        Some((number, Field { name, shape, kind }))
    });
    Some((name, fields.collect()))
}

/// Decodes a request body.
pub(crate) fn decode(body: &[u8]) -> ApiResult<Value> {
    let bad = |why: &str| ApiError::bad_request(format!("error decoding the protobuf body: {why}"));
    let envelope = body.strip_prefix(MAGIC).ok_or_else(|| bad("it does not begin with the Kubernetes prefix"))?;
    let (mut api_version, mut kind, mut raw): (String, String, &[u8]) = (String::new(), String::new(), &[]);
    for item in items(envelope) {
        match item.ok_or_else(|| bad("cut off"))? {
            (1, Wire::Bytes(meta)) => {
                for item in items(meta) {
                    match item.ok_or_else(|| bad("cut off in the type"))? {
                        (1, Wire::Bytes(text)) => api_version = String::from_utf8_lossy(text).into_owned(),
                        (2, Wire::Bytes(text)) => kind = String::from_utf8_lossy(text).into_owned(),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let name = message_name(&api_version, &kind);
    let message = MESSAGES
        .get(name.as_str())
        .ok_or_else(|| bad(&format!("{api_version}, Kind={kind} is not known in protobuf, send JSON")))?;
    let mut fields = fields(message, raw, 0).ok_or_else(|| bad(&format!("malformed {kind}")))?;
    fields.insert("apiVersion".to_owned(), api_version.into());
    fields.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(fields))
}

/// `apps/v1`, `Deployment` → `apps.v1.Deployment`. Options of deletions arrive under many versions.
fn message_name(api_version: &str, kind: &str) -> String {
    if kind == "DeleteOptions" {
        return "meta.v1.DeleteOptions".to_owned();
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    format!("{}.{version}.{kind}", group.split('.').next().unwrap_or(group))
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Fields of a message in order; `None` for the rest when it is malformed.
fn items(mut bytes: &[u8]) -> impl Iterator<Item = Option<(u64, Wire<'_>)>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let item = item(&mut bytes);
        if item.is_none() {
            bytes = &[];
        }
        Some(item)
    })
}

fn item<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let tag = varint(bytes)?;
    let wire = match tag & 7 {
        0 => Wire::Number(varint(bytes)?),
        1 => Wire::Bytes(take(bytes, 8)?),
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            Wire::Bytes(take(bytes, length)?)
        }
        5 => Wire::Bytes(take(bytes, 4)?),
        _ => return None,
    };
    Some((tag >> 3, wire))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(head)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn fields(message: &Message, bytes: &[u8], depth: usize) -> Option<Map<String, Value>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut out = Map::new();
    for item in items(bytes) {
        let (number, wire) = item?;
        let Some(field) = message.get(&number) else { continue };
        match field.shape {
            Shape::Many => {
                let value = value(field.kind, &wire, depth)?;
                if let Value::Array(list) = out.entry(field.name).or_insert_with(|| Value::Array(Vec::new())) {
                    list.push(value);
                }
            }
            Shape::Map => {
                let Wire::Bytes(entry) = wire else { return None };
                let (key, value) = map_entry(field.kind, entry, depth)?;
                out.entry(field.name).or_insert_with(|| Value::Object(Map::new()))[key] = value;
            }
            Shape::Inline => {
                if let Value::Object(inner) = value(field.kind, &wire, depth)? {
                    out.extend(inner);
                }
            }
            Shape::One => match value(field.kind, &wire, depth)? {
                // Go writes empty strings, zeros and false of plain fields; JSON leaves them out.
                Value::String(text) if text.is_empty() => {}
                Value::Bool(false) if PLAIN.contains(&field.name) => {}
                Value::Number(n) if n.as_i64() == Some(0) && PLAIN.contains(&field.name) => {}
                Value::Null => {}
                value => _ = out.insert(field.name.to_owned(), value),
            },
        }
    }
    Some(out)
}

fn map_entry(kind: &'static str, entry: &[u8], depth: usize) -> Option<(String, Value)> {
    let (mut key, mut found) = (String::new(), None);
    for item in items(entry) {
        match item? {
            (1, Wire::Bytes(text)) => key = String::from_utf8(text.to_vec()).ok()?,
            (2, wire) => found = Some(value(kind, &wire, depth)?),
            _ => {}
        }
    }
    Some((key, found.unwrap_or_else(|| Value::from(""))))
}

fn value(kind: &'static str, wire: &Wire<'_>, depth: usize) -> Option<Value> {
    Some(match (kind, wire) {
        ("s", Wire::Bytes(bytes)) => Value::String(String::from_utf8(bytes.to_vec()).ok()?),
        ("y", Wire::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        ("b", Wire::Number(n)) => Value::Bool(*n != 0),
        ("i", Wire::Number(n)) => Value::from(n.cast_signed()),
        ("d", Wire::Bytes(bytes)) => Value::from(f64::from_le_bytes((*bytes).try_into().ok()?)),
        ("meta.v1.Time", Wire::Bytes(bytes)) => time(bytes, false),
        ("meta.v1.MicroTime", Wire::Bytes(bytes)) => time(bytes, true),
        ("resource.Quantity", Wire::Bytes(bytes)) => scalar(bytes, 1)?,
        ("intstr.IntOrString", Wire::Bytes(bytes)) => int_or_string(bytes),
        ("meta.v1.FieldsV1" | "runtime.RawExtension", Wire::Bytes(bytes)) => {
            let raw = items(bytes).flatten().find_map(|item| match item {
                (1, Wire::Bytes(raw)) => Some(raw),
                _ => None,
            });
            raw.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_else(|| json!({}))
        }
        ("meta.v1.Verbs", Wire::Bytes(bytes)) => scalar(bytes, 1)?,
        (name, Wire::Bytes(bytes)) => match strings(name) {
            // Named lists of strings (ExtraValue) are messages of one repeated field.
            true => items(bytes).flatten().filter_map(|(_, w)| value("s", &w, depth)).collect(),
            false => Value::Object(fields(MESSAGES.get(name)?, bytes, depth + 1)?),
        },
        _ => return None,
    })
}

fn strings(name: &str) -> bool {
    name.ends_with(".ExtraValue")
}

fn scalar(bytes: &[u8], number: u64) -> Option<Value> {
    items(bytes)
        .flatten()
        .find_map(|(n, wire)| if n == number { value("s", &wire, 0) } else { None })
        .or(Some(Value::from("0")))
}

fn int_or_string(bytes: &[u8]) -> Value {
    let (mut text_form, mut number, mut text) = (false, 0_i64, String::new());
    for (field, wire) in items(bytes).flatten() {
        match (field, wire) {
            (1, Wire::Number(n)) => text_form = n == 1,
            (2, Wire::Number(n)) => number = n.cast_signed(),
            (3, Wire::Bytes(bytes)) => text = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
    }
    if text_form { text.into() } else { number.into() }
}

/// A timestamp; the zero time, which Go writes as an empty message, is null.
fn time(bytes: &[u8], micro: bool) -> Value {
    let (mut seconds, mut nanos) = (0_i64, 0_i64);
    for (field, wire) in items(bytes).flatten() {
        match (field, wire) {
            (1, Wire::Number(n)) => seconds = n.cast_signed(),
            (2, Wire::Number(n)) => nanos = n.cast_signed(),
            _ => {}
        }
    }
    let whole = i32::try_from(nanos).ok().and_then(|nanos| jiff::Timestamp::new(seconds, nanos).ok());
    match whole {
        Some(time) if seconds != 0 => Value::String(if micro { rfc3339_micro(time) } else { rfc3339(time) }),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend_from_slice(bytes);
        out
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let entry = [field(1, b"key"), field(2, b"value")].concat();
        let raw = [field(1, &field(1, b"name")), field(2, &entry)].concat();
        let value = decode(&envelope("v1", "ConfigMap", &raw)).unwrap();
        assert_eq!(
            value,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "name"}, "data": {"key": "value"}})
        );
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_refused() {
        let whole = envelope("v1", "ConfigMap", &field(1, &field(1, b"name")));
        for end in 0..whole.len() {
            let _ = decode(&whole[..end]);
        }
        assert!(decode(&envelope("x/v1", "Widget", &[])).unwrap_err().message.contains("send JSON"));
        assert!(decode(b"{}").is_err());
    }

    #[test]
    fn every_type_in_the_table_is_known() {
        for (name, message) in MESSAGES.iter() {
            for field in message.values() {
                assert!(
                    field.kind.len() == 1 || MESSAGES.contains_key(field.kind),
                    "{name}.{}: {}",
                    field.name,
                    field.kind
                );
            }
        }
    }
}
