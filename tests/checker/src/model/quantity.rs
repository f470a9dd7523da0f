//! Amounts of resources, exact: billionths in 128 bits.

use std::collections::BTreeMap;

use mortise_problem::api::Quantity;

/// Amounts in billionths by resource name; one that is not there is 0.
pub(crate) type Resources = BTreeMap<String, i128>;

/// One unit.
pub(crate) const ONE: i128 = 1_000_000_000;
/// More than anything is: what an amount that is no number counts for, so that nothing holds it.
const UNREADABLE: i128 = i128::MAX / 1_000_000;

/// Reads amounts. One that is no number is larger than any node.
pub(crate) fn resources<'a>(amounts: impl IntoIterator<Item = (&'a String, &'a Quantity)>) -> Resources {
    amounts.into_iter().map(|(name, amount)| (name.clone(), parse(&amount.0).unwrap_or(UNREADABLE))).collect()
}

/// Adds amounts.
pub(crate) fn add(sum: &mut Resources, more: &Resources) {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.saturating_add(*amount);
    }
}

/// Raises each amount to at least that of `other`.
pub(crate) fn raise(to: &mut Resources, other: &Resources) {
    for (name, amount) in other {
        let entry = to.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

/// Reads a Kubernetes quantity: digits, a fraction, and a suffix of decimal (n u m k M G T P E), binary (Ki to Ei) or
/// exponent form. Fractions of a billionth count as a whole one, as they do in Kubernetes.
pub(crate) fn parse(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    // amount = digits * factor / 10^places
    let mut places = i32::try_from(fraction.len()).ok()? - 9;
    let mut factor: i128 = 1;
    match suffix {
        "" => {}
        "n" => places += 9,
        "u" => places += 6,
        "m" => places += 3,
        "k" => places -= 3,
        "M" => places -= 6,
        "G" => places -= 9,
        "T" => places -= 12,
        "P" => places -= 15,
        "E" => places -= 18,
        "Ki" => factor = 1 << 10,
        "Mi" => factor = 1 << 20,
        "Gi" => factor = 1 << 30,
        "Ti" => factor = 1 << 40,
        "Pi" => factor = 1 << 50,
        "Ei" => factor = 1 << 60,
        exponent => places -= exponent.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?,
    }
    let mut amount = digits.checked_mul(factor)?;
    let power = 10_i128.checked_pow(places.unsigned_abs())?;
    if places > 0 {
        amount = amount.div_euclid(power) + i128::from(amount.rem_euclid(power) != 0);
    } else {
        amount = amount.checked_mul(power)?;
    }
    Some(if negative { -amount } else { amount })
}

/// An amount for people.
pub(crate) fn show(amount: i128) -> String {
    if amount % ONE == 0 {
        return (amount / ONE).to_string();
    }
    let sign = if amount < 0 { "-" } else { "" };
    let fraction = format!("{:09}", (amount % ONE).abs());
    format!("{sign}{}.{}", (amount / ONE).abs(), fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suffix_is_read() {
        for (text, amount) in [
            ("1", ONE),
            ("1.5", ONE * 3 / 2),
            ("100m", ONE / 10),
            ("1Ki", 1024 * ONE),
            ("1.5Gi", 3 * 512 * 1024 * 1024 * ONE),
            ("2k", 2000 * ONE),
            ("1e3", 1000 * ONE),
            ("5n", 5),
            ("0.5n", 1),
            ("-2", -2 * ONE),
            (".5", ONE / 2),
        ] {
            assert_eq!(parse(text), Some(amount), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_read() {
        for text in ["", "x", "1x", "1.2.3", "1e", "m", "1e30000"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_shown_short() {
        assert_eq!(show(ONE * 3 / 2), "1.5");
        assert_eq!(show(-ONE / 10), "-0.1");
        assert_eq!(show(8 * ONE), "8");
    }
}
