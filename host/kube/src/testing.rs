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
    let mut pod: Value = serde_json::from_str(include_str!("../tests/data/pod.json")).unwrap();
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["uid"] = json!(uid);
    pod
}
