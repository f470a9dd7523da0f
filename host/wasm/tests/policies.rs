//! The policy host from outside: what the engine and the controller see of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "policies/builtins.rs"]
mod builtins;
#[path = "policies/world.rs"]
mod world;
