//! Waiting for something to become true, with a message that says what did not.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// An error that waiting does not mend, such as a program that has ended.
#[derive(Debug)]
pub struct Final(pub String);

impl std::fmt::Display for Final {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Final {}

const POLL: Duration = Duration::from_millis(150);

/// Calls `probe` until it returns a value. `Ok(None)` and `Err` both mean "not yet"; the last error is part of the
/// message when time is up. A [`Final`] error ends the waiting.
///
/// # Errors
/// `limit` has passed, or `probe` returned a [`Final`] error.
pub async fn until<T>(what: &str, limit: Duration, mut probe: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        let last = match probe().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => String::new(),
            Err(error) if error.downcast_ref::<Final>().is_some() => return Err(error),
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
