//! Metrics through the host: `mortise_plugin_<name>` labelled with the plugin. Natively (in tests) they go nowhere.

/// Adds to a counter. Names: lower-case letters, digits and underscores; at most 32 a plugin.
pub fn add(name: &str, delta: u64) {
    #[cfg(target_arch = "wasm32")]
    crate::bindings::lifecycle::mortise::policy::host_metrics::add(name, delta);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (name, delta);
}

/// Sets a gauge.
pub fn observe(name: &str, value: i64) {
    #[cfg(target_arch = "wasm32")]
    crate::bindings::lifecycle::mortise::policy::host_metrics::observe(name, value);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (name, value);
}
