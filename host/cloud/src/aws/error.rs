//! Errors of AWS calls: what they say about the request, and what they are called on a NodeClaim.

use std::sync::Arc;

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};

use crate::error::CloudError;

/// What is known about a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Never left this process.
    NotSent,
    /// Refused: it had no effect.
    Refused,
    /// Refused for its rate: it had no effect, and the same again later may work.
    Throttled,
    /// Cut off, timed out, or failed inside AWS: it may have had its effect.
    Unknown,
}

/// A failed AWS call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {code}: {message}")]
pub(crate) struct ApiError {
    pub(crate) call: &'static str,
    /// AWS's code, or `timeout`, `dispatch`, `response`, `construction`.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) fate: Fate,
}

/// Codes that mean "slow down".
const THROTTLES: [&str; 8] = [
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "BandwidthLimitExceeded",
];

/// Codes with which AWS says that something is not there.
const NOT_FOUND: [&str; 9] = [
    "InvalidInstanceID.NotFound",
    "InvalidLaunchTemplateName.NotFoundException",
    "InvalidLaunchTemplateId.NotFound",
    "InvalidSubnetID.NotFound",
    "InvalidGroup.NotFound",
    "InvalidAMIID.NotFound",
    "NoSuchEntity",
    "ParameterNotFound",
    "ResourceNotFoundException",
];

impl ApiError {
    /// Reads an SDK error.
    pub(crate) fn new<E, R>(call: &'static str, error: &SdkError<E, R>, status: Option<u16>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        R: std::fmt::Debug,
    {
        let (code, message, fate) = match error {
            SdkError::ConstructionFailure(_) => ("construction", chain(error), Fate::NotSent),
            SdkError::TimeoutError(_) => ("timeout", "no answer in time".to_owned(), Fate::Unknown),
            // A connection that was never made carried no request; anything later may have.
            SdkError::DispatchFailure(failure) => {
                let fate = if failure.is_user() { Fate::NotSent } else { Fate::Unknown };
                ("dispatch", chain(error), fate)
            }
            SdkError::ResponseError(_) => ("response", chain(error), Fate::Unknown),
            SdkError::ServiceError(service) => {
                let code = service.err().code().unwrap_or("UnknownError");
                let message = service.err().message().unwrap_or_default().to_owned();
                let fate = if THROTTLES.contains(&code) {
                    Fate::Throttled
                } else if status.is_none_or(|s| s >= 500)
                    || matches!(code, "InternalError" | "Unavailable" | "InternalFailure")
                {
                    Fate::Unknown
                } else {
                    Fate::Refused
                };
                (code, message, fate)
            }
            _ => ("unknown", chain(error), Fate::Unknown),
        };
        Self { call, code: code.to_owned(), message, fate }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        NOT_FOUND.contains(&self.code.as_str())
    }

    /// Permission is missing, as far as the code says.
    pub(crate) fn is_unauthorized(&self) -> bool {
        matches!(self.code.as_str(), "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" | "AuthFailure")
    }

    /// Worth trying again with nothing changed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.fate, Fate::Throttled | Fate::Unknown)
    }
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(e) = cause {
        text.push_str(": ");
        text.push_str(&e.to_string());
        cause = e.source();
    }
    text
}

impl From<ApiError> for CloudError {
    fn from(e: ApiError) -> Self {
        if e.is_transient() {
            return Self::Transient { call: e.call, message: format!("{}: {}", e.code, e.message), retry_after: None };
        }
        if e.is_unauthorized() {
            return Self::Unauthorized { call: e.call, message: e.message };
        }
        if e.is_not_found() {
            return Self::NotFound { what: e.message };
        }
        Self::Api { call: e.call, code: e.code, message: e.message }
    }
}

/// Codes of one offering in a fleet's answer that mean "not there now, try another" for three minutes.
pub(crate) fn is_insufficient_capacity(code: &str) -> bool {
    matches!(
        code,
        "InsufficientInstanceCapacity"
            | "MaxSpotInstanceCountExceeded"
            | "VcpuLimitExceeded"
            | "UnfulfillableCapacity"
            | "Unsupported"
            | "InsufficientFreeAddressesInSubnet"
            | "MaxFleetCountExceeded"
            | "ReservationCapacityExceeded"
            | "SpotMaxPriceTooLow"
            | "InvalidCapacityReservationState.Unavailable"
    )
}

/// The account may not create the role that spot needs.
pub(crate) const SPOT_ROLE_MISSING: &str = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";

/// Condition reason and message for a failed launch. Order matters: the first that matches wins.
pub(crate) fn launch_reason(code: &str, message: &str) -> (Arc<str>, String) {
    let text = format!("{code}: {message}");
    let has = |needle: &str| text.contains(needle);
    let unauthorized = has("UnauthorizedOperation") || has("AccessDenied") || has("AuthFailure");
    let reason = if has(SPOT_ROLE_MISSING) {
        "SpotSLRCreationFailed"
    } else if unauthorized && has("Not authorized for images") {
        "AMIAuthorizationFailure"
    } else if unauthorized {
        "Unauthorized"
    } else if has("InvalidParameter") && has("belong to different networks") {
        "SecurityGroupSubnetVPCMismatch"
    } else if has("iamInstanceProfile.name is invalid") || has("Invalid IAM Instance Profile name") {
        "InstanceProfileNameInvalid"
    } else if has("InvalidLaunchTemplateId.NotFound") || has("InvalidLaunchTemplateName.NotFoundException") {
        "LaunchTemplateNotFound"
    } else if has("User data is limited to") {
        "UserDataSizeLimitExceeded"
    } else if has("InvalidAMIID.Malformed") {
        "InvalidAMIID"
    } else if has("InvalidAMIID.NotFound") {
        "AMINotFound"
    } else if has("RequestLimitExceeded") {
        "RequestLimitExceeded"
    } else if has("InternalError") {
        "InternalError"
    } else if has("not eligible for Free Tier") {
        "FreeTierIneligible"
    } else if has("MaxFleetCountExceeded") {
        "FleetQuotaExceeded"
    } else if has("PendingVerification") {
        "AccountPendingVerification"
    } else if has("MaxSpotInstanceCountExceeded") {
        "SpotQuotaExceeded"
    } else if has("VcpuLimitExceeded") {
        "VCPULimitExceeded"
    } else if has("InsufficientFreeAddressesInSubnet") {
        "InsufficientFreeAddressesInSubnet"
    } else {
        "LaunchFailed"
    };
    (Arc::from(reason), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_follow_code_and_text() {
        for (code, message, reason) in [
            ("UnauthorizedOperation", "You are not authorized to perform this operation.", "Unauthorized"),
            ("AuthFailure", "Not authorized for images: [ami-1]", "AMIAuthorizationFailure"),
            (SPOT_ROLE_MISSING, "The provided credentials do not have permission", "SpotSLRCreationFailed"),
            (
                "InvalidParameter",
                "Security group sg-1 and subnet subnet-1 belong to different networks.",
                "SecurityGroupSubnetVPCMismatch",
            ),
            (
                "InvalidParameterValue",
                "Value (x) for parameter iamInstanceProfile.name is invalid.",
                "InstanceProfileNameInvalid",
            ),
            ("InvalidAMIID.NotFound", "The image id '[ami-1]' does not exist", "AMINotFound"),
            ("InvalidAMIID.Malformed", "Invalid id", "InvalidAMIID"),
            ("InvalidUserData.Malformed", "User data is limited to 16384 bytes", "UserDataSizeLimitExceeded"),
            ("RequestLimitExceeded", "Request limit exceeded.", "RequestLimitExceeded"),
            ("VcpuLimitExceeded", "You have requested more vCPU capacity", "VCPULimitExceeded"),
            ("MaxFleetCountExceeded", "", "FleetQuotaExceeded"),
            ("SomethingNew", "of which nothing is known", "LaunchFailed"),
        ] {
            assert_eq!(&*launch_reason(code, message).0, reason, "{code}");
        }
    }

    #[test]
    fn capacity_codes() {
        assert!(is_insufficient_capacity("InsufficientInstanceCapacity"));
        assert!(is_insufficient_capacity("Unsupported"));
        assert!(is_insufficient_capacity("SpotMaxPriceTooLow"));
        assert!(!is_insufficient_capacity("UnauthorizedOperation"));
        assert!(!is_insufficient_capacity("InvalidAMIID.NotFound"));
    }

    #[test]
    fn errors_become_what_the_caller_can_act_on() {
        let api = |code: &str, fate| ApiError { call: "X", code: code.into(), message: "m".into(), fate };
        assert!(CloudError::from(api("RequestLimitExceeded", Fate::Throttled)).is_transient());
        assert!(CloudError::from(api("timeout", Fate::Unknown)).is_transient());
        assert!(CloudError::from(api("InvalidInstanceID.NotFound", Fate::Refused)).is_not_found());
        assert!(matches!(CloudError::from(api("AccessDenied", Fate::Refused)), CloudError::Unauthorized { .. }));
        assert!(matches!(CloudError::from(api("Other", Fate::Refused)), CloudError::Api { .. }));
    }
}
