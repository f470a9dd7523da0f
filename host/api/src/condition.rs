//! Status conditions: types, get and set, and the roll-up into `Ready`.
//!
//! The transition time moves only when the status changes, and every set condition carries the generation it was
//! judged at, so a reader can tell a verdict on today's spec from one on yesterday's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use schemars::{Schema, SchemaGenerator, json_schema};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::capacitybuffer::CapacityBuffer;
use crate::ec2nodeclass::EC2NodeClass;
use crate::nodeclaim::NodeClaim;
use crate::nodeoverlay::NodeOverlay;
use crate::nodepool::NodePool;

/// Root condition of every kind.
pub const READY: &str = "Ready";
/// Reason of a dependent that nobody has judged yet.
pub const AWAITING_RECONCILIATION: &str = "AwaitingReconciliation";
/// Reason of a False root.
pub const UNHEALTHY_DEPENDENTS: &str = "UnhealthyDependents";
/// Reason of an Unknown root.
pub const RECONCILING_DEPENDENTS: &str = "ReconcilingDependents";

/// Condition types of NodePools.
pub mod nodepool {
    /// The spec passes the checks that the schema cannot make.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// The referenced node class exists and is ready.
    pub const NODE_CLASS_READY: &str = "NodeClassReady";
    /// Recent launches of this pool registered. For information, not part of Ready.
    pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";
}

/// Condition types of NodeClaims.
pub mod nodeclaim {
    /// The instance was created.
    pub const LAUNCHED: &str = "Launched";
    /// Its Node appeared and was matched.
    pub const REGISTERED: &str = "Registered";
    /// The Node is Ready, its startup taints are gone and its resources registered.
    pub const INITIALIZED: &str = "Initialized";
    /// `consolidateAfter` has passed since the last pod came or went.
    pub const CONSOLIDATABLE: &str = "Consolidatable";
    /// It no longer is what its NodePool and node class ask for.
    pub const DRIFTED: &str = "Drifted";
    /// No pod is left that must be evicted.
    pub const DRAINED: &str = "Drained";
    /// No volume is attached any more.
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    /// The instance is shutting down.
    pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
    /// The Node has the shape that the claim promised.
    pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
    /// Chosen for disruption; the reason says why.
    pub const DISRUPTION_REASON: &str = "DisruptionReason";
    /// A reboot was asked for or is under way.
    pub const REBOOTING: &str = "Rebooting";
}

/// Condition types of EC2NodeClasses.
pub mod ec2nodeclass {
    /// At least one AMI was found.
    pub const AMIS_READY: &str = "AMIsReady";
    /// At least one subnet was found.
    pub const SUBNETS_READY: &str = "SubnetsReady";
    /// At least one security group was found.
    pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
    /// The instance profile exists and holds the role.
    pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
    /// The placement group exists.
    pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
    /// The class can be launched with.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// Capacity reservations were looked up. Part of Ready only with the feature gate ReservedCapacity.
    pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
}

/// Condition types of NodeOverlays, and the reasons of theirs.
pub mod nodeoverlay {
    /// It can be applied.
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    /// It says something that cannot be acted on.
    pub const RUNTIME_VALIDATION: &str = "RuntimeValidation";
    /// Another overlay of the same weight changes the same.
    pub const CONFLICT: &str = "Conflict";
}

/// Condition types of CapacityBuffers, and the reasons of theirs. There is no root condition.
pub mod capacitybuffer {
    /// It is known what a pod of the buffer needs, and how many there are.
    pub const READY_FOR_PROVISIONING: &str = "ReadyForProvisioning";
    /// There is room for all of them.
    pub const PROVISIONING: &str = "Provisioning";
    /// Reason of ReadyForProvisioning being True.
    pub const RESOLVED: &str = "Resolved";
    /// The workload does not exist.
    pub const SCALABLE_REF_NOT_FOUND: &str = "ScalableRefNotFound";
    /// The PodTemplate does not exist.
    pub const POD_TEMPLATE_NOT_FOUND: &str = "PodTemplateNotFound";
    /// What is asked for cannot be acted on.
    pub const RESOLUTION_FAILED: &str = "ResolutionFailed";
    /// Reason of Provisioning being True.
    pub const FITS_EXISTING_CAPACITY: &str = "FitsExistingCapacity";
    /// Not all of it fits on nodes that are there.
    pub const REQUIRES_NEW_CAPACITY: &str = "RequiresNewCapacity";
    /// ReadyForProvisioning is not True.
    pub const NOT_READY_FOR_PROVISIONING: &str = "NotReadyForProvisioning";
    /// It has no pods.
    pub const BUFFER_EMPTY: &str = "BufferEmpty";
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Not known yet.
    Unknown,
}

impl Status {
    /// As written in the object.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A kind of ours with conditions.
pub trait Conditions: Resource {
    /// Conditions that `Ready` depends on. A kind without any has no `Ready`.
    const DEPENDENTS: &'static [&'static str];

    /// The conditions as read.
    fn conditions(&self) -> &[Condition];

    /// The conditions to change; creates an empty status where there is none.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;

    /// The named condition.
    fn condition(&self, type_: &str) -> Option<&Condition> {
        get(self.conditions(), type_)
    }

    /// Whether the named condition is True.
    fn is_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(is_true)
    }

    /// Whether the named condition is True and was judged at the object's present generation.
    fn is_current_true(&self, type_: &str) -> bool {
        let generation = self.meta().generation;
        self.condition(type_)
            .is_some_and(|c| is_true(c) && (c.observed_generation.is_none() || c.observed_generation == generation))
    }

    /// Sets a condition at the object's generation, then recomputes `Ready`. True when anything changed.
    fn set_condition(&mut self, type_: &str, status: Status, reason: &str, message: &str, now: Timestamp) -> bool {
        let generation = self.meta().generation;
        let changed = set(self.conditions_mut(), type_, status, reason, message, generation, now);
        let rolled = roll_up(self.conditions_mut(), Self::DEPENDENTS, generation, now);
        changed || rolled
    }

    /// Sets a condition True, with its own type as the reason.
    fn set_true(&mut self, type_: &str, now: Timestamp) -> bool {
        self.set_condition(type_, Status::True, type_, "", now)
    }

    /// Gives a new object its dependents, all Unknown, and its root. True when anything changed.
    fn initialize_conditions(&mut self, now: Timestamp) -> bool {
        let generation = self.meta().generation;
        let conditions = self.conditions_mut();
        let mut changed = false;
        for type_ in Self::DEPENDENTS {
            if get(conditions, type_).is_none() {
                changed |= set(
                    conditions,
                    type_,
                    Status::Unknown,
                    AWAITING_RECONCILIATION,
                    "object is awaiting reconciliation",
                    generation,
                    now,
                );
            }
        }
        roll_up(conditions, Self::DEPENDENTS, generation, now) || changed
    }
}

/// The named condition.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether a condition's status is True.
pub fn is_true(condition: &Condition) -> bool {
    condition.status == Status::True.as_str()
}

/// Sets one condition and keeps the list ordered by type. The transition time moves only with the status. True when
/// anything changed, so that an unchanged status need not be written.
pub fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: Status,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> bool {
    let mut next = Condition {
        type_: type_.into(),
        status: status.as_str().into(),
        reason: reason.into(),
        message: message.into(),
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    match conditions.iter_mut().find(|condition| condition.type_ == type_) {
        Some(present) => {
            if present.status == next.status {
                next.last_transition_time = present.last_transition_time.clone();
            }
            let changed = *present != next;
            *present = next;
            changed
        }
        None => {
            let at = conditions.partition_point(|condition| condition.type_.as_str() < type_);
            conditions.insert(at, next);
            true
        }
    }
}

/// Removes one condition. True when it was there.
pub fn clear(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// Recomputes `Ready`, if there is anything it depends on: False if a dependent is False at this generation, True if all are True at it, else Unknown.
/// True when it changed.
pub fn roll_up(conditions: &mut Vec<Condition>, dependents: &[&str], generation: Option<i64>, now: Timestamp) -> bool {
    if dependents.is_empty() {
        return false;
    }
    let (mut unhealthy, mut unsettled) = (Vec::new(), Vec::new());
    for type_ in dependents {
        match get(conditions, type_) {
            Some(condition)
                if condition.observed_generation.is_none() || condition.observed_generation == generation =>
            {
                match condition.status.as_str() {
                    "True" => {}
                    "False" => unhealthy.push(*type_),
                    _ => unsettled.push(*type_),
                }
            }
            _ => unsettled.push(*type_),
        }
    }
    let (status, reason, message) = if !unhealthy.is_empty() {
        (Status::False, UNHEALTHY_DEPENDENTS, listed(&unhealthy, "False"))
    } else if !unsettled.is_empty() {
        (Status::Unknown, RECONCILING_DEPENDENTS, listed(&unsettled, "Unknown"))
    } else {
        (Status::True, READY, String::new())
    };
    set(conditions, READY, status, reason, &message, generation, now)
}

/// `SubnetsReady=False, AMIsReady=False`.
fn listed(types: &[&str], status: &str) -> String {
    types.iter().map(|type_| format!("{type_}={status}")).collect::<Vec<_>>().join(", ")
}

impl Conditions for NodePool {
    const DEPENDENTS: &'static [&'static str] = &[nodepool::NODE_CLASS_READY, nodepool::VALIDATION_SUCCEEDED];

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl Conditions for NodeClaim {
    const DEPENDENTS: &'static [&'static str] = &[nodeclaim::INITIALIZED, nodeclaim::LAUNCHED, nodeclaim::REGISTERED];

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl Conditions for EC2NodeClass {
    /// Without `CapacityReservationsReady`, which belongs to a feature gate.
    const DEPENDENTS: &'static [&'static str] = &[
        ec2nodeclass::AMIS_READY,
        ec2nodeclass::INSTANCE_PROFILE_READY,
        ec2nodeclass::PLACEMENT_GROUP_READY,
        ec2nodeclass::SECURITY_GROUPS_READY,
        ec2nodeclass::SUBNETS_READY,
        ec2nodeclass::VALIDATION_SUCCEEDED,
    ];

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl Conditions for NodeOverlay {
    const DEPENDENTS: &'static [&'static str] = &[nodeoverlay::VALIDATION_SUCCEEDED];

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl Conditions for CapacityBuffer {
    const DEPENDENTS: &'static [&'static str] = &[];

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

/// Schema of a `conditions` list keyed by type.
pub(crate) fn list_map(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = list(generator);
    schema.insert("x-kubernetes-list-type".into(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".into(), vec!["type"].into());
    schema
}

/// As [`list_map`], for NodeClaims: objects of old versions hold conditions without reason and message.
pub(crate) fn relaxed_list_map(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = list_map(generator);
    if let Some(item) = schema.get_mut("items").and_then(|items| items.as_object_mut()) {
        item.insert("required".into(), vec!["lastTransitionTime", "status", "type"].into());
        if let Some(reason) =
            item.get_mut("properties").and_then(|p| p.get_mut("reason")).and_then(|r| r.as_object_mut())
        {
            reason.remove("minLength");
            reason.insert("pattern".into(), r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$".into());
        }
    }
    schema
}

/// Schema of a plain `conditions` list.
pub(crate) fn list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What is known about the object's state, one entry per aspect.",
        "type": "array",
        "items": {
            "description": "One aspect of the object's state.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string", "format": "date-time"
                },
                "message": {
                    "description": "Details for people; may be empty.",
                    "type": "string", "maxLength": 32768
                },
                "observedGeneration": {
                    "description": "metadata.generation that the status was judged at.",
                    "type": "integer", "format": "int64", "minimum": 0
                },
                "reason": {
                    "description": "Why it has this status, as one word for programs.",
                    "type": "string", "minLength": 1, "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
                },
                "status": {
                    "description": "Whether it holds.",
                    "type": "string", "enum": ["True", "False", "Unknown"]
                },
                "type": {
                    "description": "Name of the aspect.",
                    "type": "string", "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
                }
            }
        }
    })
}

#[cfg(test)]
mod tests;
