//! The built-in policies as components: bytes and digests.
