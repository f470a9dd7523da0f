//! Plain HTTP for scrapers and probes: `/metrics`, `/healthz`, `/readyz`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::metrics::Registry;

/// Connections served at once; more wait in the accept queue. Scrapers and probes need a handful.
const MAX_CONNECTIONS: usize = 64;
/// A client that does not finish its request head in this time is cut off.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// What one port answers.
#[derive(Clone)]
pub enum Routes {
    /// `/metrics`.
    Metrics(Arc<Registry>),
    /// `/healthz` and `/readyz`.
    Health(Arc<Health>),
}

/// Opens a port on all addresses. IPv6 first, as it takes IPv4 too where the host allows it.
///
/// # Errors
/// The port and why it could not be opened.
pub async fn bind(port: u16, what: &str) -> anyhow::Result<TcpListener> {
    let any6 = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, port));
    let any4 = SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, port));
    match TcpListener::bind(any6).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(any4).await.map_err(|e| {
            anyhow::anyhow!("cannot serve {what} on port {port}: {e}; choose another port or stop what is using it")
        }),
    }
}

/// Serves until the token is cancelled.
pub async fn serve(listener: TcpListener, routes: Routes, stop: CancellationToken) {
    let connections = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: wait for some to come back.
                    tracing::error!(%error, "failed accepting connection");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
            },
        };
        let (routes, stop) = (routes.clone(), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let routes = routes.clone();
                async move { Ok::<_, Infallible>(answer(&routes, &request)) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            tokio::select! {
                // A broken connection is the client's affair.
                _ = http.serve_connection(TokioIo::new(stream), service) => {}
                () = stop.cancelled() => {}
            }
            drop(permit);
        });
    }
}

fn answer(routes: &Routes, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into());
    }
    match (routes, request.uri().path()) {
        (Routes::Metrics(registry), "/metrics") => text(StatusCode::OK, registry.render()),
        (Routes::Health(_), "/healthz") => text(StatusCode::OK, "ok\n".into()),
        (Routes::Health(health), "/readyz") => match health.missing() {
            missing if missing.is_empty() => text(StatusCode::OK, "ok\n".into()),
            missing => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", missing.join(", "))),
        },
        _ => text(StatusCode::NOT_FOUND, "not found\n".into()),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    response
}
