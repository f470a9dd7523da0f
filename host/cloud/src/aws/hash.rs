//! Names made from contents.

use sha2::{Digest, Sha256};

/// Twenty hex digits of SHA-256 over the parts, each closed off so that no two lists of parts run together.
pub(crate) fn short_hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().take(10).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_and_parted() {
        assert_eq!(short_hash(&["a", "bc"]), short_hash(&["a", "bc"]));
        assert_ne!(short_hash(&["a", "bc"]), short_hash(&["ab", "c"]));
        assert_eq!(short_hash(&[]).len(), 20);
    }
}
