//! UIDs and suffixes of generated names, from a seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of identifiers.
#[derive(Debug)]
pub(crate) struct Ids(AtomicU64);

/// Letters that the API server uses for generated names: no vowels, nothing that reads like another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// SplitMix64.
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A UUID (version 4 in form).
    pub(crate) fn uid(&self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            ((b >> 48) & 0x3fff) | 0x8000,
            b & 0xffff_ffff_ffff
        )
    }

    /// Five characters.
    pub(crate) fn suffix(&self) -> String {
        let mut n = self.next();
        let mut out = String::with_capacity(5);
        for _ in 0..5 {
            let at = (n % ALPHABET.len() as u64) as usize;
            out.extend(ALPHABET.get(at).map(|b| char::from(*b)));
            n /= ALPHABET.len() as u64;
        }
        out
    }
}
