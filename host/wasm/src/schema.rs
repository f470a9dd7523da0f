//! The part of JSON Schema that plugin configurations need. A schema that uses another keyword is refused, so that nothing
//! an author wrote is silently not checked.

use serde_json::Value;

/// Keywords that say something to people only.
const ANNOTATIONS: [&str; 7] = ["$schema", "$id", "$comment", "title", "description", "default", "examples"];
/// Depth of schemas and values.
const MAX_DEPTH: usize = 32;

/// One thing wrong: path (`pools.default.percent`, `zones[2]`) and message.
pub(crate) type Problem = (String, String);

/// Checks that a schema says only what [`validate`] understands.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    check(schema, "", 0)
}

fn check(schema: &Value, path: &str, depth: usize) -> Result<(), String> {
    let at = if path.is_empty() { "the schema".to_owned() } else { format!("the schema of {path}") };
    if depth > MAX_DEPTH {
        return Err(format!("{at} is nested too deep"));
    }
    let map = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(map) => map,
        _ => return Err(format!("{at} is not an object")),
    };
    for (keyword, value) in map {
        let good = match keyword.as_str() {
            "type" => match value {
                Value::String(name) => is_type(name),
                Value::Array(names) => !names.is_empty() && names.iter().all(|n| n.as_str().is_some_and(is_type)),
                _ => false,
            },
            "properties" => match value {
                Value::Object(fields) => {
                    for (name, inner) in fields {
                        check(inner, &join(path, name), depth + 1)?;
                    }
                    true
                }
                _ => false,
            },
            "items" | "additionalProperties" => {
                check(value, &join(path, "*"), depth + 1)?;
                true
            }
            "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
            "enum" => value.is_array(),
            "const" => true,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
            other if ANNOTATIONS.contains(&other) => true,
            other => return Err(format!("{at} uses the keyword {other:?}, which this host does not check")),
        };
        if !good {
            return Err(format!("{at}: the value of {keyword:?} is of the wrong kind"));
        }
    }
    Ok(())
}

fn is_type(name: &str) -> bool {
    matches!(name, "null" | "boolean" | "integer" | "number" | "string" | "array" | "object")
}

/// Everything wrong with a value, for a schema that [`check_schema`] has passed.
pub(crate) fn validate(schema: &Value, value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    visit(schema, value, "", &mut problems);
    problems
}

fn visit(schema: &Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let mut say = |message: String| problems.push((path.to_owned(), message));
    let map = match schema {
        Value::Bool(false) => {
            say("is not allowed here".to_owned());
            return;
        }
        Value::Object(map) => map,
        _ => return,
    };
    if let Some(types) = map.get("type") {
        let names: Vec<&str> = match types {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !names.iter().any(|name| is_a(value, name)) {
            say(format!("expected {}, found {value}", names.join(" or ")));
            return;
        }
    }
    if let Some(Value::Array(allowed)) = map.get("enum")
        && !allowed.contains(value)
    {
        let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        say(format!("expected one of {}, found {value}", list.join(", ")));
    }
    if let Some(expected) = map.get("const")
        && expected != value
    {
        say(format!("expected {expected}, found {value}"));
    }
    match value {
        Value::Number(number) => bounds(map, number.as_f64().unwrap_or(f64::NAN), value, &mut say),
        Value::String(text) => size(map, "minLength", "maxLength", text.chars().count(), "characters", &mut say),
        Value::Array(items) => {
            size(map, "minItems", "maxItems", items.len(), "items", &mut say);
            if let Some(inner) = map.get("items") {
                for (i, item) in items.iter().enumerate() {
                    visit(inner, item, &format!("{path}[{i}]"), problems);
                }
            }
        }
        Value::Object(fields) => {
            let required = map.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for name in required.iter().filter_map(Value::as_str).filter(|name| !fields.contains_key(*name)) {
                problems.push((join(path, name), "is missing".to_owned()));
            }
            let known = map.get("properties").and_then(Value::as_object);
            for (name, field) in fields {
                let path = join(path, name);
                match (known.and_then(|known| known.get(name)), map.get("additionalProperties")) {
                    (Some(inner), _) => visit(inner, field, &path, problems),
                    (None, Some(Value::Bool(false))) => {
                        let names: Vec<&str> = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                        problems.push((path, format!("is not a key of this plugin; it knows: {}", names.join(", "))));
                    }
                    (None, Some(inner)) => visit(inner, field, &path, problems),
                    (None, None) => {}
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        // 3.0 is an integer in JSON Schema, but plugins have no floats: only what is written as one counts.
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn bounds(map: &serde_json::Map<String, Value>, number: f64, value: &Value, say: &mut impl FnMut(String)) {
    type Test = fn(f64, f64) -> bool;
    let tests: [(&str, &str, Test); 4] = [
        ("minimum", "at least", |n, bound| n >= bound),
        ("maximum", "at most", |n, bound| n <= bound),
        ("exclusiveMinimum", "more than", |n, bound| n > bound),
        ("exclusiveMaximum", "less than", |n, bound| n < bound),
    ];
    for (keyword, words, test) in tests {
        if let Some(bound) = map.get(keyword)
            && !bound.as_f64().is_some_and(|bound| test(number, bound))
        {
            say(format!("expected {words} {bound}, found {value}"));
        }
    }
}

fn size(
    map: &serde_json::Map<String, Value>,
    low: &str,
    high: &str,
    length: usize,
    unit: &str,
    say: &mut impl FnMut(String),
) {
    let bound = |keyword: &str| map.get(keyword).and_then(Value::as_u64);
    let length = length as u64;
    if let Some(least) = bound(low).filter(|least| length < *least) {
        say(format!("expected at least {least} {unit}, found {length}"));
    }
    if let Some(most) = bound(high).filter(|most| length > *most) {
        say(format!("expected at most {most} {unit}, found {length}"));
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(value: &Value) -> Vec<String> {
        let schema = json!({
            "type": "object", "required": ["zone", "percent"], "additionalProperties": false,
            "properties": {
                "zone": { "type": "string", "minLength": 1, "maxLength": 3, "description": "where" },
                "percent": { "type": "integer", "minimum": 0, "exclusiveMaximum": 100 },
                "mode": { "enum": ["a", "b"] },
                "list": { "type": ["array", "null"], "items": { "type": "boolean" }, "maxItems": 2 },
                "pools": { "type": "object", "additionalProperties": { "type": "integer" } },
                "fixed": { "const": 7 }
            }
        });
        check_schema(&schema).unwrap();
        validate(&schema, value).into_iter().map(|(path, message)| format!("{path}: {message}")).collect()
    }

    #[test]
    fn good_values_pass() {
        assert!(
            problems(&json!({"zone": "äöü", "percent": 99, "mode": "b", "list": [true], "pools": {"x": 1}})).is_empty()
        );
        assert!(problems(&json!({"zone": "a", "percent": 0, "list": null, "fixed": 7})).is_empty());
    }

    #[test]
    fn bad_values_are_named() {
        let found = problems(&json!({
            "zone": "", "percent": 100, "mode": "c", "list": [1, true, true], "pools": {"x": "y"}, "fixed": 8, "colour": 1
        }));
        assert_eq!(
            found,
            [
                "colour: is not a key of this plugin; it knows: fixed, list, mode, percent, pools, zone",
                "fixed: expected 7, found 8",
                "list: expected at most 2 items, found 3",
                "list[0]: expected boolean, found 1",
                "mode: expected one of \"a\", \"b\", found \"c\"",
                "percent: expected less than 100, found 100",
                "pools.x: expected integer, found \"y\"",
                "zone: expected at least 1 characters, found 0",
            ]
        );
        assert_eq!(problems(&json!({"percent": 1.5})), ["zone: is missing", "percent: expected integer, found 1.5"]);
        assert_eq!(problems(&json!([])), [": expected object, found []"]);
    }

    #[test]
    fn schemas_that_cannot_be_checked_are_refused() {
        for (schema, word) in [
            (json!({"properties": {"a": {"pattern": "^x"}}}), "\"pattern\""),
            (json!({"oneOf": []}), "\"oneOf\""),
            (json!({"type": "text"}), "\"type\""),
            (json!({"minLength": -1}), "\"minLength\""),
            (json!(3), "not an object"),
        ] {
            let refused = check_schema(&schema).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
    }
}
