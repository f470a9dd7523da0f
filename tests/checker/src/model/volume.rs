//! What a pod's volumes ask of its node.

use mortise_problem::Problem;
use mortise_problem::k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, Pod};
use mortise_problem::k8s_openapi::api::storage::v1::StorageClass;

use super::pod::{namespace, term_holds};
use super::values::{Labels, Values};

/// One volume of a pod.
pub(crate) struct Volume {
    /// `<namespace>/<claim>`, for counting it once a node.
    pub(crate) claim: String,
    /// CSI driver that attaches it, if that is known.
    pub(crate) driver: Option<String>,
    /// Where it can be attached: one of these terms must hold; `None` = anywhere.
    terms: Option<Vec<Term>>,
}

enum Term {
    /// Of a PersistentVolume.
    Bound(NodeSelectorTerm),
    /// Of a StorageClass: keys and the values allowed.
    Allowed(Vec<(String, Vec<String>)>),
}

impl Volume {
    /// Whether it can be attached to a node with these labels; `holds` says when a label satisfies a requirement.
    pub(crate) fn reaches(&self, labels: &Labels, holds: &dyn Fn(&Labels, &str, &Values) -> bool) -> bool {
        self.terms.as_ref().is_none_or(|terms| {
            terms.iter().any(|term| match term {
                Term::Bound(term) => term_holds(term, labels, None, holds),
                Term::Allowed(keys) => keys.iter().all(|(key, values)| {
                    holds(labels, key, &Values::required("In", values.iter().map(String::as_str)))
                }),
            })
        })
    }
}

/// The claims' volumes of a pod.
///
/// # Errors
/// Says which claim no scheduler could bind: missing, lost, being deleted, or without what binds it.
pub(crate) fn volumes(problem: &Problem, pod: &Pod) -> Result<Vec<Volume>, String> {
    let mut all = Vec::new();
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        let (name, ephemeral_class) = if let Some(source) = &volume.persistent_volume_claim {
            (source.claim_name.clone(), None)
        } else if let Some(template) = volume.ephemeral.as_ref().and_then(|e| e.volume_claim_template.as_ref()) {
            let pod_name = pod.metadata.name.as_deref().unwrap_or_default();
            (format!("{pod_name}-{}", volume.name), Some(template.spec.storage_class_name.clone()))
        } else {
            continue;
        };
        let key = format!("{}/{name}", namespace(pod));
        let claim = problem.persistent_volume_claims.iter().find(|c| {
            c.metadata.name.as_deref() == Some(&name)
                && c.metadata.namespace.as_deref().unwrap_or("default") == namespace(pod)
        });
        all.push(match (claim, ephemeral_class) {
            (Some(claim), _) => of_claim(problem, &key, claim)?,
            (None, Some(class)) => unbound(problem, &key, class.as_deref())?,
            (None, None) => return Err(format!("PersistentVolumeClaim {key} does not exist")),
        });
    }
    Ok(all)
}

fn of_claim(problem: &Problem, key: &str, claim: &PersistentVolumeClaim) -> Result<Volume, String> {
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("PersistentVolumeClaim {key} is being deleted"));
    }
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost") {
        return Err(format!("PersistentVolumeClaim {key} is lost"));
    }
    let spec = claim.spec.as_ref();
    match spec.and_then(|s| s.volume_name.as_deref()).filter(|name| !name.is_empty()) {
        None => unbound(problem, key, spec.and_then(|s| s.storage_class_name.as_deref())),
        Some(name) => {
            let volume = problem.persistent_volumes.iter().find(|v| v.metadata.name.as_deref() == Some(name));
            volume.map(|v| bound(key, v)).ok_or_else(|| format!("PersistentVolume {name} of {key} does not exist"))
        }
    }
}

fn bound(key: &str, volume: &PersistentVolume) -> Volume {
    let spec = volume.spec.as_ref();
    let required = spec.and_then(|s| s.node_affinity.as_ref()).and_then(|a| a.required.as_ref());
    let mut terms = required.map(|required| required.node_selector_terms.clone());
    // Such a volume moves with the data's owner: the node that it was on may be gone, and its name with it.
    if spec.is_some_and(|s| s.local.is_some() || s.host_path.is_some()) {
        for expressions in terms.iter_mut().flatten().filter_map(|term| term.match_expressions.as_mut()) {
            expressions.retain(|e| e.key != "kubernetes.io/hostname");
        }
        if terms.iter().flatten().any(|t| t.match_expressions.as_ref().is_none_or(Vec::is_empty)) {
            terms = None;
        }
    }
    let legacy = spec.and_then(|s| s.aws_elastic_block_store.as_ref()).map(|_| "ebs.csi.aws.com".to_owned());
    Volume {
        claim: key.to_owned(),
        driver: spec.and_then(|s| s.csi.as_ref()).map(|csi| csi.driver.clone()).or(legacy),
        terms: terms.map(|terms| terms.into_iter().map(Term::Bound).collect()),
    }
}

fn unbound(problem: &Problem, key: &str, class: Option<&str>) -> Result<Volume, String> {
    let class = class.filter(|name| !name.is_empty()).ok_or_else(|| format!("{key} has no storage class"))?;
    let found = problem.storage_classes.iter().find(|c| c.metadata.name.as_deref() == Some(class));
    let found = found.ok_or_else(|| format!("StorageClass {class} of {key} does not exist"))?;
    if found.volume_binding_mode.as_deref().unwrap_or("Immediate") == "Immediate" {
        return Err(format!("{key} is bound before scheduling (StorageClass {class}: Immediate) and is not bound yet"));
    }
    Ok(Volume { claim: key.to_owned(), driver: Some(driver(found)), terms: allowed(found) })
}

fn driver(class: &StorageClass) -> String {
    if class.provisioner == "kubernetes.io/aws-ebs" { "ebs.csi.aws.com".into() } else { class.provisioner.clone() }
}

fn allowed(class: &StorageClass) -> Option<Vec<Term>> {
    let terms = class.allowed_topologies.as_ref().filter(|terms| !terms.is_empty())?;
    let term = |expressions: Vec<(String, Vec<String>)>| Term::Allowed(expressions);
    let of = |t: &mortise_problem::k8s_openapi::api::core::v1::TopologySelectorTerm| {
        t.match_label_expressions.iter().flatten().map(|e| (e.key.clone(), e.values.clone())).collect()
    };
    Some(terms.iter().map(|t| term(of(t))).collect())
}
