//! Scheduling and disruption decisions, pure: no async, no I/O, no clock, no randomness.
