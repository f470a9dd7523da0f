//! A scripted API server for tests: a tower service under the real client.

use std::future::Future;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A client whose every request is answered by `answer(method, path and query, body)`.
pub(crate) fn client<F, Fut>(answer: F) -> Client
where
    F: Fn(String, String, Value) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Response<Body>> + Send + 'static,
{
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = answer.clone();
        async move {
            let method = request.method().to_string();
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let bytes = request.into_body().collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            Ok::<_, tower::BoxError>(answer(method, path, body).await)
        }
    });
    Client::new(service, "default")
}

/// A JSON answer.
pub(crate) fn answer(code: u16, body: &Value) -> Response<Body> {
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap()
}

/// A Status answer.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> Response<Body> {
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code});
    answer(code, &body)
}

/// A pod of 1 CPU and 1 GiB as an API server sends it, with what nobody reads.
pub(crate) fn pod_json(name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": uid, "resourceVersion": "1",
            "generateName": "burst-6d4b75cb6d-",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "burst", "pod-template-hash": "6d4b75cb6d"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"a\":\"very long text that nobody reads\"}"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "burst-6d4b75cb6d", "uid": "rs", "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}}, "f:ownerReferences": {".": {}, "k:{\"uid\":\"rs\"}": {}}},
                    "f:spec": {"f:containers": {"k:{\"name\":\"pause\"}": {".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:resources": {".": {}, "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}}, "f:terminationMessagePath": {}}}, "f:dnsPolicy": {}, "f:restartPolicy": {}}}}],
        },
        "spec": {
            "volumes": [{"name": "kube-api-access-x", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}, {"configMap": {"name": "kube-root-ca.crt"}}]}}],
            "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10", "imagePullPolicy": "IfNotPresent",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access-x", "readOnly": true}]}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 0, "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "priority": 0,
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable", "conditions": [
            {"type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:01Z", "reason": "Unschedulable", "message": "0/1 nodes are available"}]},
    })
}
