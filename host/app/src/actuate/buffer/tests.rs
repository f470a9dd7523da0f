use std::collections::BTreeMap;

use mortise_engine::pod::PodShape;
use mortise_engine::quantity::Resources;
use serde_json::{Value, json};

use super::*;

fn buffer(spec: Value) -> CapacityBuffer {
    serde_json::from_value(json!({"metadata": {"namespace": "ns", "name": "b", "generation": 3}, "spec": spec}))
        .unwrap()
}

/// `PodTemplate/t` and `Deployment/web` with ten replicas, a pod of which takes half a CPU and 1 GiB.
fn world(kind: &str, name: &ObjectName) -> Option<Arc<TemplateRecord>> {
    let known: BTreeMap<(&str, &str), Option<i32>> =
        [(("PodTemplate", "t"), None), (("Deployment", "web"), Some(10))].into();
    let replicas = *known.get(&(kind, &*name.name))?;
    let requests = Resources { cpu_milli: 500, memory: 1 << 30, pods: 1, ..Resources::default() };
    let shape = Arc::new(PodShape { requests, ..PodShape::default() });
    Some(Arc::new(TemplateRecord { name: name.clone(), generation: Some(5), replicas, shape }))
}

fn count(spec: Value) -> Result<i32, &'static str> {
    resolve(&buffer(spec), world).map(|r| r.replicas).map_err(|(reason, _)| reason)
}

#[test]
fn buf_001_references_and_limits() {
    let template = |rest: Value| {
        let mut spec = json!({"podTemplateRef": {"name": "t"}});
        spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        count(spec)
    };
    assert_eq!(template(json!({"replicas": 3})), Ok(3));
    assert_eq!(template(json!({"limits": {"cpu": "2"}})), Ok(4), "limits alone");
    assert_eq!(template(json!({"limits": {"cpu": "2", "memory": "3Gi"}})), Ok(3), "the tightest");
    assert_eq!(template(json!({"replicas": 9, "limits": {"cpu": "1700m"}})), Ok(3), "as a cap, rounded down");
    assert_eq!(
        template(json!({"replicas": 2, "limits": {"nvidia.com/gpu": 1}})),
        Ok(2),
        "what no pod asks for bounds none"
    );
    assert_eq!(template(json!({"replicas": 2, "limits": {"cpu": "many"}})), Err("ResolutionFailed"));
    assert_eq!(template(json!({"replicas": 10_001})), Err("ResolutionFailed"));

    let scalable = |kind: &str, name: &str, group: &str, percentage: i32| {
        count(json!({"scalableRef": {"kind": kind, "name": name, "apiGroup": group}, "percentage": percentage}))
    };
    assert_eq!(scalable("Deployment", "web", "", 25), Ok(3), "rounded up");
    assert_eq!(scalable("Deployment", "web", "apps", 100), Ok(10));
    assert_eq!(scalable("Deployment", "web", "batch", 100), Err("ResolutionFailed"));
    assert_eq!(scalable("CronJob", "web", "", 100), Err("ResolutionFailed"));
    assert_eq!(scalable("Deployment", "gone", "", 100), Err("ScalableRefNotFound"));
    assert_eq!(count(json!({"podTemplateRef": {"name": "gone"}, "replicas": 1})), Err("PodTemplateNotFound"));
    assert_eq!(count(json!({"replicas": 1})), Err("ResolutionFailed"));
}

fn conditions(spec: Value, outcome: Option<Outcome>) -> Vec<String> {
    let buffer = buffer(spec);
    let now = Timestamp::UNIX_EPOCH;
    let wanted = desired(&buffer, &resolve(&buffer, world), outcome, now);
    let line = |c: &mortise_api::condition::Condition| format!("{}={} {}", c.type_, c.status, c.reason);
    wanted.conditions().iter().map(line).collect()
}

#[test]
fn buf_001_conditions() {
    let three = || json!({"podTemplateRef": {"name": "t"}, "replicas": 3});
    let at = |existing, new, unplaced| Some(Outcome { existing, new, unplaced });
    let ready = "ReadyForProvisioning=True Resolved";
    assert_eq!(conditions(three(), None), [ready], "no verdict before the first round");
    assert_eq!(conditions(three(), at(3, 0, 0)), ["Provisioning=True FitsExistingCapacity", ready]);
    assert_eq!(conditions(three(), at(2, 1, 0)), ["Provisioning=False RequiresNewCapacity", ready]);
    assert_eq!(conditions(three(), at(0, 0, 3)), ["Provisioning=False RequiresNewCapacity", ready]);
    let none = json!({"podTemplateRef": {"name": "t"}, "replicas": 0});
    assert_eq!(conditions(none, at(3, 0, 0)), ["Provisioning=False BufferEmpty", ready]);
    assert_eq!(
        conditions(json!({"podTemplateRef": {"name": "gone"}, "replicas": 1}), at(1, 0, 0)),
        ["Provisioning=False NotReadyForProvisioning", "ReadyForProvisioning=False PodTemplateNotFound"]
    );
}

#[test]
fn buf_001_status() {
    let found = |spec: Value| {
        let buffer = buffer(spec);
        let wanted = desired(&buffer, &resolve(&buffer, world), None, Timestamp::UNIX_EPOCH);
        serde_json::to_value(wanted.status.unwrap()).unwrap()
    };
    let status = found(json!({"podTemplateRef": {"name": "t"}, "replicas": 3}));
    assert_eq!(status["podTemplateRef"]["name"], "t");
    assert_eq!((&status["podTemplateGeneration"], &status["replicas"]), (&json!(5), &json!(3)));
    assert_eq!(status["provisioningStrategy"], "buffer.x-k8s.io/active-capacity");
    let status = found(json!({"podTemplateRef": {"name": "gone"}, "replicas": 3}));
    assert!(status["podTemplateRef"].is_null() && status["replicas"].is_null());
}
