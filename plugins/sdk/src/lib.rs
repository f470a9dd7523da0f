//! Guest crate for policies in Rust: no_std column views, bindings and a native test harness.
