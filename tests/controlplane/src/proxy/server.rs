//! Receiving, recording, forwarding.

use super::{Call, Effect, Market, Outcome, Shared, fleet};
use crate::aws::{SSM_PREFIX, SSM_STORED_PREFIX};
use anyhow::{Context, Result, bail};
use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

pub(super) type UpstreamClient = Client<HttpConnector, Full<Bytes>>;

/// Operations whose answers are the same for the life of the account.
const CONSTANT: [&str; 3] = ["DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory"];

pub(super) fn upstream_client() -> UpstreamClient {
    Client::builder(TokioExecutor::new()).build_http()
}

pub(super) async fn serve(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let shared = Arc::clone(&shared);
                // A task of its own: AWS carries a call out even if its caller dies meanwhile.
                async move { tokio::spawn(handle(shared, request)).await? }
            });
            // An error here is a dropped connection: either a fault asked for it or the client went away.
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

/// Reads the request, decides its fate, and records it. An error closes the connection without an answer.
async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
    let shared = shared.as_ref();
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let call = describe(&parts.method, parts.uri.path(), &parts.headers, &body);
    let (index, effect) = {
        let mut state = shared.state();
        let effect = state.faults.iter_mut().find_map(|fault| fault.take(&call));
        state.calls.push(call.clone());
        (state.calls.len() - 1, effect)
    };
    let record = |outcome: Outcome| {
        if let Some(call) = shared.state().calls.get_mut(index) {
            call.outcome = outcome;
        }
    };
    match &effect {
        Some(Effect::Refuse { status, code, message }) => {
            record(Outcome::Answered(*status));
            return refusal(&parts.headers, *status, code, message);
        }
        Some(Effect::LoseRequest) => {
            record(Outcome::Dropped { reached: false });
            bail!("the request was lost");
        }
        _ => {}
    }
    let answer = if call.operation == "CreateFleet" {
        let answer = fleet::create(shared, &call).await?;
        if let Some(call) = shared.state().calls.get_mut(index) {
            call.instances = answer.instances;
            call.replayed = answer.replayed;
        }
        xml_response(answer.status, answer.xml)?
    } else {
        forward(shared, &call, &parts, body).await?
    };
    match effect {
        Some(Effect::Late(delay)) => tokio::time::sleep(delay).await,
        Some(Effect::LoseReply) => {
            record(Outcome::Dropped { reached: true });
            bail!("the reply was lost");
        }
        _ => {}
    }
    record(Outcome::Answered(answer.status().as_u16()));
    Ok(answer)
}

fn describe(method: &http::Method, path: &str, headers: &HeaderMap, body: &Bytes) -> Call {
    let text = String::from_utf8_lossy(body);
    let target = headers.get("x-amz-target").and_then(|value| value.to_str().ok());
    let (operation, parameters) = if let Some(target) = target {
        let operation = target.rsplit('.').next().unwrap_or(target).to_owned();
        (operation, BTreeMap::from([("body".to_owned(), text.into_owned())]))
    } else if text.contains("Action=") {
        let mut form: BTreeMap<String, String> = form_urlencoded::parse(body).into_owned().collect();
        let action = form.remove("Action").unwrap_or_default();
        // A dry run is another operation to whoever counts launches.
        let dry = form.get("DryRun").is_some_and(|value| value == "true");
        (if dry { format!("{action} (dry run)") } else { action }, form)
    } else {
        let operation = match (method.as_str(), path.split('/').nth(1)) {
            ("GET", Some("clusters")) => "DescribeCluster".to_owned(),
            (method, _) => format!("{method} {path}"),
        };
        (operation, BTreeMap::from([("body".to_owned(), text.into_owned())]))
    };
    Call { operation, parameters, at: Instant::now(), outcome: Outcome::Open, instances: Vec::new(), replayed: false }
}

async fn forward(
    shared: &Shared,
    call: &Call,
    parts: &http::request::Parts,
    body: Bytes,
) -> Result<Response<Full<Bytes>>> {
    let constant =
        CONSTANT.contains(&call.operation.as_str()).then(|| format!("{} {:?}", call.operation, call.parameters));
    if let Some(key) = &constant
        && let Some((headers, body)) = shared.state().constant.get(key).cloned()
    {
        let mut response = Response::new(Full::new(body));
        *response.headers_mut() = headers;
        return Ok(response);
    }
    let body =
        if call.operation.starts_with("GetParameter") { replace(&body, SSM_PREFIX, SSM_STORED_PREFIX) } else { body };
    let (mut status, mut headers, mut answer) = send(shared, parts, body).await?;
    match call.operation.as_str() {
        name if name.starts_with("GetParameter") => answer = replace(&answer, SSM_STORED_PREFIX, SSM_PREFIX),
        "DescribeCluster" => answer = with_facts(shared, &answer)?,
        "DescribeSpotPriceHistory" => answer = with_prices(&answer)?,
        _ => {}
    }
    headers.remove(http::header::CONTENT_LENGTH);
    headers.remove(http::header::TRANSFER_ENCODING);
    headers.remove(http::header::CONNECTION);
    if status == StatusCode::INTERNAL_SERVER_ERROR && answer.starts_with(b"<!doctype") {
        // moto's own failure: say so in a form that an SDK can read.
        status = StatusCode::NOT_IMPLEMENTED;
        answer = Bytes::from(error_xml("NotImplemented", "the stand-in for AWS cannot do this"));
    }
    if let (Some(key), true) = (constant, status.is_success()) {
        shared.state().constant.insert(key, (headers.clone(), answer.clone()));
    }
    let mut response = Response::new(Full::new(answer));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

async fn send(shared: &Shared, parts: &http::request::Parts, body: Bytes) -> Result<(StatusCode, HeaderMap, Bytes)> {
    let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut request = Request::builder()
        .method(parts.method.clone())
        .uri(format!("{}{path}", shared.upstream))
        .body(Full::new(body))?;
    for (name, value) in &parts.headers {
        // The SDK's compression and length no longer fit a body that may have been rewritten.
        if name != http::header::CONTENT_LENGTH && name != http::header::ACCEPT_ENCODING {
            request.headers_mut().append(name.clone(), value.clone());
        }
    }
    let response = shared.http.request(request).await.context("moto does not answer")?;
    let (parts, body) = response.into_parts();
    Ok((parts.status, parts.headers, body.collect().await?.to_bytes()))
}

/// Sends a form of ours, for calls that the proxy splits up.
pub(super) async fn forward_form(shared: &Shared, service: &str, form: String) -> Result<(u16, String)> {
    let request = Request::post(format!("{}/", shared.upstream))
        .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
        .header(
            "authorization",
            format!(
                "AWS4-HMAC-SHA256 Credential=test/20260101/{}/{service}/aws4_request, SignedHeaders=host, Signature=none",
                crate::aws::REGION
            ),
        )
        .body(Full::new(Bytes::from(format!("Action=CreateFleet&{form}"))))?;
    let response = shared.http.request(request).await.context("moto does not answer")?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

fn replace(body: &Bytes, from: &str, to: &str) -> Bytes {
    let text = String::from_utf8_lossy(body);
    // JSON may escape the slashes.
    Bytes::from(text.replace(from, to).replace(&from.replace('/', "\\/"), &to.replace('/', "\\/")))
}

fn with_facts(shared: &Shared, answer: &Bytes) -> Result<Bytes> {
    let mut value: serde_json::Value = serde_json::from_slice(answer)?;
    if let Some(cluster) = value.get_mut("cluster") {
        let ca = base64::engine::general_purpose::STANDARD.encode(&shared.facts.ca_pem);
        cluster["endpoint"] = shared.facts.endpoint.clone().into();
        cluster["certificateAuthority"] = serde_json::json!({"data": ca});
    }
    Ok(Bytes::from(value.to_string()))
}

fn with_prices(answer: &Bytes) -> Result<Bytes> {
    let text = String::from_utf8_lossy(answer);
    let document = roxmltree::Document::parse(&text).context("moto's price answer is not XML")?;
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for item in document.descendants().filter(|node| node.tag_name().name() == "item") {
        let field = |name: &str| item.children().find(|node| node.tag_name().name() == name);
        let (Some(price), Some(kind), Some(zone)) =
            (field("spotPrice"), field("instanceType"), field("availabilityZone"))
        else {
            continue;
        };
        let value = Market::price(kind.text().unwrap_or_default(), zone.text().unwrap_or_default(), "spot");
        // A type without a price has no spot market here: moto's own figure would make it the cheapest of all.
        let (range, text_of_it) = match value {
            Some(value) => (price.range(), format!("<spotPrice>{value:.6}</spotPrice>")),
            None => (item.range(), String::new()),
        };
        out.push_str(text.get(copied..range.start).unwrap_or_default());
        out.push_str(&text_of_it);
        copied = range.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(Bytes::from(out))
}

pub(super) fn error_xml(code: &str, message: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message>\
         </Error></Errors><RequestID>refused-by-the-fault-proxy</RequestID></Response>"
    )
}

fn refusal(headers: &HeaderMap, status: u16, code: &str, message: &str) -> Result<Response<Full<Bytes>>> {
    if headers.contains_key("x-amz-target") {
        let body = serde_json::json!({"__type": code, "message": message}).to_string();
        return Ok(Response::builder()
            .status(status)
            .header("content-type", "application/x-amz-json-1.1")
            .body(Full::new(Bytes::from(body)))?);
    }
    xml_response(status, error_xml(code, message))
}

fn xml_response(status: u16, xml: String) -> Result<Response<Full<Bytes>>> {
    Ok(Response::builder()
        .status(status)
        .header("content-type", "text/xml;charset=UTF-8")
        .body(Full::new(Bytes::from(xml)))?)
}
