//! Manifests as a person has them: files, directories and stdin, several documents each, Lists and workloads among them.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// Replicas of one workload that are taken; more is a slip of the finger, not a plan.
const MOST_REPLICAS: u64 = 200_000;

/// One object and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// File, and its number in there when there are several.
    pub(crate) source: String,
    /// The object.
    pub(crate) value: Value,
}

impl Document {
    /// `apiVersion`, empty when missing.
    pub(crate) fn api_version(&self) -> &str {
        self.value["apiVersion"].as_str().unwrap_or_default()
    }

    /// `kind`, empty when missing.
    pub(crate) fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    /// `metadata.name`, empty when missing.
    pub(crate) fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// What is wrong with the input, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputError {
    /// File and document.
    pub(crate) source: String,
    /// What was found and what to do.
    pub(crate) message: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.message)
    }
}

/// Reads every document of every path; `-` is stdin, a directory gives its `.yaml`, `.yml` and `.json` files by name.
///
/// # Errors
/// All that is wrong with any of them, not just the first.
pub(crate) fn read(paths: &[String]) -> Result<Vec<Document>, Vec<InputError>> {
    let mut documents = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        if path == "-" {
            let mut text = String::new();
            match std::io::stdin().read_to_string(&mut text) {
                Ok(_) => parse("stdin", &text, &mut documents, &mut errors),
                Err(error) => errors.push(InputError { source: "stdin".into(), message: error.to_string() }),
            }
            continue;
        }
        match files(Path::new(path)) {
            Ok(files) if files.is_empty() => errors.push(InputError {
                source: path.clone(),
                message: "the directory holds no .yaml, .yml or .json file".into(),
            }),
            Ok(files) => {
                for file in files {
                    let source = file.display().to_string();
                    match std::fs::read_to_string(&file) {
                        Ok(text) => parse(&source, &text, &mut documents, &mut errors),
                        Err(error) => errors.push(InputError { source, message: error.to_string() }),
                    }
                }
            }
            Err(error) => errors.push(InputError { source: path.clone(), message: error.to_string() }),
        }
    }
    if errors.is_empty() { Ok(documents) } else { Err(errors) }
}

fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        let known = file.extension().and_then(|e| e.to_str()).is_some_and(|e| matches!(e, "yaml" | "yml" | "json"));
        if known && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn parse(source: &str, text: &str, documents: &mut Vec<Document>, errors: &mut Vec<InputError>) {
    for (index, document) in serde_norway::Deserializer::from_str(text).enumerate() {
        let place = if index == 0 { source.to_owned() } else { format!("{source} (document {})", index + 1) };
        match Value::deserialize(document) {
            Ok(Value::Null) => {}
            Ok(value) => flatten(&place, value, documents, errors),
            // What follows a syntax error in a stream cannot be told apart from it.
            Err(error) => {
                errors.push(InputError { source: place, message: format!("is not YAML: {error}") });
                return;
            }
        }
    }
}

fn flatten(source: &str, value: Value, documents: &mut Vec<Document>, errors: &mut Vec<InputError>) {
    let fault = |message: String| InputError { source: source.to_owned(), message };
    let Some(object) = value.as_object() else {
        let found = if value.is_array() { "a list" } else { "plain text" };
        errors.push(fault(format!("a Kubernetes object was expected, found {found}")));
        return;
    };
    if let Some(items) = object.get("items").and_then(Value::as_array)
        && object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
    {
        for (index, item) in items.iter().enumerate() {
            flatten(&format!("{source} items[{index}]"), item.clone(), documents, errors);
        }
        return;
    }
    for field in ["apiVersion", "kind"] {
        if object.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            errors.push(fault(format!("{field}: missing; every Kubernetes object needs apiVersion and kind")));
            return;
        }
    }
    if value["metadata"]["name"].as_str().is_none() && value["metadata"]["generateName"].as_str().is_none() {
        errors.push(fault(format!("metadata.name: missing on a {}", value["kind"].as_str().unwrap_or_default())));
        return;
    }
    documents.push(Document { source: source.to_owned(), value });
}

/// Pods that a document asks for, as the scheduler would leave them: pending and unschedulable. Empty for kinds that
/// make no pods.
///
/// # Errors
/// Names the field of the workload that cannot be read.
pub(crate) fn pods(document: &Document) -> Result<Vec<Value>, InputError> {
    let spec = &document.value["spec"];
    let count = |field: &str, default: u64| -> Result<u64, InputError> {
        let fault = |found: &Value| InputError {
            source: document.source.clone(),
            message: format!("spec.{field}: expected a number from 0 to {MOST_REPLICAS}, found {found}"),
        };
        match &spec[field] {
            Value::Null => Ok(default),
            found => found.as_u64().filter(|n| *n <= MOST_REPLICAS).ok_or_else(|| fault(found)),
        }
    };
    let (replicas, template) = match document.kind() {
        "Pod" => {
            let bound = spec["nodeName"].as_str().is_some_and(|name| !name.is_empty());
            let mut pod = document.value.clone();
            if !bound {
                pend(&mut pod);
            }
            return Ok(vec![pod]);
        }
        "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController" => {
            (count("replicas", 1)?, &spec["template"])
        }
        "Job" => (count("parallelism", 1)?.min(count("completions", MOST_REPLICAS)?), &spec["template"]),
        _ => return Ok(Vec::new()),
    };
    if !template["spec"].is_object() {
        return Err(InputError {
            source: document.source.clone(),
            message: format!("spec.template.spec: missing on {} {}", document.kind(), document.name()),
        });
    }
    let namespace = document.value["metadata"]["namespace"].as_str().unwrap_or("default");
    Ok((0..replicas)
        .map(|index| {
            let name = format!("{}-{index}", document.name());
            let mut pod = json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "uid": format!("{namespace}/{}/{name}", document.kind()),
                    "labels": template["metadata"]["labels"],
                    "annotations": template["metadata"]["annotations"],
                },
                "spec": template["spec"],
            });
            pend(&mut pod);
            pod
        })
        .collect())
}

fn pend(pod: &mut Value) {
    pod["status"] = json!({
        "phase": "Pending",
        "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }],
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Vec<Document>, Vec<InputError>) {
        let (mut documents, mut errors) = (Vec::new(), Vec::new());
        parse("f.yaml", text, &mut documents, &mut errors);
        (documents, errors)
    }

    #[test]
    fn a_deployment_becomes_its_pending_pods() {
        let (documents, errors) = parsed(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 3\n  template:\n    spec: {containers: [{name: c}]}\n",
        );
        assert!(errors.is_empty(), "{errors:?}");
        let pods = pods(&documents[0]).unwrap();
        assert_eq!(
            pods.iter().map(|p| p["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>(),
            ["web-0", "web-1", "web-2"]
        );
        assert_eq!(pods[0]["status"]["conditions"][0]["reason"], "Unschedulable");
    }

    #[test]
    fn lists_and_several_documents_are_taken_apart() {
        let (documents, errors) = parsed(
            "apiVersion: v1\nkind: PodList\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n",
        );
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(documents.iter().map(Document::name).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn garbage_is_named_with_its_place() {
        for (text, expected) in [
            ("just words", "found plain text"),
            ("- a\n- b", "found a list"),
            ("kind: Pod\nmetadata: {name: a}", "apiVersion: missing"),
            ("apiVersion: v1\nkind: Pod\nspec: {}", "metadata.name: missing on a Pod"),
            ("a: [", "is not YAML"),
            ("\u{0}\u{1}", "is not YAML"),
        ] {
            let (_, errors) = parsed(text);
            assert!(errors.iter().any(|e| e.to_string().contains(expected)), "{text:?} gave {errors:?}");
        }
    }

    #[test]
    fn replicas_that_are_no_number_are_refused_by_field() {
        let (documents, _) = parsed(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many, template: {spec: {}}}\n",
        );
        let error = pods(&documents[0]).unwrap_err();
        assert!(error.message.contains("spec.replicas") && error.message.contains("many"), "{error}");
    }

    #[test]
    fn a_path_that_does_not_exist_is_an_error() {
        assert!(read(&["/no/such/file.yaml".into()]).unwrap_err()[0].to_string().starts_with("/no/such/file.yaml: "));
    }
}
