//! Prices as NodeOverlays write them.

/// Micro-USD per USD, and millionths per whole.
const MILLION: i64 = 1_000_000;

/// What an overlay does to a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceChange {
    /// The price is this, micro-USD per hour.
    Set(i64),
    /// This is added, micro-USD per hour.
    Add(i64),
    /// This share of the price is added, millionths: 100,000 is +10 %.
    Scale(i64),
}

/// Why a text is no price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// Both `price` and `priceAdjustment`.
    #[error("price and priceAdjustment exclude one another: remove one")]
    Both,
    /// Not a price.
    #[error("is no price per hour: write a number such as 0.35")]
    Price,
    /// Not an adjustment.
    #[error("is no change of a price: write a signed amount such as +0.02, or a signed percentage such as -10%")]
    Adjustment,
    /// A percentage below -100 %.
    #[error("takes off more than the price: write -100% at most")]
    BelowZero,
}

impl PriceChange {
    /// From `price`.
    ///
    /// # Errors
    /// When it is no unsigned decimal number, or none that a price could be.
    pub fn absolute(text: &str) -> Result<Self, PriceError> {
        millionths(text).map(Self::Set).ok_or(PriceError::Price)
    }

    /// From `priceAdjustment`.
    ///
    /// # Errors
    /// When it is no signed decimal number or percentage.
    pub fn adjustment(text: &str) -> Result<Self, PriceError> {
        let (sign, rest) = match text.split_at_checked(1) {
            Some(("+", rest)) => (1, rest),
            Some(("-", rest)) => (-1, rest),
            _ => return Err(PriceError::Adjustment),
        };
        match rest.strip_suffix('%') {
            None => millionths(rest).map(|amount| Self::Add(sign * amount)).ok_or(PriceError::Adjustment),
            Some(percent) => {
                let share = millionths(percent).ok_or(PriceError::Adjustment)? / 100;
                if sign < 0 && share > MILLION {
                    return Err(PriceError::BelowZero);
                }
                Ok(Self::Scale(sign * share))
            }
        }
    }
}

/// An unsigned decimal number in millionths; what is finer is cut off. `None` = it is none, or above 10^9, far beyond
/// any price per hour.
fn millionths(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !(whole.is_empty() && text.contains('.') || digits(whole)) || !digits(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok().filter(|n| *n <= 1_000_000_000)? };
    let mut parts = 0;
    for at in 0..6 {
        parts = parts * 10 + fraction.as_bytes().get(at).map_or(0, |b| i64::from(b - b'0'));
    }
    Some(whole * MILLION + parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_and_changes() {
        assert_eq!(PriceChange::absolute("0.35"), Ok(PriceChange::Set(350_000)));
        assert_eq!(PriceChange::absolute("12"), Ok(PriceChange::Set(12_000_000)));
        assert_eq!(PriceChange::absolute("0.00000099"), Ok(PriceChange::Set(0)));
        assert_eq!(PriceChange::adjustment("+1000"), Ok(PriceChange::Add(1_000_000_000)));
        assert_eq!(PriceChange::adjustment("-.5"), Ok(PriceChange::Add(-500_000)));
        assert_eq!(PriceChange::adjustment("+10%"), Ok(PriceChange::Scale(100_000)));
        assert_eq!(PriceChange::adjustment("-25.5%"), Ok(PriceChange::Scale(-255_000)));
        assert_eq!(PriceChange::adjustment("-100%"), Ok(PriceChange::Scale(-1_000_000)));
    }

    #[test]
    fn what_is_no_price() {
        for text in ["", ".", "1.", "-1", "1e3", "0x1", " 1", "1 ", "99999999999999999999", "½", "1.2.3"] {
            assert_eq!(PriceChange::absolute(text), Err(PriceError::Price), "{text}");
        }
        for text in ["", "+", "1", "10%", "+%", "±1", "+1e3%", "--1"] {
            assert_eq!(PriceChange::adjustment(text), Err(PriceError::Adjustment), "{text}");
        }
        assert_eq!(PriceChange::adjustment("-100.1%"), Err(PriceError::BelowZero));
    }
}
