//! Logging through the host. Natively (in tests) lines go to standard error.

use core::fmt::Arguments;

/// Severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Finest detail.
    Trace,
    /// Detail.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth looking at.
    Warn,
    /// Something is wrong.
    Error,
}

/// Writes a line when somebody listens: `log::write(Level::Info, format_args!("{n} dropped"))`.
#[cfg(target_arch = "wasm32")]
pub fn write(level: Level, message: Arguments<'_>) {
    use crate::bindings::lifecycle::mortise::policy::host_log as host;
    let level = match level {
        Level::Trace => host::Level::Trace,
        Level::Debug => host::Level::Debug,
        Level::Info => host::Level::Info,
        Level::Warn => host::Level::Warn,
        Level::Error => host::Level::Error,
    };
    if host::enabled(level) {
        match message.as_str() {
            Some(text) => host::write(level, text),
            None => host::write(level, &alloc::fmt::format(message)),
        }
    }
}

/// Writes a line when somebody listens: `log::write(Level::Info, format_args!("{n} dropped"))`.
#[cfg(not(target_arch = "wasm32"))]
pub fn write(level: Level, message: Arguments<'_>) {
    std::eprintln!("{level:?}: {message}");
}
