//! What every write passes before it is stored: names, types, defaults, schemas, and the rules that objects keep.

use serde_json::Value;

use super::error::{ApiError, ApiResult, FieldError};
use super::resources::Resource;
use super::{defaults, events, types};

/// How unknown fields are taken (`fieldValidation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    Ignore,
    Warn,
    Strict,
}

/// Checks and completes an object; returns warnings.
pub(crate) fn admit(resource: &Resource, object: &mut Value, unknown: Unknown) -> ApiResult<Vec<String>> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut dropped = Vec::new();
    match &resource.custom {
        Some(custom) => {
            dropped = custom.schema.admit(object);
            refuse_unknown(unknown, &dropped)?;
            let errors = custom.schema.validate(object);
            if !errors.is_empty() {
                return Err(ApiError::invalid(&resource.group, &resource.kind, &name, &errors));
            }
        }
        None => {
            // A CustomResourceDefinition holds no quantities, only `default`s that may be numbers.
            if resource.kind != "CustomResourceDefinition" {
                types::quantities_to_text(object);
            }
            let lookup = if events::is_new_style(object) { "events.k8s.io" } else { &resource.group };
            if let Some(typed) = types::typed(lookup, &resource.kind) {
                let normal = (typed.normalise)(object).map_err(|e| {
                    ApiError::bad_request(format!(
                        "{} in version \"{}\" cannot be handled as a {}: {e}",
                        resource.kind, resource.version, resource.kind
                    ))
                })?;
                dropped = types::dropped(object, &normal);
                refuse_unknown(unknown, &dropped)?;
                *object = normal;
            }
            defaults::fill(&resource.group, &resource.kind, object);
        }
    }
    let mut errors = Vec::new();
    check_name(resource, &name, &mut errors);
    check_labels(object, &mut errors);
    check_builtin(resource, object, &mut errors);
    if !errors.is_empty() {
        return Err(ApiError::invalid(&resource.group, &resource.kind, &name, &errors));
    }
    Ok(if unknown == Unknown::Warn {
        dropped.iter().map(|f| format!("unknown field \"{f}\"")).collect()
    } else {
        Vec::new()
    })
}

fn refuse_unknown(unknown: Unknown, dropped: &[String]) -> ApiResult<()> {
    if unknown != Unknown::Strict || dropped.is_empty() {
        return Ok(());
    }
    let fields: Vec<String> = dropped.iter().map(|f| format!("unknown field \"{f}\"")).collect();
    Err(ApiError::bad_request(format!("strict decoding error: {}", fields.join(", "))))
}

fn invalid(field: &str, found: &Value, why: &str) -> FieldError {
    FieldError {
        field: field.to_owned(),
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {found}: {why}"),
    }
}

fn required(field: &str, why: &str) -> FieldError {
    let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
    FieldError { field: field.to_owned(), reason: "FieldValueRequired", message }
}

/// DNS subdomain (RFC 1123); roles and role bindings may hold any path segment.
fn check_name(resource: &Resource, name: &str, errors: &mut Vec<FieldError>) {
    if &*resource.group == "rbac.authorization.k8s.io" {
        return;
    }
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|label| label.starts_with(edge) && label.ends_with(edge))
        && name.chars().all(|c| edge(c) || c == '-' || c == '.');
    if !valid {
        errors.push(invalid(
            "metadata.name",
            &Value::from(name),
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        ));
    }
}

fn check_labels(object: &Value, errors: &mut Vec<FieldError>) {
    let edge = |c: char| c.is_ascii_alphanumeric();
    for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
        let text = value.as_str().unwrap_or("\u{0}");
        let valid = text.len() <= 63
            && (text.is_empty() || text.starts_with(edge) && text.ends_with(edge))
            && text.chars().all(|c| edge(c) || matches!(c, '-' | '_' | '.'));
        if !valid {
            errors.push(invalid(
                "metadata.labels",
                value,
                &format!("label {key}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character, at most 63 of them"),
            ));
        }
    }
}

fn check_builtin(resource: &Resource, object: &Value, errors: &mut Vec<FieldError>) {
    match (&*resource.group, resource.kind.as_str()) {
        ("", "Pod") => check_pod_spec(&object["spec"], "spec", errors),
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet") => {
            let spec = &object["spec"];
            match super::selector::Selector::from_label_selector(&spec["selector"]) {
                Some(selector) if !selector.is_empty() => {
                    if !selector.matches_labels(&spec["template"]["metadata"]["labels"]) {
                        let labels = &spec["template"]["metadata"]["labels"];
                        errors.push(invalid(
                            "spec.template.metadata.labels",
                            labels,
                            "`selector` does not match template `labels`",
                        ));
                    }
                }
                _ => errors.push(required("spec.selector", "")),
            }
            check_pod_spec(&spec["template"]["spec"], "spec.template.spec", errors);
        }
        _ => {}
    }
}

fn check_pod_spec(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        errors.push(required(&format!("{path}.containers"), ""));
    }
    for (at, container) in containers.iter().enumerate() {
        if container["name"].as_str().unwrap_or_default().is_empty() {
            errors.push(required(&format!("{path}.containers[{at}].name"), ""));
        }
        if container["image"].as_str().unwrap_or_default().is_empty() {
            errors.push(required(&format!("{path}.containers[{at}].image"), ""));
        }
        for (resource, amount) in container["resources"]["requests"].as_object().into_iter().flatten() {
            let limit = &container["resources"]["limits"][resource];
            if let (Some(asked), Some(most)) = (quantity(amount), quantity(limit))
                && asked > most
            {
                let field = format!("{path}.containers[{at}].resources.requests");
                errors.push(invalid(
                    &field,
                    amount,
                    &format!(
                        "must be less than or equal to {resource} limit of {}",
                        limit.as_str().unwrap_or_default()
                    ),
                ));
            }
        }
    }
}

fn quantity(value: &Value) -> Option<f64> {
    crate::quantity::parse_milli(value.as_str()?).map(|milli| milli as f64)
}
