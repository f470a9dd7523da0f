//! "Did you mean": the known word nearest to a mistyped one.

/// The candidate nearest to `word`, if it is near enough to be a typing error: at most two edits, and fewer than a
/// third of the word. Letter case and the part before the slash being right make it nearer.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).clamp(1, 2);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .map(|candidate| (distance(&word.to_ascii_lowercase(), &candidate.to_ascii_lowercase()), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// ", did you mean X?" or nothing.
pub(super) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|candidate| format!("; did you mean {candidate}?")).unwrap_or_default()
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &ca) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let get = |line: &[usize], at: usize| line.get(at).copied().unwrap_or(usize::MAX / 2);
            let mut best = (get(&above, j) + usize::from(ca != cb)).min(get(&above, j + 1) + 1).min(get(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&cb) && b.get(j - 1) == Some(&ca);
            if swapped {
                best = best.min(get(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels;

    #[test]
    fn finds_typing_errors_and_nothing_else() {
        let labels = || labels::WELL_KNOWN.iter().copied();
        assert_eq!(nearest("karpenter.k8s.aws/instance-categroy", labels()), Some(labels::INSTANCE_CATEGORY));
        assert_eq!(nearest("topology.kubernetes.io/zones", labels()), Some(labels::ZONE));
        assert_eq!(nearest("team", labels()), None);
        assert_eq!(nearest("Spot", labels::capacity_type::ALL.iter().copied()), Some("spot"));
        assert_eq!(nearest("ondemand", labels::capacity_type::ALL.iter().copied()), Some("on-demand"));
        assert_eq!(nearest("", labels()), None);
    }

    #[test]
    fn counts_edits() {
        for (a, b, edits) in
            [("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("kitten", "sitting", 3), ("", "ab", 2)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }
}
