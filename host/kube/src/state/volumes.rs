//! Where a pod's volumes let it run (karpenter-algorithms §1.5, §3.10).

use std::sync::Arc;

use mortise_engine::pod::{PodShape, Term};
use mortise_engine::requirement::Operator;

use super::ClusterState;
use crate::record::{ObjectName, PodRecord, VolumeRef};

/// More alternatives than this (the product over a pod's volumes) are not worked out.
const MAX_ALTERNATIVES: usize = 64;

impl ClusterState {
    /// Adds what a pod's volumes ask of its node.
    pub(super) fn add_volumes(&self, pod: &PodRecord, shape: &mut PodShape) {
        let mut problems = Vec::new();
        let mut alternatives: Vec<Term> = vec![Vec::new()];
        for volume in &pod.volumes {
            match self.volume_terms(&pod.key.namespace, volume) {
                Ok(terms) if terms.is_empty() => {}
                Ok(terms) => match product(&alternatives, &terms) {
                    Some(next) => alternatives = next,
                    None => problems.push(format!(
                        "spec.volumes: more than {MAX_ALTERNATIVES} combinations of places, which are not worked out"
                    )),
                },
                Err(problem) => problems.push(problem),
            }
        }
        alternatives.retain(|term| !term.is_empty());
        shape.volume_alternatives = alternatives;
        shape.attachments = self.attachments(pod);
        shape.unsupported.extend(problems.into_iter().map(Arc::from));
    }

    /// Alternatives of one volume; empty = anywhere.
    fn volume_terms(&self, namespace: &Arc<str>, volume: &VolumeRef) -> Result<Vec<Term>, String> {
        let claim = &volume.claim;
        let field = format!("spec.volumes[{}]: PersistentVolumeClaim {claim:?}", volume.volume);
        let name = ObjectName { namespace: Arc::clone(namespace), name: Arc::clone(claim) };
        let Some(pvc) = self.pvcs.get(&name) else { return Err(format!("{field} does not exist (yet)")) };
        if pvc.deleting {
            return Err(format!("{field} is being deleted"));
        }
        if pvc.lost {
            return Err(format!("{field} has lost its volume (phase Lost)"));
        }
        if let Some(bound) = &pvc.volume {
            let Some(pv) = self.pvs.get(bound) else {
                return Err(format!("{field} is bound to PersistentVolume {bound:?}, which does not exist"));
            };
            if pv.deleting {
                return Err(format!("{field} is bound to PersistentVolume {bound:?}, which is being deleted"));
            }
            if !pvc.bind_completed {
                return Err(format!("{field} is still being bound to PersistentVolume {bound:?}"));
            }
            return match &pv.problem {
                Some(problem) => Err(format!("{field}: PersistentVolume {bound:?}: {problem}")),
                None => Ok(pv.terms.clone()),
            };
        }
        let Some(class_name) = pvc.class.as_ref().filter(|name| !name.is_empty()) else {
            return Err(format!("{field} is not bound and names no storageClassName"));
        };
        let Some(class) = self.storage_classes.get(class_name) else {
            return Err(format!("{field} names StorageClass {class_name:?}, which does not exist"));
        };
        if class.immediate {
            return Err(format!(
                "{field} is not bound, and StorageClass {class_name:?} binds at once (volumeBindingMode: Immediate): \
                 wait for the volume, or use WaitForFirstConsumer"
            ));
        }
        Ok(class.terms.clone())
    }
}

/// Every combination of one term of each side that can hold at all; all of them when none can, so that the reason shows
/// later. `None` when there are too many.
fn product(left: &[Term], right: &[Term]) -> Option<Vec<Term>> {
    if left.len().saturating_mul(right.len()) > MAX_ALTERNATIVES {
        return None;
    }
    let all = || {
        left.iter().flat_map(|l| {
            right.iter().map(move |r| {
                let mut both = l.clone();
                both.extend(r.iter().filter(|req| !l.contains(req)).cloned());
                both
            })
        })
    };
    let possible: Vec<Term> = all().filter(|term| !conflicting(term)).collect();
    Some(if possible.is_empty() { all().collect() } else { possible })
}

/// Two In requirements on one key without a value in common.
fn conflicting(term: &Term) -> bool {
    let sets = || term.iter().filter(|r| r.operator == Operator::In);
    sets().enumerate().any(|(i, a)| {
        sets().skip(i + 1).any(|b| a.key == b.key && !a.values.iter().any(|value| b.values.contains(value)))
    })
}
