//! Volumes can be bound, reached and attached: each claim of a pod exists and can be bound; one term of where its volume
//! is, or may be made, holds on each machine that the node may turn out to be; and each driver attaches no more volumes
//! than its limit, where a volume that several pods of the node use counts once.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::pod::key;
use crate::model::values::surely;
use crate::model::volume::volumes;
use crate::model::world::World;
use crate::violation::{Fault, Findings, Rule, Violation, exceeds};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Volumes);
    for place in world.places.iter().filter(|place| !place.placed.is_empty()) {
        let mut attached: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut adds: BTreeSet<String> = BTreeSet::new();
        for pod in place.pods() {
            let is_new = place.placed.iter().any(|placed| std::ptr::eq(*placed, pod));
            let volumes = match volumes(world.problem, pod) {
                Ok(volumes) => volumes,
                Err(reason) if is_new => {
                    found.add(Some(&key(pod)), Some(&place.name), Fault::Missing(reason));
                    continue;
                }
                Err(_) => continue,
            };
            for volume in volumes {
                let missed = place.machines.iter().find(|m| !volume.reaches(&m.labels, &surely));
                if let Some(machine) = missed.filter(|_| is_new) {
                    let fault = format!("volume {} cannot be attached to {}", volume.claim, machine.name);
                    found.add(Some(&key(pod)), Some(&place.name), Fault::Conflict(fault));
                }
                if let Some(driver) = volume.driver {
                    if is_new {
                        adds.insert(driver.clone());
                    }
                    attached.entry(driver).or_default().insert(volume.claim);
                }
            }
        }
        for machine in &place.machines {
            for driver in &adds {
                let count = attached.get(driver).map_or(0, BTreeSet::len);
                let limit = machine.attach_limits.get(driver).copied().flatten();
                if let Some(limit) = limit.filter(|limit| count > *limit as usize) {
                    let what = format!("volumes of {driver} on {}", machine.name);
                    found.add(None, Some(&place.name), exceeds(what, count, limit));
                }
            }
        }
    }
    found.all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, zones};
    use serde_json::json;

    fn case() -> Case {
        let mut case = Case::new().pending("p", json!({})).pending("q", json!({}));
        case.problem["instanceTypes"][0]["volumeLimits"] = json!({"ebs.csi.aws.com": 1});
        case.problem["storageClasses"] = json!([{
            "metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [
                {"key": "topology.kubernetes.io/zone", "values": ["zone-1"]}]}]
        }]);
        case.problem["persistentVolumeClaims"] = json!([
            {"metadata": {"name": "a", "namespace": "default"}, "spec": {"storageClassName": "gp3"}},
            {"metadata": {"name": "b", "namespace": "default"}, "spec": {"storageClassName": "gp3"}}
        ]);
        case
    }

    fn mount(case: &mut Case, pod: usize, claim: &str) {
        case.problem["pods"][pod]["spec"]["volumes"] =
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
    }

    fn judge(case: &Case, zone: &[&str]) -> Vec<String> {
        let mut claim = claim("default", &["c-4x"], &["p", "q"]);
        claim["requirements"] = zones(zone);
        case.judged(check, json!({"claims": [claim]}))
    }

    #[test]
    fn a_volume_is_made_where_its_class_allows() {
        let mut case = case();
        mount(&mut case, 0, "a");
        assert!(judge(&case, &["zone-1"]).is_empty());
        assert_eq!(judge(&case, &["zone-1", "zone-2"]).len(), 1);
    }

    #[test]
    fn a_volume_is_attached_where_it_is() {
        let mut case = case();
        mount(&mut case, 0, "a");
        case.problem["persistentVolumeClaims"][0]["spec"]["volumeName"] = json!("pv");
        assert!(judge(&case, &["zone-2"])[0].contains("PersistentVolume pv of default/a does not exist"));
        case.problem["persistentVolumes"] = json!([{"metadata": {"name": "pv"}, "spec": {
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "v"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-2"]}]}]}}}}]);
        assert!(judge(&case, &["zone-2"]).is_empty());
        assert_eq!(judge(&case, &["zone-1"]).len(), 1);
    }

    #[test]
    fn attachments_are_counted_once_a_volume() {
        let mut case = case();
        mount(&mut case, 0, "a");
        mount(&mut case, 1, "a");
        assert!(judge(&case, &["zone-1"]).is_empty());
        mount(&mut case, 1, "b");
        assert!(judge(&case, &["zone-1"])[0].contains("2 of at most 1"));
    }

    #[test]
    fn a_claim_that_cannot_be_bound_holds_its_pod_back() {
        let mut case = case();
        mount(&mut case, 0, "c");
        assert!(judge(&case, &["zone-1"])[0].contains("default/c does not exist"));
        mount(&mut case, 0, "a");
        case.problem["storageClasses"][0]["volumeBindingMode"] = json!("Immediate");
        assert!(judge(&case, &["zone-1"])[0].contains("Immediate"));
    }
}
