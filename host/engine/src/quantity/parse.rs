//! The grammar of Kubernetes quantities, in integers.

use std::fmt;
use std::str::FromStr;

/// A quantity that is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a Kubernetes quantity: {problem}; write it like 250m, 2, 1.5Gi or 100M")]
pub struct QuantityError {
    /// What was found.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// A parsed Kubernetes quantity, exact to a billionth of a unit; finer digits round away from zero, as in Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Quantity {
    nano: i128,
}

/// Billionths in a unit.
const UNIT: i128 = 1_000_000_000;
/// Larger than anything an i64 of whole units can hold; products stop here.
const LIMIT: i128 = (i64::MAX as i128) * UNIT;

impl Quantity {
    /// So many thousandths.
    pub fn from_milli(milli: i64) -> Self {
        Self { nano: i128::from(milli) * (UNIT / 1000) }
    }

    /// So many whole units.
    pub fn from_value(value: i64) -> Self {
        Self { nano: i128::from(value) * UNIT }
    }

    /// In thousandths, rounded up, clamped to what an i64 holds.
    pub fn milli(self) -> i64 {
        ceil_to_i64(self.nano, UNIT / 1000)
    }

    /// In whole units, rounded up, clamped to what an i64 holds.
    pub fn value(self) -> i64 {
        ceil_to_i64(self.nano, UNIT)
    }

    /// Sum, stopping at the largest value.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_add(other.nano) }
    }

    /// Difference; may be negative.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_sub(other.nano) }
    }

    /// Rounded up to the next of `from`, `from + step`, `from + 2 * step`, …; `None` if the step is not positive.
    #[must_use]
    pub fn round_up(self, from: Self, step: Self) -> Option<Self> {
        let above = self.nano.saturating_sub(from.nano);
        if step.nano <= 0 {
            return None;
        }
        let steps = above.div_euclid(step.nano) + i128::from(above.rem_euclid(step.nano) != 0);
        Some(Self { nano: from.nano.saturating_add(steps.saturating_mul(step.nano)) })
    }

    /// In whole units, if it is that many and an i64 holds them.
    pub fn as_integer(self) -> Option<i64> {
        if self.nano % UNIT == 0 { i64::try_from(self.nano / UNIT).ok() } else { None }
    }

    /// In millionths, rounded up: prices in micro-USD.
    pub fn micro(self) -> i64 {
        ceil_to_i64(self.nano, UNIT / 1_000_000)
    }
}

impl From<Quantity> for String {
    fn from(quantity: Quantity) -> Self {
        quantity.to_string()
    }
}

impl TryFrom<String> for Quantity {
    type Error = QuantityError;

    fn try_from(text: String) -> Result<Self, QuantityError> {
        text.parse()
    }
}

fn ceil_to_i64(nano: i128, unit: i128) -> i64 {
    let whole = nano.div_euclid(unit) + i128::from(nano.rem_euclid(unit) != 0);
    i64::try_from(whole).unwrap_or(if whole > 0 { i64::MAX } else { i64::MIN })
}

impl fmt::Display for Quantity {
    /// Canonical decimal form: whole units, else the coarsest of m, u, n that loses nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (divisor, suffix) in [(UNIT, ""), (1_000_000, "m"), (1000, "u")] {
            if self.nano % divisor == 0 {
                return write!(f, "{}{suffix}", self.nano / divisor);
            }
        }
        write!(f, "{}n", self.nano)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let fail = |problem| QuantityError { text: text.chars().take(64).collect(), problem };
        let (negative, unsigned) = match text.as_bytes().first() {
            None => return Err(fail("it is empty")),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let digits_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(digits_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(fail("it does not start with a number"));
        }
        if fraction.contains('.') {
            return Err(fail("it has two decimal points"));
        }
        let scale = Scale::parse(suffix).map_err(fail)?;
        let magnitude = scale.apply(whole, fraction);
        Ok(Self { nano: if negative { -magnitude } else { magnitude } })
    }
}

/// What a suffix multiplies by.
enum Scale {
    /// `2^shift`.
    Binary(u32),
    /// `10^exponent`.
    Decimal(i32),
}

impl Scale {
    fn parse(suffix: &str) -> Result<Self, &'static str> {
        Ok(match suffix {
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "K" => return Err("kilo is a small k, kibi is Ki"),
            other => match other.strip_prefix(['e', 'E']) {
                Some(exponent) => Self::Decimal(exponent.parse().map_err(|_| "its exponent is not an integer")?),
                None => return Err("its suffix is unknown (n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent)"),
            },
        })
    }

    /// Billionths of `whole.fraction` times the scale, rounded up, at most [`LIMIT`].
    fn apply(&self, whole: &str, fraction: &str) -> i128 {
        let digits = || whole.bytes().chain(fraction.bytes()).map(|byte| i128::from(byte - b'0'));
        let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        match *self {
            Self::Decimal(exponent) => {
                // The number is its digits times 10^shift billionths.
                let shift = i64::from(exponent) + 9 - places;
                shifted(digits(), shift)
            }
            Self::Binary(shift) => {
                // In two parts, so that a long fraction cannot push the whole part out of range.
                let whole_part = shifted(whole.bytes().map(|byte| i128::from(byte - b'0')), 9);
                let fraction_part =
                    shifted(fraction.bytes().take(18).map(|byte| i128::from(byte - b'0')), 18 - places.min(18));
                let whole_nano = whole_part.saturating_mul(1 << shift);
                // fraction_part counts 10^-18; times 2^shift, back to 10^-9, rounded up.
                let fraction_nano = fraction_part.saturating_mul(1 << shift);
                let rounded = fraction_nano / UNIT + i128::from(fraction_nano % UNIT != 0);
                whole_nano.saturating_add(rounded).min(LIMIT)
            }
        }
    }
}

/// The digits read as an integer, times `10^shift`, rounded up, at most [`LIMIT`].
fn shifted(digits: impl Iterator<Item = i128>, shift: i64) -> i128 {
    let digits: Vec<i128> = digits.skip_while(|digit| *digit == 0).collect();
    let kept = i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_add(shift.min(0));
    let kept = usize::try_from(kept.max(0)).unwrap_or(usize::MAX).min(digits.len());
    let mut value: i128 = 0;
    for digit in &digits[..kept] {
        value = (value * 10 + digit).min(LIMIT);
    }
    if digits[kept..].iter().any(|digit| *digit != 0) {
        value += 1;
    }
    for _ in 0..shift.clamp(0, 64) {
        value = (value * 10).min(LIMIT);
    }
    value.min(LIMIT)
}
