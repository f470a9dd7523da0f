//! Names of the claims of a static pool: the same for the same seat, whoever asks and how often.

use std::collections::BTreeSet;

/// Longest pool name that is repeated in a claim's: with the suffix it becomes a label value in places, which ends at 63
/// characters.
const PREFIX: usize = 54;
/// Letters of the suffix: five bits each.
const LETTERS: &[u8; 32] = b"bcdfghjklmnpqrstvwxz23456789yaeu";

/// The first `wanted` seats, by name, that nobody has. A claim that is on its way out keeps its seat until it is gone.
pub(super) fn free(pool: &str, uid: &str, taken: &BTreeSet<String>, wanted: usize) -> Vec<String> {
    let mut free = BTreeSet::new();
    let mut order = Vec::with_capacity(wanted);
    let mut number = 0_u64;
    while order.len() < wanted {
        let name = name(pool, uid, number);
        number += 1;
        if !taken.contains(&name) && free.insert(name.clone()) {
            order.push(name);
        }
    }
    order
}

/// `<nodepool>-<eight letters>`: forty bits of the FNV-1a hash of UID and number.
fn name(pool: &str, uid: &str, number: u64) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in uid.bytes().chain(number.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // The low bits of FNV mix badly, the high ones well.
    let mut rest = hash ^ (hash >> 32);
    let mut suffix = String::with_capacity(8);
    for _ in 0..8 {
        let at = usize::try_from(rest % 32).unwrap_or_default();
        rest /= 32;
        suffix.push(LETTERS.get(at).map_or('b', |letter| char::from(*letter)));
    }
    let mut pool = pool;
    while pool.len() > PREFIX {
        pool = pool.get(..pool.len() - 1).unwrap_or_default();
    }
    format!("{}-{suffix}", pool.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_answer_leads_to_the_same_seat() {
        let none = BTreeSet::new();
        let first = free("fixed", "uid-1", &none, 3);
        assert_eq!(first, free("fixed", "uid-1", &none, 3));
        let taken: BTreeSet<String> = [first[0].clone(), first[2].clone()].into();
        let next = free("fixed", "uid-1", &taken, 2);
        assert_eq!(next[0], first[1], "what was not seen is asked for again");
        assert!(!taken.contains(&next[1]));
        assert_ne!(first, free("fixed", "uid-2", &none, 3), "a pool made anew has seats of its own");
    }

    #[test]
    fn names_are_distinct_and_fit_a_label() {
        let pool = format!("{}.", "p".repeat(80));
        let names = free(&pool, "uid", &BTreeSet::new(), 10_000);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 10_000);
        assert!(names.iter().all(|name| name.len() <= 63 && mortise_api::validation::is_label_value(name)));
    }
}
