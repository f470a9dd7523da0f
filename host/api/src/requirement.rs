//! What NodePools and NodeClaims share: requirements on node labels and the reference to a node class.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;

open_enum! {
    /// How a requirement's values restrict its label.
    pub enum Operator {
        /// The label is one of the values.
        In = "In",
        /// The label is none of the values, or absent.
        NotIn = "NotIn",
        /// The label is present.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
        /// The label is an integer greater than the one value.
        Gt = "Gt",
        /// The label is an integer less than the one value.
        Lt = "Lt",
        /// The label is an integer greater than or equal to the one value.
        Gte = "Gte",
        /// The label is an integer less than or equal to the one value.
        Lte = "Lte",
    }
}

impl Operator {
    /// Whether it compares integers and so takes exactly one value.
    pub fn is_bound(&self) -> bool {
        matches!(self, Self::Gt | Self::Lt | Self::Gte | Self::Lte)
    }
}

/// One requirement on a node label.
///
/// A NodeClaim may name 600 instance types, and thousands of claims of one round name the same ones, so key and values
/// are shared strings: whoever stores claims may replace equal lists by clones of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// Label that the requirement is about.
    #[schemars(with = "String", length(max = 316), regex(pattern = crate::crd::LABEL_KEY))]
    pub key: Arc<str>,
    /// How the values restrict the label.
    pub operator: Operator,
    /// Values for the operator: at least one for In, exactly one integer for Gt, Lt, Gte and Lte, none for Exists and
    /// DoesNotExist.
    #[serde(default = "no_values", skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<String>", extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Arc<[Arc<str>]>,
    /// Least number of different values of this label that the instance types offered at launch must keep, so that
    /// the launch stays flexible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<i32>,
}

fn no_values() -> Arc<[Arc<str>]> {
    Arc::new([])
}

impl Requirement {
    /// A requirement without `minValues`.
    pub fn new<V: Into<Arc<str>>>(key: &str, operator: Operator, values: impl IntoIterator<Item = V>) -> Self {
        Self { key: key.into(), operator, values: values.into_iter().map(Into::into).collect(), min_values: None }
    }
}

/// Names the node class that says how to build the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassReference {
    /// Group of the node class: karpenter.k8s.aws.
    #[schemars(regex(pattern = r"^[^/]*$"))]
    pub group: String,
    /// Kind of the node class: EC2NodeClass.
    pub kind: String,
    /// Name of the node class.
    pub name: String,
}

impl NodeClassReference {
    /// A reference to an EC2NodeClass.
    pub fn ec2(name: impl Into<String>) -> Self {
        Self { group: crate::labels::AWS_GROUP.into(), kind: "EC2NodeClass".into(), name: name.into() }
    }

    /// Whether it names an EC2NodeClass, the only kind there is here.
    pub fn is_ec2(&self) -> bool {
        self.group == crate::labels::AWS_GROUP && self.kind == "EC2NodeClass"
    }
}
