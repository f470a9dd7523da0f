//! The policy host from outside: what the engine and the controller see of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub, reason = "tests")]

#[path = "policies/admission.rs"]
mod admission;
#[path = "policies/builtins.rs"]
mod builtins;
#[path = "policies/guests.rs"]
mod guests;
#[path = "policies/hot_swap.rs"]
mod hot_swap;
#[path = "policies/run_time.rs"]
mod run_time;
#[path = "policies/world.rs"]
mod world;
