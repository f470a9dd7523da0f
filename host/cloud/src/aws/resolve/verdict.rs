//! Judgements on a class that need no call, and the words for them.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use mortise_api::EC2NodeClass;
use mortise_api::condition::ec2nodeclass as conditions;
use mortise_api::ec2nodeclass::EC2NodeClassStatus;
use mortise_api::validation;
use serde::Serialize;

use crate::aws::cluster::ClusterInfo;
use crate::aws::error::ApiError;
use crate::aws::images::supported_family;
use crate::aws::userdata::{Bootstrap, UserDataError};
use crate::catalog_build::{AmiFamily, ClassShape, ShapeSettings};
use crate::class::{ConditionOutcome, Verdict};

/// GPU sharing annotation, which needs DRA.
const NVIDIA_SHARING: &str = "karpenter.k8s.aws/nvidia-consumable-capacity";

pub(super) fn not_ready(reason: &str, message: String) -> Verdict {
    Verdict::NotReady { reason: reason.into(), message }
}

/// A call that failed: no permission is a lasting fact, the rest may pass.
pub(super) fn unasked(reason: &str, error: &ApiError) -> Verdict {
    if error.is_unauthorized() {
        return not_ready("Unauthorized", format!("{} is not permitted: {}", error.call, error.message));
    }
    if !error.is_transient() && error.fate != crate::aws::error::Fate::NotSent {
        return not_ready(reason, error.to_string());
    }
    Verdict::Unasked { reason: reason.into(), message: error.to_string() }
}

/// Selector terms as the user wrote them.
pub(super) fn selector_text(terms: &impl Serialize) -> String {
    serde_json::to_string(terms).unwrap_or_default()
}

/// Placement groups are not acted on: placing nodes elsewhere would break what the user asked for.
pub(super) fn placement_group(class: &EC2NodeClass) -> Verdict {
    match class.spec.placement_group_selector {
        None => Verdict::Ready,
        Some(_) => not_ready(
            "PlacementGroupNotSupported",
            "spec.placementGroupSelector: placement groups are not acted on yet; remove the field to launch without one"
                .to_owned(),
        ),
    }
}

/// Reservations are not acted on: said, but no reason not to launch, as open ones are used by EC2 itself.
pub(super) fn capacity_reservations(class: &EC2NodeClass) -> Option<ConditionOutcome> {
    if class.spec.capacity_reservation_selector_terms.is_empty() {
        return None;
    }
    Some(ConditionOutcome {
        condition: conditions::CAPACITY_RESERVATIONS_READY,
        verdict: not_ready(
            "CapacityReservationsNotSupported",
            "spec.capacityReservationSelectorTerms: targeted reservations are not acted on yet; nodes are bought on demand or as spot (EC2 fills open reservations by itself)"
                .to_owned(),
        ),
    })
}

/// What the spec itself rules out.
pub(super) fn spec(class: &EC2NodeClass) -> Option<Verdict> {
    let (failure, findings) = validation::ec2_node_class(class, false);
    if let Some(failure) = failure {
        return Some(not_ready(failure.reason, failure.message()));
    }
    if !findings.is_usable() {
        return Some(not_ready("InvalidSpec", findings.message()));
    }
    let family = class.spec.resolved_ami_family();
    let known = family.as_ref().and_then(|f| AmiFamily::parse(f.as_str()));
    match known {
        None => {
            let found = family.map(|f| f.to_string()).unwrap_or_default();
            return Some(not_ready(
                "AMIFamilyNotSupported",
                format!(
                    "spec.amiFamily: found {found:?}, expected AL2023 or Custom, or an alias such as al2023@latest"
                ),
            ));
        }
        Some(family) if !supported_family(family) => {
            return Some(not_ready(
                "AMIFamilyNotSupported",
                format!(
                    "spec.amiFamily: {} is not acted on yet; use AL2023, or Custom with user data of your own",
                    family.as_str()
                ),
            ));
        }
        Some(_) => {}
    }
    let sharing = class.metadata.annotations.as_ref().and_then(|a| a.get(NVIDIA_SHARING)).map(String::as_str);
    if let Some(value) = sharing.filter(|v| !v.is_empty() && *v != "disabled") {
        return Some(not_ready(
            "DRADisabled",
            format!("annotation {NVIDIA_SHARING}: found {value:?}, but sharing of GPUs is not acted on yet; remove it"),
        ));
    }
    // Capacity must be computable before anything is planned with it.
    match ClassShape::from_class(class, &ShapeSettings::for_region("")) {
        Ok(_) => None,
        Err(error) => Some(not_ready("InvalidKubeletConfiguration", error.to_string())),
    }
}

/// What of the cluster a node needs and nobody knows.
pub(super) fn cluster_gap(info: &ClusterInfo) -> Option<String> {
    let gap = if info.endpoint.is_none() {
        "endpoint (CLUSTER_ENDPOINT)"
    } else if info.ca_bundle.is_none() {
        "CA certificate (CLUSTER_CA_BUNDLE)"
    } else if info.service_cidr.is_none() {
        "service CIDR"
    } else {
        return None;
    };
    Some(format!("the cluster's {gap} is not known, and EKS did not tell it; AL2023 nodes need it to join"))
}

/// User data with no labels and taints of a pool: errors in `spec.userData` show before the first launch.
pub(super) fn trial_user_data(class: &EC2NodeClass, cluster: &ClusterInfo) -> Result<(), (&'static str, String)> {
    let trial = Bootstrap {
        family: AmiFamily::Al2023,
        cluster,
        labels: &BTreeMap::new(),
        taints: &[],
        kubelet: &class.spec.kubelet,
        max_pods: 110,
        raid0: false,
        custom: class.spec.user_data.as_deref(),
    };
    trial.encoded().map(|_| ()).map_err(|e| match e {
        UserDataError::TooLong(_) => ("UserDataSizeLimitExceeded", e.to_string()),
        other => ("InvalidUserData", other.to_string()),
    })
}

/// The class as a whole is only as good as its parts.
pub(super) fn dependencies(status: &EC2NodeClassStatus, others: &[ConditionOutcome]) -> Verdict {
    let needed = [
        (conditions::AMIS_READY, status.amis.is_empty()),
        (conditions::INSTANCE_PROFILE_READY, status.instance_profile.is_none()),
        (conditions::SECURITY_GROUPS_READY, status.security_groups.is_empty()),
        (conditions::SUBNETS_READY, status.subnets.is_empty()),
    ];
    let of = |condition: &&str| others.iter().find(|o| o.condition == *condition).map(|o| &o.verdict);
    let bad: Vec<&str> =
        needed.iter().filter(|(c, _)| matches!(of(c), Some(Verdict::NotReady { .. }))).map(|(c, _)| *c).collect();
    if !bad.is_empty() {
        return not_ready("DependenciesNotReady", format!("{} must be True first", bad.join(", ")));
    }
    let open: Vec<&str> = needed.iter().filter(|(_, empty)| *empty).map(|(c, _)| *c).collect();
    if !open.is_empty() {
        return Verdict::Unknown {
            reason: "DependenciesNotReady".into(),
            message: format!("{} must be True first", open.join(", ")),
        };
    }
    Verdict::Ready
}

/// Now, in the form in which EC2 writes times.
pub(super) fn now_rfc3339() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map(|d| d.as_secs()).unwrap_or_default();
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    aws_sdk_ec2::primitives::DateTime::from_secs(seconds)
        .fmt(aws_sdk_ec2::primitives::DateTimeFormat::DateTime)
        .unwrap_or_default()
}
