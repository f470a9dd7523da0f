//! Logs: JSON in Karpenter's shape when a machine reads them, plain text on a terminal.
//!
//! `{"level":"INFO","time":"2026-01-31T12:00:00.000Z","logger":"controller","message":"…","commit":"…", …fields}`

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter, format};
use tracing_subscriber::registry::LookupSpan;

mod json;
#[cfg(test)]
mod tests;

/// Revision of the source, as given at build time; `unknown` in a plain `cargo build`.
pub const COMMIT: &str = match option_env!("MORTISE_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Where log lines go: each line to every sink.
#[derive(Clone)]
pub struct Sinks {
    sinks: Arc<Vec<Mutex<Sink>>>,
}

enum Sink {
    Stdout,
    Stderr,
    File(File),
}

impl Sinks {
    /// Opens the paths of `LOG_OUTPUT_PATHS`; files are appended to.
    ///
    /// # Errors
    /// The path that could not be opened, and why.
    pub fn open(paths: &[String]) -> Result<Self, String> {
        let mut sinks = Vec::with_capacity(paths.len());
        for path in paths {
            let sink = match path.as_str() {
                "stdout" => Sink::Stdout,
                "stderr" => Sink::Stderr,
                file => {
                    let file = file.strip_prefix("file://").unwrap_or(file);
                    let opened = OpenOptions::new().create(true).append(true).open(file);
                    Sink::File(opened.map_err(|e| format!("LOG_OUTPUT_PATHS: cannot open \"{file}\": {e}"))?)
                }
            };
            sinks.push(Mutex::new(sink));
        }
        Ok(Self { sinks: Arc::new(sinks) })
    }

    /// Is the only sink a terminal?
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        match self.sinks.as_slice() {
            [one] => match &*one.lock().unwrap_or_else(PoisonError::into_inner) {
                Sink::Stdout => io::stdout().is_terminal(),
                Sink::Stderr => io::stderr().is_terminal(),
                Sink::File(_) => false,
            },
            _ => false,
        }
    }
}

impl Write for Sinks {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        for sink in self.sinks.iter() {
            // A full disk or a closed pipe must not stop the controller: logging is best effort.
            let _ = match &mut *sink.lock().unwrap_or_else(PoisonError::into_inner) {
                Sink::Stdout => io::stdout().lock().write_all(line),
                Sink::Stderr => io::stderr().lock().write_all(line),
                Sink::File(file) => file.write_all(line),
            };
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sinks {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Starts logging for the process. Called once; a second call (tests) changes nothing.
///
/// # Errors
/// A path that cannot be opened.
pub fn start(level: &str, paths: &[String]) -> Result<(), String> {
    let sinks = Sinks::open(paths)?;
    let level = match level {
        "debug" => "debug",
        "error" => "error",
        _ => "info",
    };
    // Our crates at the level asked; libraries only when something is wrong with them. What the Kubernetes client
    // says of a failed request, whoever made it says too, with the reason and what follows.
    let filter = EnvFilter::new(format!(
        "warn,mortise={level},mortise_api={level},mortise_engine={level},mortise_kube={level},mortise_cloud={level},\
         mortise_wasm={level},mortise_sim={level},kube_runtime=off,kube_client=off"
    ));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(sinks.clone());
    let _ =
        if sinks.is_terminal() { builder.with_target(false).try_init() } else { builder.event_format(Json).try_init() };
    Ok(())
}

/// Formats one event as one JSON object.
pub struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: format::Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let now = jiff::Timestamp::now();
        writer.write_str(&json::line(event, now))?;
        writer.write_char('\n')
    }
}
