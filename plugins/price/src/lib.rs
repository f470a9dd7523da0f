//! Built-in policy: price.
