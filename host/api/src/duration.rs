//! Durations as Kubernetes objects write them: Go's format, and "Never" where the API allows it.
//!
//! The text is kept as written, so that copying `expireAfter` from a NodePool to a NodeClaim changes nothing, and a
//! value that the schema lets through but nobody can represent (more than 292 years) does not lose the object.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not of the form number, unit, number, unit...
    #[error("{0:?} is not a duration: write it as 30s, 10m, 1h30m")]
    Syntax(String),
    /// A unit nobody knows.
    #[error("{found:?} has the unknown unit {unit:?}: use s, m or h")]
    Unit {
        /// The whole text.
        found: String,
        /// The part that is not a unit.
        unit: String,
    },
    /// Longer than 2^63 ns.
    #[error("{0:?} is longer than the largest duration, about 292 years")]
    TooLong(String),
    /// Below zero.
    #[error("{0:?} is negative")]
    Negative(String),
}

/// Largest duration that Go, hence the rest of the ecosystem, can hold: 2^63 - 1 ns.
const MAX_NANOS: u128 = i64::MAX as u128;

/// Parses Go's duration format: `1h30m`, `0.5s`, `250ms`, `0`.
///
/// # Errors
/// What is wrong with the text, for the user to read.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let syntax = || DurationError::Syntax(text.into());
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(syntax());
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let scale: u128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" => return Err(syntax()),
            other => return Err(DurationError::Unit { found: text.into(), unit: other.into() }),
        };
        nanos = scaled(number, scale).ok_or_else(syntax)?.saturating_add(nanos);
        if nanos > MAX_NANOS {
            return Err(DurationError::TooLong(text.into()));
        }
        rest = tail;
    }
    if negative && nanos > 0 {
        return Err(DurationError::Negative(text.into()));
    }
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| DurationError::TooLong(text.into()))
}

/// `number` (digits with at most one point) times `scale`, fractions of a nanosecond cut off; too large saturates.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits =
        |text: &str| text.bytes().fold(0_u128, |n, b| n.saturating_mul(10).saturating_add(u128::from(b - b'0')));
    // 18 digits of a fraction are below a nanosecond even of an hour.
    let fraction = fraction.get(..18).unwrap_or(fraction);
    let divisor = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(digits(whole).saturating_mul(scale).saturating_add(digits(fraction).saturating_mul(scale) / divisor))
}

/// A duration as written in an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoDuration(Arc<str>);

impl GoDuration {
    /// The pattern of the schema.
    pub const PATTERN: &'static str = r"^([0-9]+(s|m|h))+$";

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The length.
    ///
    /// # Errors
    /// When the text is not a duration or too long to hold.
    pub fn get(&self) -> Result<Duration, DurationError> {
        parse(&self.0)
    }
}

impl From<&str> for GoDuration {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": Self::PATTERN})
    }
}

/// A duration as written in an object, or "Never".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NillableDuration(Arc<str>);

impl NillableDuration {
    /// The word for no duration at all.
    pub const NEVER: &'static str = "Never";
    /// The pattern of the schema.
    pub const PATTERN: &'static str = r"^(([0-9]+(s|m|h))+|Never)$";

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text, shared.
    pub fn text(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The length; `None` is "Never".
    ///
    /// # Errors
    /// When the text is neither a duration nor "Never", or too long to hold.
    pub fn get(&self) -> Result<Option<Duration>, DurationError> {
        if &*self.0 == Self::NEVER { Ok(None) } else { parse(&self.0).map(Some) }
    }

    /// The length, where one that cannot be read counts as "Never": nothing is disrupted because of a typing error.
    /// `validation` reports it.
    pub fn or_never(&self) -> Option<Duration> {
        self.get().ok().flatten()
    }
}

impl From<&str> for NillableDuration {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl JsonSchema for NillableDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NillableDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": Self::PATTERN})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("30s", 30_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("250ms", 250_000_000),
            ("720h", 2_592_000_000_000_000),
            ("2562047h47m16s854ms775us807ns", u64::MAX / 2),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(parse("").unwrap_err().to_string(), r#""" is not a duration: write it as 30s, 10m, 1h30m"#);
        assert_eq!(parse("30").unwrap_err(), DurationError::Syntax("30".into()));
        assert_eq!(parse("1.2.3s").unwrap_err(), DurationError::Syntax("1.2.3s".into()));
        assert_eq!(parse("30d").unwrap_err().to_string(), r#""30d" has the unknown unit "d": use s, m or h"#);
        assert_eq!(parse("-1s").unwrap_err(), DurationError::Negative("-1s".into()));
        assert_eq!(parse("2562048h").unwrap_err(), DurationError::TooLong("2562048h".into()));
        let endless = format!("{}h", "9".repeat(80));
        assert_eq!(parse(&endless).unwrap_err(), DurationError::TooLong(endless.clone()));
    }

    #[test]
    fn never_and_nonsense_disrupt_nothing() {
        assert_eq!(NillableDuration::from("Never").get(), Ok(None));
        assert_eq!(NillableDuration::from("1m").or_never(), Some(Duration::from_secs(60)));
        assert_eq!(NillableDuration::from("99999999999h").or_never(), None);
    }
}
