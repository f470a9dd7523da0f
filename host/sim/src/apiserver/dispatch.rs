//! From an HTTP request to an HTTP response.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use serde_json::Value;

use super::call::{Call, Written};
use super::error::{ApiError, ApiResult};
use super::represent::Representation;
use super::request::{Query, ResourcePath, Target, negotiate, parse_path};
use super::resources::Resource;
use super::{ApiServer, Inner, delete, discovery, openapi, read, subresource, watch, write};

/// Body of every response.
pub type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// Requests larger than this are refused (the limit of etcd, twice).
const MAX_BODY: usize = 3 * 1024 * 1024;

impl ApiServer {
    /// A client that calls this server in process, without a socket. Its plain writes have field manager `unknown`.
    pub fn client(&self) -> kube::Client {
        self.client_as("unknown")
    }

    /// A client with a User-Agent, whose part before the slash is the field manager of its plain writes.
    pub fn client_as(&self, user_agent: &str) -> kube::Client {
        let server = self.clone();
        let agent = header::HeaderValue::from_str(user_agent).unwrap_or(header::HeaderValue::from_static("unknown"));
        let service = tower::service_fn(move |mut request: Request<Body>| {
            request.headers_mut().entry(header::USER_AGENT).or_insert_with(|| agent.clone());
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.handle(request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Answers one request. Never fails: what goes wrong is a `Status` object.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: hyper::body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let body = match http_body_util::Limited::new(body, MAX_BODY).collect().await {
            Ok(body) => body.to_bytes(),
            Err(e) => return failure(&ApiError::bad_request(format!("request body: {e}, at most {MAX_BODY} bytes"))),
        };
        answer(&self.inner, &head, body).unwrap_or_else(|e| failure(&e))
    }
}

fn answer(api: &Arc<Inner>, head: &http::request::Parts, body: Bytes) -> ApiResult<Response<ResponseBody>> {
    let text = |name: header::HeaderName| head.headers.get(name).and_then(|v| v.to_str().ok());
    let accept = text(header::ACCEPT);
    let path = match parse_path(head.uri.path()) {
        Target::Resource(path) => path,
        Target::Other(segments) => return other(api, &segments, accept),
    };
    let resource = find(api, &path)?;
    let query = Query::parse(head.uri.query());
    let form = Representation::new(negotiate(accept), &query, &api.clock);
    let agent = text(header::USER_AGENT).unwrap_or("unknown");
    let call = Call {
        api: Arc::clone(api),
        resource,
        path,
        query,
        agent: agent.split('/').next().unwrap_or(agent).to_owned(),
        content_type: text(header::CONTENT_TYPE).unwrap_or_default().to_owned(),
        body,
    };
    route(&call, &head.method, form)
}

fn find(api: &Inner, path: &ResourcePath) -> ApiResult<Arc<Resource>> {
    let resource =
        api.registry().get(&path.group, &path.version, &path.plural).ok_or_else(ApiError::no_such_resource)?;
    if path.namespace.is_some() && !resource.namespaced {
        return Err(ApiError::no_such_resource());
    }
    Ok(resource)
}

fn route(call: &Call, method: &Method, form: Representation) -> ApiResult<Response<ResponseBody>> {
    if call.resource.create_only {
        return if method == Method::POST {
            Ok(written(call, &form, create_only(call)?))
        } else {
            Err(ApiError::method_not_allowed())
        };
    }
    if let Some(sub) = call.path.subresource.as_deref() {
        let done = subresource_call(call, method, sub, &form)?;
        return Ok(written(call, &form, done));
    }
    let named = call.path.name.is_some();
    let done = match (method.as_str(), named) {
        ("GET", _) if call.query.flag("watch") => return watching(call, form),
        ("GET", true) => return Ok(json(200, form.object(&call.resource, &*read::get(call)?), &[])),
        ("GET", false) => return Ok(json(200, form.list(&call.resource, &read::list(call)?), &[])),
        ("POST", false) => write::create(call)?,
        ("PUT", true) => write::update(call)?,
        ("PATCH", true) => write::patch(call)?,
        ("DELETE", true) => delete::delete(call)?,
        ("DELETE", false) => delete::delete_collection(call)?,
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(written(call, &form, done))
}

fn subresource_call(call: &Call, method: &Method, sub: &str, form: &Representation) -> ApiResult<Written> {
    let core = |plural: &str| call.resource.is_core(plural);
    match (method.as_str(), sub) {
        ("GET", "status") if call.resource.status => Ok(Written::new(200, read::get(call)?.value.clone())),
        ("PUT", "status") if call.resource.status => write::update(call),
        ("PATCH", "status") if call.resource.status => write::patch(call),
        ("PUT", "finalize") if core("namespaces") => write::update(call),
        ("GET", "scale") => subresource::get_scale(call).map(|value| Written::new(200, value)),
        ("PUT", "scale") => subresource::set_scale(call, false),
        ("PATCH", "scale") => subresource::set_scale(call, true),
        ("POST", "eviction") if core("pods") => subresource::evict(call),
        ("POST", "binding") if core("pods") => subresource::bind(call, call.name()?),
        ("POST", "token") if core("serviceaccounts") => subresource::token(call),
        _ => {
            let _ = form;
            Err(ApiError::no_such_resource())
        }
    }
}

/// Reviews, and Bindings posted to the collection.
fn create_only(call: &Call) -> ApiResult<Written> {
    let mut value = call.decode()?;
    match call.resource.kind.as_str() {
        "Binding" => {
            let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            return subresource::bind(call, &name);
        }
        // Everyone may do everything here.
        "SelfSubjectAccessReview" => value["status"] = serde_json::json!({"allowed": true}),
        _ => value["status"] = serde_json::json!({"userInfo": {"username": "admin", "groups": ["system:masters"]}}),
    }
    Ok(Written::new(201, value))
}

fn watching(call: &Call, form: Representation) -> ApiResult<Response<ResponseBody>> {
    let stream = watch::watch(call, form)?.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
    let mut response = Response::new(StreamBody::new(stream).boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}

fn written(call: &Call, form: &Representation, done: Written) -> Response<ResponseBody> {
    json(done.code, form.value(&call.resource, &done.value), &done.warnings)
}

fn other(api: &Inner, segments: &[String], accept: Option<&str>) -> ApiResult<Response<ResponseBody>> {
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    if let ["healthz" | "livez" | "readyz", ..] = parts.as_slice() {
        let mut response = Response::new(Full::new(Bytes::from_static(b"ok")).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain"));
        return Ok(response);
    }
    if let ["openapi", rest @ ..] = parts.as_slice() {
        let document = openapi::document(&api.registry(), rest).ok_or_else(ApiError::no_such_resource)?;
        return Ok(json(200, document, &[]));
    }
    let aggregated = accept.is_some_and(|a| a.contains("g=apidiscovery.k8s.io") && a.contains("v=v2;"))
        || accept.is_some_and(|a| a.contains("as=APIGroupDiscoveryList") && a.contains("v=v2,"));
    let (document, media) =
        discovery::document(&api.registry(), &parts, aggregated).ok_or_else(ApiError::no_such_resource)?;
    let mut response = json(200, Bytes::from(serde_json::to_vec(&document).unwrap_or_default()), &[]);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media));
    Ok(response)
}

fn json(code: u16, bytes: Bytes, warnings: &[String]) -> Response<ResponseBody> {
    let mut response = Response::new(Full::new(bytes).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = header::HeaderValue::from_str(&text) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

fn failure(error: &ApiError) -> Response<ResponseBody> {
    let status: Value = error.to_status();
    let mut response = json(error.code, Bytes::from(serde_json::to_vec(&status).unwrap_or_default()), &[]);
    if let Some(seconds) = status["details"]["retryAfterSeconds"].as_u64() {
        response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from(seconds));
    }
    response
}
