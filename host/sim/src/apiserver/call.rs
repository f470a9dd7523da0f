//! One request on a resource, and the answer.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::Inner;
use super::admit::Unknown;
use super::error::{ApiError, ApiResult};
use super::managed::Writer;
use super::request::{Query, ResourcePath};
use super::resources::Resource;
use super::store::{Key, Object};

/// Everything a verb needs to know.
pub(crate) struct Call {
    pub(crate) api: Arc<Inner>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) path: ResourcePath,
    pub(crate) query: Query,
    /// What stands before the slash in the User-Agent.
    pub(crate) agent: String,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// What a write answers with.
pub(crate) struct Written {
    pub(crate) code: u16,
    pub(crate) value: Value,
    pub(crate) warnings: Vec<String>,
}

impl Written {
    pub(crate) fn new(code: u16, value: Value) -> Self {
        Self { code, value, warnings: Vec::new() }
    }
}

impl Call {
    pub(crate) fn name(&self) -> ApiResult<&str> {
        self.path.name.as_deref().ok_or_else(ApiError::method_not_allowed)
    }

    pub(crate) fn key(&self) -> ApiResult<Key> {
        let namespace = if self.resource.namespaced {
            self.path
                .namespace
                .clone()
                .ok_or_else(|| ApiError::bad_request("namespace: not given, want .../namespaces/NAMESPACE/..."))?
        } else {
            String::new()
        };
        Ok((namespace, self.name()?.to_owned()))
    }

    pub(crate) fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(&self.resource.group, &self.resource.plural, name)
    }

    pub(crate) fn current(&self, key: &Key) -> ApiResult<Arc<Object>> {
        self.api.store().get(&self.resource.bucket, key).ok_or_else(|| self.not_found(&key.1))
    }

    pub(crate) fn writer(&self) -> Writer {
        Writer {
            manager: self.query.get("fieldManager").unwrap_or(&self.agent).to_owned(),
            subresource: self.path.subresource.clone().unwrap_or_default(),
            api_version: self.resource.api_version(),
            time: self.api.clock.now_rfc3339(),
        }
    }

    pub(crate) fn unknown_fields(&self) -> ApiResult<Unknown> {
        match self.query.get("fieldValidation") {
            Some("Ignore") => Ok(Unknown::Ignore),
            None | Some("Warn") => Ok(Unknown::Warn),
            Some("Strict") => Ok(Unknown::Strict),
            Some(other) => Err(ApiError::bad_request(format!(
                "query parameter fieldValidation: found \"{other}\", want Ignore, Warn or Strict"
            ))),
        }
    }

    /// The body as an object; `what` is its kind, filled in when the body does not say.
    pub(crate) fn object(&self) -> ApiResult<Value> {
        let value = self.decode()?;
        let (want_version, want_kind) = (self.resource.api_version(), self.resource.kind.as_str());
        let found = (value["apiVersion"].as_str().unwrap_or_default(), value["kind"].as_str().unwrap_or_default());
        let mut value = match found {
            ("", "") => value,
            (version, kind) if version == want_version && kind == want_kind => value,
            (version, kind) => {
                return Err(ApiError::bad_request(format!(
                    "the object provided is {version}, Kind={kind}, but the request is for {want_version}, Kind={want_kind}"
                )));
            }
        };
        value["apiVersion"] = Value::String(want_version);
        value["kind"] = Value::String(want_kind.to_owned());
        Ok(if super::events::is_new_style(&value) { super::events::to_core(&value) } else { value })
    }

    /// The body, JSON or YAML.
    pub(crate) fn decode(&self) -> ApiResult<Value> {
        let media = self.content_type.split(';').next().unwrap_or_default().trim();
        let bad = |e: &dyn std::fmt::Display| ApiError::bad_request(format!("error decoding the body: {e}"));
        let value: Value = match media {
            "" | "application/json" => serde_json::from_slice(&self.body).map_err(|e| bad(&e))?,
            "application/yaml" => serde_norway::from_slice(&self.body).map_err(|e| bad(&e))?,
            super::protobuf::MEDIA_TYPE => super::protobuf::decode(&self.body)?,
            other => return Err(ApiError::unsupported_media_type(other, "application/json, application/yaml")),
        };
        if value.is_object() { Ok(value) } else { Err(ApiError::bad_request("error decoding the body: not an object")) }
    }

    /// The body as options (DeleteOptions): may be empty.
    pub(crate) fn options(&self) -> ApiResult<Value> {
        if self.body.iter().all(u8::is_ascii_whitespace) { Ok(Value::Null) } else { self.decode() }
    }
}
