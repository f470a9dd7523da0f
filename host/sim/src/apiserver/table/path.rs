//! The JSONPath that printer columns and scale subresources use: fields (with `\.` for a dot), `['field']`, `[0]`,
//! `[*]` and `[?(@.field=="value")]`.

use serde_json::Value;

/// Values at a path; empty when it leads nowhere or is not understood.
pub(crate) fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut at = vec![object];
    let mut rest = path.trim();
    while !rest.is_empty() {
        let step;
        (step, rest) = next_step(rest);
        at = match step {
            Some(Step::Field(name)) => at.into_iter().filter_map(|v| v.get(&name)).collect(),
            Some(Step::Index(index)) => at.into_iter().filter_map(|v| v.get(index)).collect(),
            Some(Step::All) => at.into_iter().flat_map(|v| v.as_array().into_iter().flatten()).collect(),
            Some(Step::Filter(field, value)) => {
                let items = at.into_iter().flat_map(|v| v.as_array().into_iter().flatten());
                items.filter(|item| find(item, &field).iter().any(|found| **found == value)).collect()
            }
            None => return Vec::new(),
        };
    }
    at.into_iter().filter(|v| !v.is_null()).collect()
}

enum Step {
    Field(String),
    Index(usize),
    All,
    Filter(String, Value),
}

fn next_step(path: &str) -> (Option<Step>, &str) {
    if let Some(inner) = path.strip_prefix('[') {
        // A filter holds brackets of its own only within quotes, which printer columns do not do.
        let Some((inside, rest)) = inner.split_once(']') else { return (None, "") };
        return (bracket(inside), rest);
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let mut name = String::new();
    let mut chars = path.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => return (Some(Step::Field(name)), &path[at..]),
            other => name.push(other),
        }
    }
    (Some(Step::Field(name)), "")
}

fn bracket(inside: &str) -> Option<Step> {
    if inside == "*" {
        return Some(Step::All);
    }
    if let Ok(index) = inside.parse() {
        return Some(Step::Index(index));
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        let (field, value) = filter.split_once("==")?;
        let value = value.trim();
        let text = value.trim_matches(['"', '\'']);
        let value = if text.len() == value.len() { serde_json::from_str(value).ok()? } else { Value::from(text) };
        return Some(Step::Filter(field.trim().strip_prefix('@')?.to_owned(), value));
    }
    Some(Step::Field(inside.trim_matches(['"', '\'']).to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::find;

    #[test]
    fn paths_find() {
        let object = json!({
            "metadata": {"labels": {"karpenter.sh/nodepool": "a", "node.kubernetes.io/instance-type": "m5.large"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Launched", "status": "False"}]},
        });
        assert_eq!(find(&object, r".metadata.labels.karpenter\.sh/nodepool"), [&json!("a")]);
        assert_eq!(find(&object, r".metadata.labels['node.kubernetes.io/instance-type']"), [&json!("m5.large")]);
        assert_eq!(find(&object, r#".status.conditions[?(@.type=="Ready")].status"#), [&json!("True")]);
        assert_eq!(find(&object, ".status.conditions[1].type"), [&json!("Launched")]);
        assert_eq!(find(&object, ".status.conditions[*].type").len(), 2);
        assert!(find(&object, ".spec.nothing").is_empty());
    }
}
