//! From the bytes of a ConfigMap to those of a component: unpacking with a cap, digest, kind.

use std::io::Read as _;

use sha2::Digest as _;

/// What the API server lets a ConfigMap hold.
const MAX_PACKED: usize = 1024 * 1024;

/// Unpacks raw or gzip bytes, by magic.
pub(crate) fn unpack(raw: &[u8], most: usize) -> Result<Vec<u8>, String> {
    if raw.len() > MAX_PACKED {
        return Err(format!("{} bytes, at most {MAX_PACKED} in a ConfigMap", raw.len()));
    }
    let too_large = |length: usize| format!("{length} bytes or more when unpacked, at most {most}");
    match raw {
        [0x1f, 0x8b, ..] => {
            let mut unpacked = Vec::new();
            // One byte past the cap tells "too large" from "just fits" without unpacking a bomb.
            let mut reader = flate2::read::MultiGzDecoder::new(raw).take(most as u64 + 1);
            reader.read_to_end(&mut unpacked).map_err(|error| format!("broken gzip: {error}"))?;
            if unpacked.len() > most { Err(too_large(unpacked.len())) } else { Ok(unpacked) }
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Err("zstd is not supported in this version; use gzip".into()),
        _ if raw.len() > most => Err(too_large(raw.len())),
        _ => Ok(raw.to_vec()),
    }
}

/// sha256 in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}

pub(crate) fn hex(digest: &[u8]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Refuses what is not a component, by what it is.
pub(crate) fn require_component(bytes: &[u8]) -> Result<(), String> {
    match bytes {
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            Err("a core Wasm module, not a component: build it with `cargo xtask plugins build`".into())
        }
        [0, b'a', b's', b'm', ..] => Err("a component of a version that this host does not know".into()),
        [0x7f, b'E', b'L', b'F', ..] => {
            Err("native code (precompiled?), which is never accepted: give the component".into())
        }
        [] => Err("empty".into()),
        _ => Err("not a Wasm component".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn unpacks_within_the_cap() {
        assert_eq!(unpack(b"plain", 5).unwrap(), b"plain");
        assert_eq!(unpack(&gzip(b"plain"), 5).unwrap(), b"plain");
        assert!(unpack(b"plain", 4).unwrap_err().contains("at most 4"));
        assert!(unpack(&gzip(b"plain"), 4).unwrap_err().contains("at most 4"));
        let bomb = gzip(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000 && unpack(&bomb, 1 << 20).unwrap_err().contains("at most 1048576"));
    }

    #[test]
    fn broken_and_foreign_packings_are_named() {
        let whole = gzip(b"some text that is long enough");
        assert!(unpack(&whole[..whole.len() - 6], 100).unwrap_err().contains("broken gzip"));
        assert!(unpack(&[0x28, 0xb5, 0x2f, 0xfd, 0], 100).unwrap_err().contains("zstd"));
        assert!(unpack(&vec![0; MAX_PACKED + 1], usize::MAX).unwrap_err().contains("ConfigMap"));
    }

    #[test]
    fn what_is_not_a_component_is_named() {
        for (bytes, word) in [
            (&b"\0asm\x01\0\0\0"[..], "core Wasm module"),
            (b"\x7fELF....", "native code"),
            (b"\0asm\x0e\0\x01\0", "version"),
            (b"", "empty"),
            (b"#!/bin/sh", "not a Wasm component"),
        ] {
            assert!(require_component(bytes).unwrap_err().contains(word), "{word}");
        }
    }
}
