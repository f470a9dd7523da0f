//! Label and field selectors of list, watch and deletecollection.

use serde_json::Value;

use super::error::{ApiError, ApiResult};
use super::request::Query;
use super::resources::Resource;

/// Both selectors of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelTerm>,
    fields: Vec<FieldTerm>,
}

#[derive(Clone, Debug)]
struct LabelTerm {
    key: String,
    test: LabelTest,
}

#[derive(Clone, Debug)]
enum LabelTest {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

#[derive(Clone, Debug)]
struct FieldTerm {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    pub(crate) fn from_query(resource: &Resource, query: &Query) -> ApiResult<Self> {
        let fields = query.get("fieldSelector").map(parse_fields).transpose()?.unwrap_or_default();
        if let Some(term) = fields.iter().find(|term| !resource.is_selectable(&term.path)) {
            return Err(ApiError::bad_request(format!("field label not supported: {}", term.path)));
        }
        Ok(Self { labels: query.get("labelSelector").map(parse_labels).transpose()?.unwrap_or_default(), fields })
    }

    /// A `metav1.LabelSelector` (matchLabels, matchExpressions). `None` when it is absent, which selects nothing.
    pub(crate) fn from_label_selector(selector: &Value) -> Option<Self> {
        let selector = selector.as_object()?;
        let mut labels = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            labels.push(LabelTerm { key: key.clone(), test: LabelTest::In(vec![value]) });
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            let values = expression["values"].as_array().into_iter().flatten();
            let values: Vec<String> = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let test = match expression["operator"].as_str() {
                Some("In") => LabelTest::In(values),
                Some("NotIn") => LabelTest::NotIn(values),
                Some("Exists") => LabelTest::Exists,
                Some("DoesNotExist") => LabelTest::Absent,
                _ => return None,
            };
            labels.push(LabelTerm { key, test });
        }
        Some(Self { labels, fields: Vec::new() })
    }

    /// Also only the object of this name: a watch on one object.
    pub(crate) fn and_name(mut self, name: &str) -> Self {
        self.fields.push(FieldTerm { path: "metadata.name".to_owned(), value: name.to_owned(), equal: true });
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|t| t.matches(&object["metadata"]["labels"]))
            && self.fields.iter().all(|t| (field(object, &t.path) == t.value) == t.equal)
    }

    /// Whether a set of labels matches, for selectors of pods.
    pub(crate) fn matches_labels(&self, labels: &Value) -> bool {
        self.labels.iter().all(|t| t.matches(labels))
    }
}

impl LabelTerm {
    fn matches(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).and_then(Value::as_str);
        match &self.test {
            LabelTest::In(values) => value.is_some_and(|v| values.iter().any(|x| x == v)),
            LabelTest::NotIn(values) => value.is_none_or(|v| values.iter().all(|x| x != v)),
            LabelTest::Exists => value.is_some(),
            LabelTest::Absent => value.is_none(),
            LabelTest::Greater(bound) => value.and_then(|v| v.parse().ok()).is_some_and(|v: i64| v > *bound),
            LabelTest::Less(bound) => value.and_then(|v| v.parse().ok()).is_some_and(|v: i64| v < *bound),
        }
    }
}

/// The value of a dotted field path as a string; absent = empty, as the API server takes it.
fn field(object: &Value, path: &str) -> String {
    let mut at = object;
    for part in path.split('.') {
        at = &at[part];
    }
    match at {
        Value::String(text) => text.clone(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        _ => String::new(),
    }
}

fn parse_fields(text: &str) -> ApiResult<Vec<FieldTerm>> {
    let bad = |term: &str| {
        ApiError::bad_request(format!(
            "invalid field selector: \"{term}\"; can't understand it, want path=value or path!=value"
        ))
    };
    let mut terms = Vec::new();
    for term in text.split(',').map(str::trim).filter(|t| !t.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (path, value, true)
        } else {
            return Err(bad(term));
        };
        let value = value.replace("\\,", ",").replace("\\=", "=");
        terms.push(FieldTerm { path: path.trim().to_owned(), value, equal });
    }
    Ok(terms)
}

/// Splits at commas that are not within parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0_i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

fn parse_labels(text: &str) -> ApiResult<Vec<LabelTerm>> {
    split_terms(text).into_iter().map(str::trim).filter(|t| !t.is_empty()).map(parse_label).collect()
}

fn parse_label(term: &str) -> ApiResult<LabelTerm> {
    let bad = || ApiError::bad_request(format!("unable to parse requirement: invalid label selector term \"{term}\""));
    let set = |text: &str| -> ApiResult<Vec<String>> {
        let inner = text.trim().strip_prefix('(').and_then(|t| t.strip_suffix(')')).ok_or_else(bad)?;
        Ok(inner.split(',').map(|v| v.trim().to_owned()).collect())
    };
    let make = |key: &str, test: LabelTest| LabelTerm { key: key.trim().to_owned(), test };
    if let Some(key) = term.strip_prefix('!') {
        return Ok(make(key, LabelTest::Absent));
    }
    if let Some((key, values)) = term
        .split_once(" notin ")
        .or_else(|| term.split_once(" notin(").map(|_| term.split_at(term.find(" notin").unwrap_or(0))))
    {
        return Ok(make(key, LabelTest::NotIn(set(values.trim_start().trim_start_matches("notin"))?)));
    }
    if let Some((key, values)) = term
        .split_once(" in ")
        .or_else(|| term.split_once(" in(").map(|_| term.split_at(term.find(" in(").unwrap_or(0))))
    {
        let values = values.trim_start();
        return Ok(make(key, LabelTest::In(set(values.strip_prefix("in").unwrap_or(values))?)));
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Ok(make(key, LabelTest::NotIn(vec![value.trim().to_owned()])));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Ok(make(key, LabelTest::In(vec![value.trim().to_owned()])));
    }
    if let Some((key, value)) = term.split_once('>') {
        return Ok(make(key, LabelTest::Greater(value.trim().parse().map_err(|_| bad())?)));
    }
    if let Some((key, value)) = term.split_once('<') {
        return Ok(make(key, LabelTest::Less(value.trim().parse().map_err(|_| bad())?)));
    }
    if term.chars().any(|c| c.is_whitespace() || matches!(c, '(' | ')')) {
        return Err(bad());
    }
    Ok(make(term, LabelTest::Exists))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(text: &str) -> Selector {
        Selector { labels: parse_labels(text).unwrap(), fields: Vec::new() }
    }

    #[test]
    fn label_selectors_select() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "front", "n": "7"}}});
        for (text, expected) in [
            ("app=web", true),
            ("app==web,tier!=front", false),
            ("app in (web, db)", true),
            ("app in(db)", false),
            ("app notin (db)", true),
            ("app notin(web)", false),
            ("zone notin (a)", true),
            ("app", true),
            ("!app", false),
            ("!zone", true),
            ("n>6", true),
            ("n<6", false),
        ] {
            assert_eq!(labels(text).matches(&object), expected, "{text}");
        }
        assert!(parse_labels("app in web").is_err());
    }

    #[test]
    fn field_selectors_select() {
        let pod = json!({"metadata": {"name": "a", "namespace": "x"}, "spec": {"nodeName": "n1"}, "status": {}});
        let select = |text: &str| Selector { labels: vec![], fields: parse_fields(text).unwrap() }.matches(&pod);
        assert!(select("spec.nodeName=n1,metadata.name=a"));
        assert!(!select("spec.nodeName!=n1"));
        assert!(select("status.phase="));
        assert!(parse_fields("spec.nodeName").is_err());
    }
}
