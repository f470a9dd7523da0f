//! The built-in policies as components: bytes and digests. They are built from `plugins/` by this crate's build script.

include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// A built-in policy by name: component and sha256.
#[must_use]
pub fn builtin(name: &str) -> Option<(&'static [u8], &'static str)> {
    BUILTINS.iter().find(|(n, _, _)| *n == name).map(|(_, bytes, digest)| (*bytes, *digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_is_a_small_component() {
        for (name, bytes, digest) in BUILTINS {
            assert_eq!(bytes.get(..8), Some(&b"\0asm\x0d\0\x01\0"[..]), "{name} is not a component");
            // A ConfigMap holds 1 MiB: five of them, were they somebody's own.
            assert!(bytes.len() < 200 * 1024, "{name} has grown to {} bytes", bytes.len());
            assert_eq!(digest.len(), 64);
        }
        assert!(builtin("price").is_some() && builtin("absent").is_none());
    }
}
