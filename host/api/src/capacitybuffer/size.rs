//! For how many pods a buffer keeps room.

use super::CapacityBufferSpec;

/// What the number of pods depends on besides the spec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Replicas of the workload that `scalableRef` names; `None` without one.
    pub scale: Option<i32>,
    /// Pods that fit into the tightest of `limits` that a pod requests; `None` when none of them bounds anything.
    pub within_limits: Option<i64>,
}

/// Number of pods: the larger of `replicas` and the share of the workload (rounded up, at least one when both it and the
/// workload's replicas are more than zero), within the limits. With neither, the limits alone decide; without limits too
/// it is none.
pub fn replicas(spec: &CapacityBufferSpec, size: Size) -> i32 {
    let share = size.scale.zip(spec.percentage).map(|(scale, percentage)| {
        let product = i64::from(scale.max(0)) * i64::from(percentage.max(0));
        i32::try_from((product + 99) / 100).unwrap_or(i32::MAX)
    });
    let wanted = match (spec.replicas, share) {
        (None, None) => None,
        (replicas, share) => Some(replicas.unwrap_or(0).max(share.unwrap_or(0)).max(0)),
    };
    let bound = size.within_limits.map(|bound| i32::try_from(bound.max(0)).unwrap_or(i32::MAX));
    match (wanted, bound) {
        (Some(wanted), Some(bound)) => wanted.min(bound),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(replicas: Option<i32>, percentage: Option<i32>, scale: Option<i32>, within: Option<i64>) -> i32 {
        let spec = CapacityBufferSpec { replicas, percentage, ..CapacityBufferSpec::default() };
        super::replicas(&spec, Size { scale, within_limits: within })
    }

    #[test]
    fn buf_001_sizes() {
        assert_eq!(sized(Some(3), None, None, None), 3, "fixed");
        assert_eq!(sized(None, Some(20), Some(10), None), 2, "a share");
        assert_eq!(sized(None, Some(21), Some(10), None), 3, "is rounded up");
        assert_eq!(sized(None, Some(1), Some(1), None), 1, "to one at least");
        assert_eq!(sized(None, Some(0), Some(50), None), 0, "unless it is none");
        assert_eq!(sized(None, Some(50), Some(0), None), 0, "of none");
        assert_eq!(sized(Some(3), Some(50), Some(10), None), 5, "the larger counts");
        assert_eq!(sized(Some(7), Some(50), Some(10), None), 7, "whichever it is");
        assert_eq!(sized(Some(7), Some(50), Some(10), Some(4)), 4, "within the limits");
        assert_eq!(sized(None, None, None, Some(6)), 6, "limits alone decide");
        assert_eq!(sized(None, None, Some(10), None), 0, "nothing says how many");
        assert_eq!(sized(Some(0), None, None, Some(6)), 0, "none is a number");
        assert_eq!(sized(None, Some(i32::MAX), Some(i32::MAX), None), i32::MAX, "no overflow");
        assert_eq!(sized(Some(-5), None, None, Some(-1)), 0, "nonsense is none");
    }
}
