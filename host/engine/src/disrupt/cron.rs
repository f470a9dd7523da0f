//! Cron schedules of disruption budgets: five fields or a macro, always UTC.

use std::str::FromStr;

use jiff::civil::Date;

/// Milliseconds in a minute and in a day.
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// How far the next hit is looked for: every combination of month, day and weekday comes round in 28 years.
const HORIZON_DAYS: i64 = 28 * 366;

/// A schedule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "schedule {text:?} is not a cron expression: {problem}; write five fields like \"0 9 * * mon-fri\" or a macro like @daily"
)]
pub struct CronError {
    /// What was found.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A parsed schedule: the values each field admits, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Day of month, or weekday, is `*`: then both must match; otherwise one is enough.
    any_day: bool,
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let fail = |problem: String| CronError { text: text.chars().take(128).collect(), problem };
        let expanded = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => return Err(fail(format!("macro {other} is unknown"))),
            other => other,
        };
        let fields: Vec<&str> = expanded.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(fail(format!("it has {} fields instead of 5", fields.len())));
        };
        let read = |field: &Field, text: &str| field.parse(text).map_err(&fail);
        let (days, any_date) = read(&DAYS, days)?;
        let (weekdays, any_weekday) = read(&WEEKDAYS, weekdays)?;
        Ok(Self {
            minutes: read(&MINUTES, minutes)?.0,
            hours: read(&HOURS, hours)?.0,
            days,
            months: read(&MONTHS, months)?.0,
            weekdays,
            any_day: any_date || any_weekday,
        })
    }
}

impl Cron {
    /// The first hit after `after_unix_ms` (not at it), Unix milliseconds; `None` if there is none within a generation.
    pub fn next_after(&self, after_unix_ms: i64) -> Option<i64> {
        let first = after_unix_ms.div_euclid(MINUTE_MS).checked_add(1)?.checked_mul(MINUTE_MS)?;
        let mut day = first.div_euclid(DAY_MS);
        let mut from_minute = first.rem_euclid(DAY_MS) / MINUTE_MS;
        let last = day.checked_add(HORIZON_DAYS)?;
        while day <= last {
            if self.matches_day(day)? {
                for minute in from_minute..24 * 60 {
                    if self.hours >> (minute / 60) & 1 == 1 && self.minutes >> (minute % 60) & 1 == 1 {
                        return day.checked_mul(DAY_MS)?.checked_add(minute * MINUTE_MS);
                    }
                }
            }
            from_minute = 0;
            day += 1;
        }
        None
    }

    /// Whether a window of this length that opens at every hit is open now.
    pub fn is_active(&self, now_unix_ms: i64, duration_ms: i64) -> bool {
        let next = now_unix_ms.checked_sub(duration_ms).and_then(|from| self.next_after(from));
        next.is_some_and(|next| next <= now_unix_ms)
    }

    /// Day as days since 1970-01-01; `None` beyond the calendar.
    fn matches_day(&self, day: i64) -> Option<bool> {
        let span = jiff::Span::new().try_days(day).ok()?;
        let date = Date::constant(1970, 1, 1).checked_add(span).ok()?;
        let on = |bits: u64, value: i8| u32::try_from(value).is_ok_and(|value| bits >> value & 1 == 1);
        let (date_hit, weekday_hit) =
            (on(self.days, date.day()), on(self.weekdays, date.weekday().to_sunday_zero_offset()));
        let day_hit = if self.any_day { date_hit && weekday_hit } else { date_hit || weekday_hit };
        Some(on(self.months, date.month()) && day_hit)
    }
}

/// A field's range and the names it takes.
struct Field {
    name: &'static str,
    first: u32,
    last: u32,
    names: &'static [&'static str],
}

const MINUTES: Field = Field { name: "minute", first: 0, last: 59, names: &[] };
const HOURS: Field = Field { name: "hour", first: 0, last: 23, names: &[] };
const DAYS: Field = Field { name: "day of month", first: 1, last: 31, names: &[] };
const MONTHS: Field = Field {
    name: "month",
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: Field =
    Field { name: "day of week", first: 0, last: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl Field {
    /// Bits of the values, and whether the field is a plain `*`.
    fn parse(&self, text: &str) -> Result<(u64, bool), String> {
        let mut bits = 0;
        let mut any = false;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(step)),
                None => (part, None),
            };
            let step_by = match step {
                Some(step) => step
                    .parse::<u32>()
                    .ok()
                    .filter(|step| *step > 0)
                    .ok_or_else(|| format!("step {step:?} of the {} is not a positive number", self.name))?,
                None => 1,
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" || range == "?" => {
                    any |= step_by == 1;
                    (self.first, self.last)
                }
                Some((from, to)) => (self.value(from)?, self.value(to)?),
                None => {
                    let value = self.value(range)?;
                    (value, if step.is_some() { self.last } else { value })
                }
            };
            if from > to {
                return Err(format!("range {range} of the {} ends before it begins", self.name));
            }
            for value in (from..=to).step_by(usize::try_from(step_by).unwrap_or(usize::MAX)) {
                bits |= 1 << value;
            }
        }
        Ok((bits, any))
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_lowercase();
        let named = self.names.iter().position(|name| *name == lower).and_then(|at| u32::try_from(at).ok());
        let value = named.map(|at| at + self.first).or_else(|| text.parse().ok());
        value
            .filter(|value| (self.first..=self.last).contains(value))
            .ok_or_else(|| format!("{text:?} is no {} ({} to {})", self.name, self.first, self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unix milliseconds of a UTC time.
    fn at(text: &str) -> i64 {
        text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
    }

    fn next(schedule: &str, after: &str) -> String {
        let next = schedule.parse::<Cron>().unwrap().next_after(at(after)).unwrap();
        jiff::Timestamp::from_millisecond(next).unwrap().to_string()
    }

    #[test]
    fn finds_the_next_hit() {
        assert_eq!(next("0 9 * * mon-fri", "2026-07-31T09:00:00Z"), "2026-08-03T09:00:00Z");
        assert_eq!(next("0 9 * * mon-fri", "2026-07-31T08:59:59Z"), "2026-07-31T09:00:00Z");
        assert_eq!(next("*/15 * * * *", "2026-07-31T10:15:00Z"), "2026-07-31T10:30:00Z");
        assert_eq!(next("@yearly", "2026-07-31T10:15:00Z"), "2027-01-01T00:00:00Z");
        assert_eq!(next("@weekly", "2026-07-31T10:15:00Z"), "2026-08-02T00:00:00Z");
        assert_eq!(next("0 0 29 2 *", "2026-07-31T10:15:00Z"), "2028-02-29T00:00:00Z");
        assert_eq!(next("30 4 1,15 * 5", "2026-08-02T00:00:00Z"), "2026-08-07T04:30:00Z");
        assert_eq!(next("5/20 3 * jan,MAR ?", "2026-01-31T03:26:00Z"), "2026-01-31T03:45:00Z");
    }

    #[test]
    fn day_of_month_and_weekday_are_alternatives_unless_one_is_open() {
        // The 13th or a Friday.
        assert_eq!(next("0 0 13 * fri", "2026-08-07T12:00:00Z"), "2026-08-13T00:00:00Z");
        assert_eq!(next("0 0 13 * fri", "2026-08-13T12:00:00Z"), "2026-08-14T00:00:00Z");
        // A Friday only.
        assert_eq!(next("0 0 * * fri", "2026-08-13T12:00:00Z"), "2026-08-14T00:00:00Z");
    }

    #[test]
    fn a_window_is_open_from_its_hit_for_its_duration() {
        let cron: Cron = "0 9 * * mon-fri".parse().unwrap();
        let eight_hours = 8 * 3_600_000;
        for (now, open) in [
            ("2026-07-31T08:59:59Z", false),
            ("2026-07-31T09:00:00Z", true),
            ("2026-07-31T16:59:59Z", true),
            ("2026-07-31T17:00:00Z", false),
            ("2026-08-01T10:00:00Z", false),
        ] {
            assert_eq!(cron.is_active(at(now), eight_hours), open, "{now}");
        }
    }

    #[test]
    fn never_is_never() {
        let cron: Cron = "0 0 31 2 *".parse().unwrap();
        assert_eq!(cron.next_after(0), None);
        assert!(!cron.is_active(i64::MIN, i64::MAX) && !cron.is_active(i64::MAX, 0));
    }

    #[test]
    fn refuses_garbage_by_field() {
        for (text, part) in [
            ("", "0 fields"),
            ("* * * *", "4 fields"),
            ("60 * * * *", "minute"),
            ("* 24 * * *", "hour"),
            ("* * 0 * *", "day of month"),
            ("* * * 13 *", "month"),
            ("* * * * 7", "day of week"),
            ("* * * * funday", "day of week"),
            ("*/0 * * * *", "step"),
            ("5-1 * * * *", "ends before"),
            ("@every 1h", "macro"),
            ("1,,2 * * * *", "minute"),
        ] {
            let error = text.parse::<Cron>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[0-9*/,@a-z -]{0,20}", after in proptest::num::i64::ANY) {
            if let Ok(cron) = text.parse::<Cron>()
                && let Some(next) = cron.next_after(after)
            {
                proptest::prop_assert!(next > after);
            }
        }
    }
}
