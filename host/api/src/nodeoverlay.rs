//! NodeOverlay: what the catalogue does not know of some instance types, a price or an extended resource.
#![allow(clippy::duplicated_attributes, reason = "the keys of one printcolumn are taken for repeats of another's")]

mod price;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::requirement::Operator;

pub use price::{PriceChange, PriceError};

/// Which instance types and offerings are changed, and how.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    doc = "NodeOverlay changes the price or adds to the capacity of instance types, as decisions about nodes see them.",
    status = "NodeOverlayStatus",
    derive = "PartialEq",
    category = "karpenter",
    shortname = "overlays",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlaySpec {
    /// Which NodePools, instance types and offerings are changed, by the labels that their nodes would have.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub requirements: Vec<LabelRequirement>,
    /// Price per hour instead of the known one, as in 0.35.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\d+(\.\d+)?$"))]
    pub price: Option<String>,
    /// Change of the price per hour: an amount such as +0.02 or -0.5, or a percentage such as +10% or -25.5%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$"))]
    pub price_adjustment: Option<String>,
    /// Extended resources that the nodes have besides, by resource name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::crd::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// Of overlays that change the same thing, the one of higher weight counts. Absent counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

/// One requirement on a node label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelRequirement {
    /// Label that the requirement is about.
    #[schemars(with = "String", length(max = 316), regex(pattern = crate::crd::LABEL_KEY))]
    pub key: Arc<str>,
    /// How the values restrict the label.
    pub operator: Operator,
    /// Values for the operator: at least one for In and NotIn, exactly one integer for Gt, Lt, Gte and Lte, none for
    /// Exists and DoesNotExist.
    #[serde(default = "no_values", skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<String>", extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Arc<[Arc<str>]>,
}

fn no_values() -> Arc<[Arc<str>]> {
    Arc::new([])
}

/// What was last seen of a NodeOverlay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlayStatus {
    /// What is known about the overlay's state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::condition::list_map")]
    pub conditions: Vec<Condition>,
}

impl NodeOverlay {
    /// Weight, with the default of 0.
    pub fn weight(&self) -> i32 {
        self.spec.weight.unwrap_or(0)
    }

    /// What it does to prices; `None` = nothing.
    ///
    /// # Errors
    /// When the text is no price, or both kinds are given.
    pub fn price_change(&self) -> Result<Option<PriceChange>, PriceError> {
        match (&self.spec.price, &self.spec.price_adjustment) {
            (Some(_), Some(_)) => Err(PriceError::Both),
            (Some(price), None) => PriceChange::absolute(price).map(Some),
            (None, Some(change)) => PriceChange::adjustment(change).map(Some),
            (None, None) => Ok(None),
        }
    }
}
