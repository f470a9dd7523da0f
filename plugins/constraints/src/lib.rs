//! Built-in policy: constraints.
