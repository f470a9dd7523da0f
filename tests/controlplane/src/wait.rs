//! Waiting for something to become true, with a message that says what did not.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(150);

/// Calls `probe` until it returns a value. `Ok(None)` and `Err` both mean "not yet"; the last error is part of the
/// message when time is up.
///
/// # Errors
/// `limit` has passed.
pub async fn until<T>(what: &str, limit: Duration, mut probe: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        let last = match probe().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => String::new(),
            Err(error) => format!(": {error:#}"),
        };
        if begun.elapsed() > limit {
            bail!("waited {} s for {what}{last}", limit.as_secs());
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Checks that `probe` stays `Ok` for the whole `span`.
///
/// # Errors
/// The first error of `probe`.
pub async fn holds(what: &str, span: Duration, mut probe: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < span {
        if let Err(error) = probe().await {
            bail!("{what} did not hold after {:.1} s: {error:#}", begun.elapsed().as_secs_f64());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}
