//! A token bucket in front of the client, and counters.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response};
use tokio::time::{Instant, Sleep};
use tower::{Layer, Service};

/// One finished request.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// Method.
    pub method: &'a Method,
    /// Path, without the query.
    pub path: &'a str,
    /// The request opened a watch.
    pub watch: bool,
    /// Status; `None` when there was no answer.
    pub status: Option<u16>,
    /// From sending to the head of the answer.
    pub elapsed: Duration,
}

type Observer = Box<dyn Fn(&Observed<'_>) + Send + Sync>;

/// Counts of requests.
#[derive(Default)]
pub struct Requests {
    sent: AtomicU64,
    failed: AtomicU64,
    waited_ms: AtomicU64,
    observer: OnceLock<Observer>,
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests").field("sent", &self.sent).field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl Requests {
    /// Requests sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Of them, without an answer or answered with 429 or 5xx.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Time requests were held back by the limit, milliseconds in sum.
    pub fn waited_ms(&self) -> u64 {
        self.waited_ms.load(Ordering::Relaxed)
    }

    /// Has every finished request told to `observer`. Only the first observer counts.
    pub fn observe(&self, observer: impl Fn(&Observed<'_>) + Send + Sync + 'static) {
        // A second observer is a mistake of the caller that loses metrics, not work.
        let _ = self.observer.set(Box::new(observer));
    }
}

/// Makes [`Limit`].
#[derive(Clone, Debug)]
pub struct LimitLayer {
    qps: f64,
    burst: f64,
    requests: Arc<Requests>,
}

impl LimitLayer {
    /// `qps` requests a second (zero or less = no limit), `burst` at once after a quiet time.
    pub fn new(qps: f64, burst: u32, requests: Arc<Requests>) -> Self {
        Self { qps, burst: f64::from(burst.max(1)), requests }
    }
}

impl<S> Layer<S> for LimitLayer {
    type Service = Limit<S>;

    fn layer(&self, inner: S) -> Limit<S> {
        Limit {
            inner,
            qps: self.qps,
            burst: self.burst,
            tokens: self.burst,
            filled: None,
            pause: None,
            held: false,
            requests: Arc::clone(&self.requests),
        }
    }
}

/// Holds requests back when there are too many.
pub struct Limit<S> {
    inner: S,
    qps: f64,
    burst: f64,
    tokens: f64,
    filled: Option<Instant>,
    pause: Option<Pin<Box<Sleep>>>,
    /// A token was taken and not used yet.
    held: bool,
    requests: Arc<Requests>,
}

impl<S> Limit<S> {
    fn poll_token(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.held || self.qps <= 0.0 {
            return Poll::Ready(());
        }
        loop {
            if let Some(pause) = &mut self.pause {
                if pause.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.pause = None;
            }
            let now = Instant::now();
            let since = self.filled.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
            self.tokens = (self.tokens + since.as_secs_f64() * self.qps).min(self.burst);
            self.filled = Some(now);
            // Rounding may leave a hair less than one token after the exact pause.
            if self.tokens >= 1.0 - 1e-6 {
                self.tokens -= 1.0;
                self.held = true;
                return Poll::Ready(());
            }
            let pause = Duration::from_secs_f64((1.0 - self.tokens) / self.qps).max(Duration::from_millis(1));
            let millis = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            self.requests.waited_ms.fetch_add(millis, Ordering::Relaxed);
            self.pause = Some(Box::pin(tokio::time::sleep(pause)));
        }
    }
}

impl<S, B, R> Service<Request<B>> for Limit<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.poll_token(cx).is_pending() {
            return Poll::Pending;
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.held = false;
        let requests = Arc::clone(&self.requests);
        requests.sent.fetch_add(1, Ordering::Relaxed);
        let seen = requests.observer.get().is_some().then(|| {
            let query = request.uri().query().unwrap_or_default();
            let watch = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
            (request.method().clone(), request.uri().path().to_owned(), watch)
        });
        let started = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let status = answer.as_ref().ok().map(|response| response.status().as_u16());
            if status.is_none_or(|code| code == 429 || code >= 500) {
                requests.failed.fetch_add(1, Ordering::Relaxed);
            }
            if let (Some(observer), Some((method, path, watch))) = (requests.observer.get(), &seen) {
                observer(&Observed { method, path, watch: *watch, status, elapsed: started.elapsed() });
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower::ServiceExt;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_then_the_rate_holds() {
        let requests = Arc::new(Requests::default());
        let answers = tower::service_fn(|request: Request<()>| async move {
            let code = if request.uri().path() == "/bad" { 503 } else { 200 };
            Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(()).unwrap())
        });
        let mut service = LimitLayer::new(10.0, 5, Arc::clone(&requests)).layer(answers);
        let start = Instant::now();
        for _ in 0..5 {
            service.ready().await.unwrap().call(Request::new(())).await.unwrap();
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..20 {
            service.ready().await.unwrap().call(Request::new(())).await.unwrap();
        }
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(1990) && took <= Duration::from_millis(2100), "{took:?}");
        assert_eq!((requests.sent(), requests.failed()), (25, 0));
        assert!(requests.waited_ms() >= 1900);
        service.ready().await.unwrap().call(Request::builder().uri("/bad").body(()).unwrap()).await.unwrap();
        assert_eq!(requests.failed(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn zero_is_no_limit_and_the_observer_sees_watches() {
        let requests = Arc::new(Requests::default());
        let seen = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&seen);
        requests.observe(move |request| {
            assert_eq!(request.status, Some(200));
            count.fetch_add(u64::from(request.watch), Ordering::Relaxed);
        });
        let answers =
            tower::service_fn(|_: Request<()>| async { Ok::<_, std::convert::Infallible>(Response::new(())) });
        let mut service = LimitLayer::new(0.0, 1, Arc::clone(&requests)).layer(answers);
        let start = Instant::now();
        for uri in ["/api/v1/pods?watch=true&limit=1", "/api/v1/pods?limit=1"] {
            service.ready().await.unwrap().call(Request::builder().uri(uri).body(()).unwrap()).await.unwrap();
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(seen.load(Ordering::Relaxed), 1);
    }
}
