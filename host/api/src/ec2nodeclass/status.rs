//! What an EC2NodeClass resolved to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InstanceMatchCriteria;
use crate::condition::Condition;
use crate::open_enum::open_enum;
use crate::requirement::Requirement;

/// What an EC2NodeClass resolved to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassStatus {
    /// Subnets, those with most free addresses first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
    /// Security groups, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroup>,
    /// Capacity reservations, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity_reservations: Vec<CapacityReservation>,
    /// Images, with the instance types that each is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amis: Vec<Ami>,
    /// Name of the instance profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// What is known about the class's state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::condition::list")]
    pub conditions: Vec<Condition>,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subnet {
    /// Id.
    pub id: String,
    /// Availability zone name.
    pub zone: String,
    /// Availability zone id.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}

/// A security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroup {
    /// Id.
    pub id: String,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

open_enum! {
    /// Kind of a capacity reservation.
    pub enum CapacityReservationType {
        /// On demand.
        Default = "default",
        /// A capacity block for ML.
        CapacityBlock = "capacity-block",
    }
}

open_enum! {
    /// State of a capacity reservation.
    pub enum CapacityReservationState {
        /// Usable.
        Active = "active",
        /// Ends soon; its nodes are drained.
        Expiring = "expiring",
    }
}

/// A capacity reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    /// Availability zone name.
    pub availability_zone: String,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// Id.
    #[schemars(regex(pattern = "^cr-[0-9a-z]+$"))]
    pub id: String,
    /// Which instances it takes.
    pub instance_match_criteria: InstanceMatchCriteria,
    /// Instance type.
    pub instance_type: String,
    /// Whether its owner may take the capacity back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptible: Option<bool>,
    /// Account that owns it.
    #[serde(rename = "ownerID")]
    #[schemars(regex(pattern = "^[0-9]{12}$"))]
    pub owner_id: String,
    /// Kind.
    #[serde(default = "default_type")]
    pub reservation_type: CapacityReservationType,
    /// State.
    #[serde(default = "default_state")]
    pub state: CapacityReservationState,
}

fn default_type() -> CapacityReservationType {
    CapacityReservationType::Default
}

fn default_state() -> CapacityReservationState {
    CapacityReservationState::Active
}

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ami {
    /// Id.
    pub id: String,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether its owner deprecated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// Instance types that it is for.
    pub requirements: Vec<Requirement>,
}
