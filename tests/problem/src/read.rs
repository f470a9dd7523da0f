//! Strict reading: a field that a type does not have is an error everywhere, also inside Kubernetes objects, whose own
//! types would silently leave it out, so that a misspelt constraint is no constraint for nobody.

use serde::de::DeserializeOwned;

use crate::{Answer, Problem};

/// Why a text is no problem or no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON of the right shape.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It has fields that are not known.
    #[error("unknown fields: {}", .0.join(", "))]
    Unknown(Vec<String>),
}

impl Problem {
    /// Reads a problem.
    ///
    /// # Errors
    /// Names what is not JSON, of the wrong type, or not a field of the format or of the object that it is in.
    pub fn read(json: &str) -> Result<Self, ReadError> {
        read(json)
    }
}

impl Answer {
    /// Reads an answer.
    ///
    /// # Errors
    /// Names what is not JSON, of the wrong type, or not a field of the format.
    pub fn read(json: &str) -> Result<Self, ReadError> {
        read(json)
    }
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, ReadError> {
    let mut unknown = Vec::new();
    let mut text = serde_json::Deserializer::from_str(json);
    let value = serde_ignored::deserialize(&mut text, |path| {
        // A "?" stands where a value may be absent.
        let path = path.to_string().replace(".?", "");
        if !is_type_of_custom_resource(&path) {
            unknown.push(path);
        }
    })?;
    text.end()?;
    if unknown.is_empty() { Ok(value) } else { Err(ReadError::Unknown(unknown)) }
}

/// `apiVersion` and `kind` of custom resources are fixed by their type, which has no fields for them.
fn is_type_of_custom_resource(path: &str) -> bool {
    let parts: Vec<&str> = path.split('.').collect();
    matches!(parts[..], ["nodePools" | "nodeClaims" | "nodeOverlays" | "capacityBuffers", _, "apiVersion" | "kind"])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{
        "name": "small", "now": "2026-01-01T00:00:00Z",
        "options": {"preferencePolicy": "Ignore", "ignoreDRARequests": false},
        "instanceTypes": [{
            "name": "c-4x",
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            "capacity": {"cpu": "4"}, "volumeLimits": {"ebs.csi.aws.com": 10},
            "offerings": [{"requirements": [], "price": null, "available": true}]
        }],
        "instanceTypesOf": {"gpu": ["g-4x"]},
        "nodePools": [{
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": []
            }}}
        }],
        "nodeOverlays": [{
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "dear"},
            "spec": {"requirements": [], "price": "1"}
        }],
        "pods": [{
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}
        }]
    }"#;

    #[test]
    fn what_is_left_out_has_its_default() -> Result<(), ReadError> {
        let problem = Problem::read(SMALL)?;
        assert_eq!(problem.options.preference_policy, crate::PreferencePolicy::Ignore);
        assert_eq!(problem.options.min_values_policy, crate::MinValuesPolicy::Strict);
        assert!(!problem.options.ignore_dra_requests && problem.options.reserved_capacity);
        assert_eq!(problem.instance_types[0].offerings[0].price, None);
        assert_eq!(problem.instance_types[0].volume_limits["ebs.csi.aws.com"], 10);
        assert!(problem.is_offered("default", "c-4x") && !problem.is_offered("gpu", "c-4x"));
        Ok(())
    }

    #[test]
    fn what_is_written_is_read_again() -> Result<(), ReadError> {
        let problem = Problem::read(SMALL)?;
        assert_eq!(Problem::read(&serde_json::to_string(&problem)?)?, problem);
        let answer = Answer::read(
            r#"{"name": "small", "claims": [{"nodePool": "default", "instanceTypes": ["c-4x"], "pods": ["default/p"]}],
                "existing": [{"node": "n", "pods": []}], "errors": {"default/q": "no"}, "millis": 1.5}"#,
        )?;
        assert_eq!(Answer::read(&serde_json::to_string(&answer)?)?, answer);
        Ok(())
    }

    #[test]
    fn unknown_fields_are_errors_at_every_depth() {
        for (from, to, named) in [
            (r#""options""#, r#""option""#, "option"),
            (r#""price""#, r#""prize""#, "prize"),
            (r#""containers""#, r#""nodeSelektor": {}, "containers""#, "nodeSelektor"),
            (r#""resources""#, r#""resource""#, "pods.0.spec.containers.0.resource"),
            (r#""nodeClassRef""#, r#""taint": [], "nodeClassRef""#, "nodePools.0.spec.template.spec.taint"),
        ] {
            let error = Problem::read(&SMALL.replacen(from, to, 1)).map_err(|e| e.to_string());
            assert!(error.as_ref().is_err_and(|e| e.contains(named)), "{to}: {error:?}");
        }
    }

    #[test]
    fn text_after_the_end_is_an_error() {
        assert!(matches!(Problem::read(&format!("{SMALL} x")), Err(ReadError::Json(_))));
    }
}
