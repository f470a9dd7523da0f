//! Syntax of names, label values and schedules.

/// Longest DNS name, which a key's prefix is.
const MAX_PREFIX: usize = 253;
/// Longest name or label value of Kubernetes.
const MAX_NAME: usize = 63;

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, at most 63.
fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.len() <= MAX_NAME
        && text.bytes().all(inner)
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && text.bytes().next_back().is_some_and(|b| b.is_ascii_alphanumeric())
}

/// Lower-case DNS labels separated by dots.
fn is_dns_subdomain(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    !text.is_empty() && text.len() <= MAX_PREFIX && text.split('.').all(label)
}

/// A name, or a DNS name, a slash and a name.
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
        None => is_name(text),
    }
}

/// Empty, or a name.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

/// What is wrong with a budget's schedule, if anything: five cron fields (minute, hour, day of month, month, day of
/// week) or a macro.
pub fn schedule_error(schedule: &str) -> Option<String> {
    const MACROS: &[&str] = &["@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    if schedule.starts_with('@') {
        return (!MACROS.contains(&schedule)).then(|| format!("unknown macro: use one of {}", MACROS.join(", ")));
    }
    let fields: Vec<_> = schedule.split_whitespace().collect();
    if fields.len() != 5 {
        return Some(format!(
            "has {} fields instead of five: minute, hour, day of month, month, day of week, in UTC",
            fields.len()
        ));
    }
    let ranges: [(&str, u32, u32, &[&str]); 5] = [
        ("minute", 0, 59, &[]),
        ("hour", 0, 23, &[]),
        ("day of month", 1, 31, &[]),
        ("month", 1, 12, MONTHS),
        ("day of week", 0, 6, DAYS),
    ];
    fields.into_iter().zip(ranges).find_map(|(field, (name, low, high, words))| {
        let number = |text: &str| {
            let word = words.iter().position(|w| w.eq_ignore_ascii_case(text)).and_then(|at| u32::try_from(at).ok());
            word.map(|at| at + low).or_else(|| text.parse().ok()).filter(|n| (low..=high).contains(n))
        };
        let part = |part: &str| {
            let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
            let step_fits = step.is_none_or(|step| step.parse::<u32>().is_ok_and(|step| step > 0));
            let range_fits = match range.split_once('-') {
                Some((from, to)) => matches!((number(from), number(to)), (Some(from), Some(to)) if from <= to),
                None => range == "*" || range == "?" || number(range).is_some(),
            };
            step_fits && range_fits
        };
        (!field.split(',').all(part)).then(|| format!("the {name} {field:?} is not within {low} to {high}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "a.b_c-d", "example.com/name", "x.y.z/A9"] {
            assert!(is_qualified_name(good), "{good}");
        }
        let long = "x".repeat(64);
        for bad in ["", "-a", "a-", "/a", "a/", "a/b/c", "Example.com/a", "a..b/c", &long] {
            assert!(!is_qualified_name(bad), "{bad}");
        }
        assert!(is_label_value("") && is_label_value("us-east-1a") && !is_label_value("a b") && !is_label_value("a/b"));
    }

    #[test]
    fn schedules() {
        for good in ["0 9 * * mon-fri", "@daily", "*/5 0-6,22 1 jan,feb 0", "0 0 ? * SUN"] {
            assert_eq!(schedule_error(good), None, "{good}");
        }
        for (bad, says) in [
            ("@dayly", "unknown macro"),
            ("0 9 * *", "has 4 fields"),
            ("0 24 * * *", "the hour \"24\""),
            ("0 9 * * mon-fry", "the day of week"),
            ("*/0 9 * * *", "the minute"),
            ("0 9 31-1 * *", "the day of month"),
        ] {
            assert!(schedule_error(bad).unwrap().contains(says), "{bad}");
        }
    }
}
