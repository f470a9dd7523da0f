//! JSON merge patches (RFC 7386).

use serde_json::{Map, Value};

/// What turns `from` into `to`; `None` when nothing has to change. Lists are replaced whole.
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            let mut patch = Map::new();
            for (key, value) in to {
                match from.get(key) {
                    Some(old) => {
                        if let Some(change) = merge_patch(old, value) {
                            patch.insert(key.clone(), change);
                        }
                    }
                    None => {
                        patch.insert(key.clone(), value.clone());
                    }
                }
            }
            for key in from.keys().filter(|key| !to.contains_key(*key)) {
                patch.insert(key.clone(), Value::Null);
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (from, to) => (from != to).then(|| to.clone()),
    }
}
