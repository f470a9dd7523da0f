//! Errors as the Kubernetes API reports them: a `Status` object with code, reason, message and details.

use serde_json::{Value, json};

/// A refused request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason} ({code}): {message}")]
pub struct ApiError {
    /// HTTP status.
    pub code: u16,
    /// Machine-readable reason (`NotFound`, `Conflict`, …).
    pub reason: &'static str,
    /// What a person reads.
    pub message: String,
    /// `status.details`.
    pub details: Option<Value>,
}

/// Result of an API operation.
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404 for an object.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", qualified(group, plural)))
            .with_details(json!({"name": name, "group": group, "kind": plural}))
    }

    /// 404 for a path that names no resource.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// 409 when a name is taken.
    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} \"{name}\" already exists", qualified(group, plural)))
            .with_details(json!({"name": name, "group": group, "kind": plural}))
    }

    /// 409 when the object was changed meanwhile, or a precondition does not hold.
    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(group, plural));
        Self::new(409, "Conflict", message).with_details(json!({"name": name, "group": group, "kind": plural}))
    }

    /// 409 of a server-side apply: one cause per field that another manager owns.
    pub fn apply_conflict(conflicts: &[(String, String)]) -> Self {
        let causes: Vec<Value> = conflicts
            .iter()
            .map(|(manager, field)| {
                json!({"reason": "FieldManagerConflict", "message": format!("conflict with \"{manager}\""), "field": field})
            })
            .collect();
        let plural = if conflicts.len() == 1 { "conflict" } else { "conflicts" };
        let first: Vec<String> =
            conflicts.iter().map(|(manager, field)| format!("conflict with \"{manager}\": {field}")).collect();
        Self::new(409, "Conflict", format!("Apply failed with {} {plural}: {}", conflicts.len(), first.join("\n")))
            .with_details(json!({"causes": causes}))
    }

    /// 410: the resource version asked for is no longer in the watch history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 415.
    pub fn unsupported_media_type(found: &str, supported: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {supported}; found: {found}"
            ),
        )
    }

    /// 422 with one cause per field.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let texts: Vec<String> = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
        let text = if let [one] = texts.as_slice() { one.clone() } else { format!("[{}]", texts.join(", ")) };
        let details: Vec<Value> =
            causes.iter().map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field})).collect();
        Self::new(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {text}"))
            .with_details(json!({"name": name, "group": group, "kind": kind, "causes": details}))
    }

    /// 403.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        Self::new(403, "Forbidden", format!("{} \"{name}\" is forbidden: {why}", qualified(group, plural)))
            .with_details(json!({"name": name, "group": group, "kind": plural}))
    }

    /// 429 of an eviction that a PodDisruptionBudget refuses.
    pub fn too_many_requests(message: impl Into<String>, causes: Vec<Value>, retry_after_s: u32) -> Self {
        let mut details = json!({"causes": causes});
        if retry_after_s > 0 {
            details["retryAfterSeconds"] = json!(retry_after_s);
        }
        Self::new(429, "TooManyRequests", message).with_details(details)
    }

    /// 500.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }

    /// 504 for a resource version from the future.
    pub fn too_large_resource_version(asked: u64, now: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {now}");
        Self::new(504, "Timeout", message).with_details(
            json!({"retryAfterSeconds": 1, "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}),
        )
    }

    /// As a `Status` object.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

/// One field that does not validate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path in dotted form, as Kubernetes writes it.
    pub field: String,
    /// `FieldValueInvalid`, `FieldValueRequired`, …
    pub reason: &'static str,
    /// What was found and what is allowed.
    pub message: String,
}

fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}
