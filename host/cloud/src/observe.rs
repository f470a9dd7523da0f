//! A place to count provider calls without this crate knowing a metrics library.

use std::time::Duration;

/// Told of every call to the provider's API, retries inside the client included in its duration.
pub trait CallObserver: Send + Sync {
    /// `call` is the operation (`CreateFleet`), `error_code` the provider's code or `timeout`/`dispatch`/`response`.
    fn observe(&self, call: &'static str, duration: Duration, error_code: Option<&str>);
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl CallObserver for Unobserved {
    fn observe(&self, _: &'static str, _: Duration, _: Option<&str>) {}
}
