//! Kubernetes quantities for the stand-ins, in thousandths, rounded up.

/// Parses `500m`, `2`, `1.5Gi`, `1e3`, … into thousandths of the unit; `None` when it is not a quantity or too large.
pub(crate) fn parse_milli(text: &str) -> Option<i128> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-') && (*at == 0 || *c == '.')))
        .map_or(text.len(), |(at, _)| at);
    let (number, suffix) = text.split_at(end);
    let factor: f64 = match suffix {
        "" => 1e3,
        "n" => 1e-6,
        "u" => 1e-3,
        "m" => 1.0,
        "k" => 1e6,
        "M" => 1e9,
        "G" => 1e12,
        "T" => 1e15,
        "P" => 1e18,
        "E" => 1e21,
        "Ki" => 1024.0 * 1e3,
        "Mi" => 1024.0_f64.powi(2) * 1e3,
        "Gi" => 1024.0_f64.powi(3) * 1e3,
        "Ti" => 1024.0_f64.powi(4) * 1e3,
        "Pi" => 1024.0_f64.powi(5) * 1e3,
        "Ei" => 1024.0_f64.powi(6) * 1e3,
        exponent => 10.0_f64.powi(exponent.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?) * 1e3,
    };
    // Whole numbers stay exact; only fractions go through floating point.
    if let (Ok(whole), true) = (number.parse::<i128>(), factor >= 1.0) {
        return whole.checked_mul(factor as i128);
    }
    let value = number.parse::<f64>().ok()? * factor;
    value.is_finite().then(|| value.ceil() as i128)
}

#[cfg(test)]
mod tests {
    use super::parse_milli;

    #[test]
    fn quantities_are_read() {
        for (text, milli) in
            [("500m", 500), ("2", 2000), ("1.5", 1500), ("1Ki", 1_024_000), ("1e3", 1_000_000), ("100n", 1)]
        {
            assert_eq!(parse_milli(text), Some(milli), "{text}");
        }
        assert_eq!(parse_milli("1.5Gi"), Some(1_610_612_736_000));
        for text in ["", "x", "1Q", "--1"] {
            assert_eq!(parse_milli(text), None, "{text}");
        }
    }
}
