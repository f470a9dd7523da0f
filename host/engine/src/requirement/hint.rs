//! Names that look like a typing error of one another.

/// The known name most like `asked`, if any is close enough to be what was meant. Ties go to the first in order.
///
/// Close enough: one contains the other, they share what follows the last slash, or they differ by at most a quarter of
/// their letters (two at least).
pub fn similar<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let after_slash = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let short = after_slash(asked).to_lowercase();
    let allowed = (asked.chars().count() / 4).max(2);
    known
        .into_iter()
        .filter(|name| *name != asked && !name.is_empty())
        .filter_map(|name| {
            let far = distance(&asked.to_lowercase(), &name.to_lowercase());
            let same_suffix = name.contains('/') && short.len() > 2 && after_slash(name) == short;
            let contains = asked.len() > 2 && (name.contains(asked) || (name.len() > 2 && asked.contains(name)));
            // A shared suffix or a part in common is as good as one wrong letter.
            let rank = if same_suffix {
                far.min(1)
            } else if contains {
                far.min(2)
            } else {
                far
            };
            (rank <= allowed).then_some((rank, name))
        })
        .min()
        .map(|(_, name)| name)
}

/// Letters to insert, delete, replace or swap with a neighbour to turn one into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(128).collect(), b.chars().take(128).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (above[j] + usize::from(x != y)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
