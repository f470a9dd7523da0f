//! Subresources other than status: scale, eviction, binding, token.

use serde_json::{Value, json};

use super::call::{Call, Written};
use super::delete::{DeleteOptions, delete_object};
use super::error::{ApiError, ApiResult};
use super::patch::Patch;
use super::resources::Scale;
use super::selector::Selector;
use super::store::Key;
use super::table::path;
use super::{bucket, write};

/// GET on `scale`.
pub(crate) fn get_scale(call: &Call) -> ApiResult<Value> {
    let scale = scale_of(call)?;
    let current = call.current(&call.key()?)?;
    Ok(to_scale(&current.value, scale))
}

fn scale_of(call: &Call) -> ApiResult<&Scale> {
    call.resource.scale.as_ref().ok_or_else(ApiError::no_such_resource)
}

fn to_scale(object: &Value, scale: &Scale) -> Value {
    let number = |at: &str| path::find(object, at).first().and_then(|v| v.as_i64()).unwrap_or_default();
    let selector = match &scale.selector {
        Some(at) => path::find(object, at).first().and_then(|v| v.as_str()).unwrap_or_default().to_owned(),
        None => {
            let labels = object["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
            labels.map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect::<Vec<_>>().join(",")
        }
    };
    let metadata = &object["metadata"];
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": number(&scale.spec)},
        "status": {"replicas": number(&scale.status), "selector": selector},
    })
}

/// PUT or PATCH on `scale`.
pub(crate) fn set_scale(call: &Call, patch: bool) -> ApiResult<Written> {
    let scale = scale_of(call)?.clone();
    let key = call.key()?;
    let current = call.current(&key)?;
    let mut wanted = to_scale(&current.value, &scale);
    if patch {
        match Patch::parse(&call.content_type, &call.body)? {
            Patch::Apply(config) | Patch::Strategic(config) => json_patch::merge(&mut wanted, &config),
            patch => wanted = patch.patched(&call.resource, &wanted)?,
        }
    } else {
        wanted = call.decode()?;
    }
    let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        return Err(ApiError::bad_request(format!(
            "spec.replicas: found {replicas}, must be greater than or equal to 0"
        )));
    }
    let mut object = current.value.clone();
    set_at(&mut object, &scale.spec, replicas.into());
    object["metadata"]["resourceVersion"] = wanted["metadata"]["resourceVersion"].clone();
    let written = write::replace(&without_subresource(call), &key, &current, object)?;
    Ok(Written { value: to_scale(&written.value, &scale), ..written })
}

fn without_subresource(call: &Call) -> Call {
    let mut path = call.path.clone();
    path.subresource = None;
    Call {
        api: call.api.clone(),
        resource: call.resource.clone(),
        path,
        query: call.query.clone(),
        agent: call.agent.clone(),
        content_type: call.content_type.clone(),
        body: call.body.clone(),
    }
}

fn set_at(object: &mut Value, at: &str, value: Value) {
    let mut target = object;
    for part in at.split('.').filter(|p| !p.is_empty()) {
        target = &mut target[part];
    }
    *target = value;
}

/// POST on a pod's `binding`: what a scheduler does.
pub(crate) fn bind(call: &Call, name: &str) -> ApiResult<Written> {
    let binding = call.decode()?;
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    if node.is_empty() {
        return Err(ApiError::bad_request("target.name: not given, want the name of a Node"));
    }
    let namespace = call.path.namespace.clone().unwrap_or_default();
    let key = (namespace, name.to_owned());
    loop {
        let current =
            call.api.store().get(&bucket("", "pods"), &key).ok_or_else(|| ApiError::not_found("", "pods", name))?;
        let conflict = |why: &str| ApiError::conflict("", "pods/binding", name, why);
        if current.value["metadata"].get("deletionTimestamp").is_some() {
            return Err(conflict(&format!("pod {name} is being deleted, cannot be assigned to a host")));
        }
        if let Some(bound) = current.value["spec"]["nodeName"].as_str().filter(|n| !n.is_empty()) {
            return Err(conflict(&format!("pod {name} is already assigned to node \"{bound}\"")));
        }
        let mut pod = current.value.clone();
        pod["spec"]["nodeName"] = node.clone().into();
        set_condition(&mut pod, "PodScheduled", "True", None, None, &call.api.clock.now_rfc3339());
        let stored = call.api.store().put(&bucket("", "pods"), key.clone(), pod, Some(current.version));
        match stored {
            Ok(_) => return Ok(Written::new(201, success())),
            Err(e) if e.reason == "Conflict" => {}
            Err(e) => return Err(e),
        }
    }
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// Sets a condition of an object; the transition time moves only when the status does.
pub(crate) fn set_condition(
    object: &mut Value,
    kind: &str,
    status: &str,
    reason: Option<&str>,
    message: Option<&str>,
    now: &str,
) {
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Some(list) = object["status"]["conditions"].as_array_mut() else { return };
    let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": now});
    if let Some(reason) = reason {
        condition["reason"] = reason.into();
    }
    if let Some(message) = message {
        condition["message"] = message.into();
    }
    match list.iter_mut().find(|c| c["type"] == kind) {
        Some(existing) => {
            if existing["status"] == status {
                condition["lastTransitionTime"] = existing["lastTransitionTime"].clone();
            }
            *existing = condition;
        }
        None => list.push(condition),
    }
}

/// POST on a pod's `eviction`: a delete that PodDisruptionBudgets may refuse.
pub(crate) fn evict(call: &Call) -> ApiResult<Written> {
    let key = call.key()?;
    let body = call.decode()?;
    let mut options = DeleteOptions::from_body(&body["deleteOptions"]);
    options.dry_run |= call.query.dry_run()?;
    let pod = call.current(&key)?.value.clone();
    if let Some(uid) = options.uid.as_deref().filter(|uid| pod["metadata"]["uid"] != *uid) {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            pod["metadata"]["uid"].as_str().unwrap_or_default()
        );
        return Err(ApiError::conflict("", "pods", &key.1, &why));
    }
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    let unguarded =
        matches!(phase, "Pending" | "Succeeded" | "Failed") || pod["metadata"].get("deletionTimestamp").is_some();
    if !unguarded {
        charge_budget(call, &key, &pod, options.dry_run)?;
    }
    delete_object(&call.api, &call.resource, &key, &options)?;
    Ok(Written::new(201, success()))
}

fn charge_budget(call: &Call, key: &Key, pod: &Value, dry_run: bool) -> ApiResult<()> {
    let budgets = bucket("policy", "poddisruptionbudgets");
    loop {
        let matching: Vec<_> = call
            .api
            .store()
            .list(&budgets, Some(&key.0), None)
            .filter(|(_, pdb)| {
                let selector = Selector::from_label_selector(&pdb.value["spec"]["selector"]);
                selector.is_some_and(|s| s.matches_labels(&pod["metadata"]["labels"]))
            })
            .map(|(key, pdb)| (key.clone(), pdb.clone()))
            .collect();
        let (name, pdb) = match matching.as_slice() {
            [] => return Ok(()),
            [one] => one,
            _ => {
                return Err(ApiError::internal(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        let status = &pdb.value["status"];
        let number = |field: &str| status[field].as_i64().unwrap_or_default();
        let ready = pod["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|c| c["type"] == "Ready" && c["status"] == "True");
        let always = pdb.value["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        if !ready && (always || number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0) {
            return Ok(());
        }
        let refuse = |message: &str, cause: String, retry: u32| {
            Err(ApiError::too_many_requests(
                message,
                vec![json!({"reason": "DisruptionBudget", "message": cause})],
                retry,
            ))
        };
        if number("observedGeneration") < pdb.value["metadata"]["generation"].as_i64().unwrap_or_default() {
            let cause = format!("The disruption budget {} is still being processed by the server.", name.1);
            return refuse("Cannot evict pod as it would violate the pod's disruption budget.", cause, 10);
        }
        if number("disruptionsAllowed") <= 0 {
            let cause = format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                name.1,
                number("desiredHealthy"),
                number("currentHealthy")
            );
            return refuse("Cannot evict pod as it would violate the pod's disruption budget.", cause, 0);
        }
        if dry_run {
            return Ok(());
        }
        let mut charged = pdb.value.clone();
        charged["status"]["disruptionsAllowed"] = (number("disruptionsAllowed") - 1).into();
        charged["status"]["disruptedPods"][&key.1] = call.api.clock.now_rfc3339().into();
        match call.api.store().put(&budgets, name.clone(), charged, Some(pdb.version)) {
            Ok(_) => return Ok(()),
            Err(e) if e.reason == "Conflict" => {}
            Err(e) => return Err(e),
        }
    }
}

/// POST on a ServiceAccount's `token`. The embedded cluster checks no tokens, so this one opens nothing.
pub(crate) fn token(call: &Call) -> ApiResult<Written> {
    let mut request = call.decode()?;
    call.current(&call.key()?)?;
    request["status"] =
        json!({"token": "embedded-cluster-does-not-authenticate", "expirationTimestamp": call.api.clock.now_rfc3339()});
    Ok(Written::new(201, request))
}
