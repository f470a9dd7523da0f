//! The `mortise` binary.

fn main() {}
