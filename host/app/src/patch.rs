//! Merge patches that hold only what changed.

use serde_json::{Map, Value};

/// The merge patch that turns `old` into `new`; `None` when they are equal. Lists are replaced as a whole, as merge
/// patches do, so a patch with a list in it belongs under an optimistic lock.
#[must_use]
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut patch = Map::new();
            for (key, value) in new {
                let change = match old.get(key) {
                    Some(before) => diff(before, value),
                    None => Some(value.clone()),
                };
                if let Some(change) = change {
                    patch.insert(key.clone(), change);
                }
            }
            for key in old.keys().filter(|k| !new.contains_key(*k)) {
                patch.insert(key.clone(), Value::Null);
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ => (old != new).then(|| new.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_changed() {
        let old = json!({"a": 1, "b": {"c": [1, 2], "d": "x"}, "gone": true});
        assert_eq!(diff(&old, &old), None);
        let new = json!({"a": 1, "b": {"c": [2], "d": "x"}, "more": {"e": 1}});
        assert_eq!(diff(&old, &new), Some(json!({"b": {"c": [2]}, "gone": null, "more": {"e": 1}})));
        assert_eq!(diff(&json!(null), &new), Some(new));
    }
}
