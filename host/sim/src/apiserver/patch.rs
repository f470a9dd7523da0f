//! The patch formats.

pub(crate) mod apply;
pub(crate) mod strategic;

use serde_json::Value;

use super::error::{ApiError, ApiResult};
use super::resources::Resource;
use super::structure::Structure;

/// A patch as sent.
#[derive(Debug)]
pub(crate) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl Patch {
    /// Reads a patch by its content type.
    pub(crate) fn parse(content_type: &str, body: &[u8]) -> ApiResult<Self> {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        let json = || -> ApiResult<Value> {
            serde_json::from_slice(body).map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))
        };
        match media {
            "application/json-patch+json" => serde_json::from_slice(body)
                .map(Self::Json)
                .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}"))),
            "application/merge-patch+json" => json().map(Self::Merge),
            "application/strategic-merge-patch+json" => json().map(Self::Strategic),
            "application/apply-patch+yaml" => serde_norway::from_slice(body)
                .map(Self::Apply)
                .map_err(|e| ApiError::bad_request(format!("error decoding YAML: {e}"))),
            other => Err(ApiError::unsupported_media_type(
                other,
                "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml",
            )),
        }
    }

    /// The object after the patch; server-side apply goes another way ([`apply`]).
    pub(crate) fn patched(&self, resource: &Resource, current: &Value) -> ApiResult<Value> {
        let mut object = current.clone();
        match self {
            Self::Json(patch) => json_patch::patch(&mut object, patch).map_err(|e| {
                let mut error = ApiError::bad_request(format!(
                    "the server rejected our request due to an error in our request: {e}"
                ));
                error.code = 422;
                error.reason = "Invalid";
                error
            })?,
            Self::Merge(patch) => json_patch::merge(&mut object, patch),
            Self::Strategic(patch) => {
                if resource.custom.is_some() {
                    return Err(ApiError::unsupported_media_type(
                        "application/strategic-merge-patch+json",
                        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                    ));
                }
                strategic::merge(Structure(resource), &mut object, patch)?;
            }
            Self::Apply(_) => return Err(ApiError::internal("server-side apply is not a plain patch")),
        }
        Ok(object)
    }
}
