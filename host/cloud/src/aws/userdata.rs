//! User data: what a new machine is told, by image family.

mod mime;
mod nodeadm;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mortise_engine::taint::Taint;
use serde_json::Value;

use super::cluster::ClusterInfo;
use crate::catalog_build::AmiFamily;

/// EC2's limit, before base64.
const LIMIT: usize = 16_384;

/// What goes into user data.
#[derive(Clone, Debug)]
pub(crate) struct Bootstrap<'a> {
    pub(crate) family: AmiFamily,
    pub(crate) cluster: &'a ClusterInfo,
    /// Labels for the kubelet; those it may not give itself are left out here.
    pub(crate) labels: &'a BTreeMap<Arc<str>, Arc<str>>,
    /// Taints and startup taints.
    pub(crate) taints: &'a [Taint],
    /// `spec.kubelet` as written.
    pub(crate) kubelet: &'a BTreeMap<String, Value>,
    pub(crate) max_pods: i64,
    pub(crate) raid0: bool,
    /// `spec.userData`.
    pub(crate) custom: Option<&'a str>,
}

/// Why there is no user data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UserDataError {
    /// The cluster's endpoint, CA or CIDR is missing: what is.
    #[error("the cluster's {0} is not known, and nodes need it to join")]
    Cluster(&'static str),
    #[error("spec.userData: {0}")]
    Custom(String),
    #[error("spec.userData: user data is limited to {LIMIT} bytes, with this it has {0}")]
    TooLong(usize),
    #[error("amiFamily {0} is not acted on yet; use AL2023 or Custom")]
    Family(&'static str),
}

impl Bootstrap<'_> {
    /// User data in base64, as a launch template takes it; `None` = none at all.
    pub(crate) fn encoded(&self) -> Result<Option<String>, UserDataError> {
        let text = match self.family {
            AmiFamily::Al2023 => self.al2023()?,
            AmiFamily::Custom => match self.custom {
                Some(text) if !text.is_empty() => text.to_owned(),
                _ => return Ok(None),
            },
            other => return Err(UserDataError::Family(other.as_str())),
        };
        if text.len() > LIMIT {
            return Err(UserDataError::TooLong(text.len()));
        }
        Ok(Some(STANDARD.encode(text)))
    }

    /// The user's parts first, ours last: nodeadm merges in this order, so that what joins the node to its cluster wins.
    fn al2023(&self) -> Result<String, UserDataError> {
        let mut parts = match self.custom {
            Some(text) if !text.trim().is_empty() => mime::parts_of(text).map_err(UserDataError::Custom)?,
            _ => Vec::new(),
        };
        parts.push(mime::Part::node_config(&nodeadm::node_config(self)?));
        Ok(mime::join(&parts))
    }
}
