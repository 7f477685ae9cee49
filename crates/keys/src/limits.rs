//! Limits per minute and budgets per day or month, as people write them, and the windows of time in which they count. Times are passed in.

use std::fmt;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Thousand millionths of a dollar.
const NANO: f64 = 1e9;

/// The most that a budget may be, so that sums fit into a column of a database.
const MOST: f64 = 1e18;

/// The part of what is left of a limit that a server gets at once. Smaller parts ask the store more often; larger ones leave more unused
/// at other servers, or after a crash.
const SHARE: u64 = 16;

/// What a server gets at once of what is left.
pub(crate) fn share_of(left: u64) -> u64 {
    left / SHARE
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    Requests,
    Tokens,
    /// In thousand millionths, so that the cheapest call counts.
    NanoDollars,
}

/// A window of time. Windows are those of the calendar in UTC, so that all servers agree on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Period {
    Minute,
    Day,
    Month,
}

impl Period {
    pub(crate) const ALL: [Period; 3] = [Period::Minute, Period::Day, Period::Month];

    /// As the name of a quota ends.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Period::Minute => "minute",
            Period::Day => "day",
            Period::Month => "month",
        }
    }

    /// When the window of `now` begins, in seconds since 1970.
    pub fn window(self, now: Timestamp) -> i64 {
        let seconds = now.as_second();
        match self {
            Period::Minute => seconds - seconds.rem_euclid(60),
            Period::Day => seconds - seconds.rem_euclid(86_400),
            Period::Month => {
                let date = now.to_zoned(TimeZone::UTC).date().first_of_month();
                date.to_zoned(TimeZone::UTC).map_or(seconds, |first| first.timestamp().as_second())
            }
        }
    }

    /// When the window that begins at `window` ends.
    pub fn end(self, window: i64) -> Timestamp {
        let start = Timestamp::from_second(window).unwrap_or(Timestamp::MIN).to_zoned(TimeZone::UTC);
        let span = match self {
            Period::Minute => 1.minute(),
            Period::Day => 1.day(),
            Period::Month => 1.month(),
        };
        start.checked_add(span).map_or(Timestamp::MAX, |end| end.timestamp())
    }
}

/// How much of something a key may use in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    pub unit: Unit,
    pub period: Period,
    pub limit: u64,
}

impl Quota {
    /// Its name in the database. A changed limit counts on.
    pub fn id(self) -> &'static str {
        match (self.unit, self.period) {
            (Unit::Requests, Period::Minute) => "requests/minute",
            (Unit::Requests, Period::Day) => "requests/day",
            (Unit::Requests, Period::Month) => "requests/month",
            (Unit::Tokens, Period::Minute) => "tokens/minute",
            (Unit::Tokens, Period::Day) => "tokens/day",
            (Unit::Tokens, Period::Month) => "tokens/month",
            (Unit::NanoDollars, Period::Minute) => "usd/minute",
            (Unit::NanoDollars, Period::Day) => "usd/day",
            (Unit::NanoDollars, Period::Month) => "usd/month",
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = self.period.as_str();
        match self.unit {
            Unit::Requests => write!(f, "{} requests/{period}", self.limit),
            Unit::Tokens => write!(f, "{} tokens/{period}", self.limit),
            Unit::NanoDollars => write!(f, "{} USD/{period}", dollars(self.limit)),
        }
    }
}

/// Dollars without needless digits: `5`, `0.25`.
pub fn dollars(nano: u64) -> String {
    let text = format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A budget, such as `5 USD/month` or `200k tokens/day`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(Quota);

impl Budget {
    /// Reads a budget, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{}' is not a budget; write '5 USD/month' or '200k tokens/day'", shortened(text));
        let (amount, period) = text.split_once('/').ok_or_else(wrong)?;
        let period = match period.trim().to_ascii_lowercase().as_str() {
            "day" => Period::Day,
            "month" => Period::Month,
            _ => return Err(wrong()),
        };
        let amount = amount.trim();
        let split =
            amount.find(|letter: char| letter.is_ascii_alphabetic() || letter == '$').ok_or_else(wrong)?;
        let (number, words) = match amount.strip_prefix('$') {
            Some(number) => (number, "USD".to_owned()),
            None => (&amount[..split], amount[split..].to_owned()),
        };
        let (factor, unit) = match words.trim().to_ascii_lowercase().as_str() {
            "usd" => (NANO, Unit::NanoDollars),
            "tokens" => (1.0, Unit::Tokens),
            "k tokens" => (1e3, Unit::Tokens),
            "m tokens" => (1e6, Unit::Tokens),
            _ => return Err(wrong()),
        };
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let limit = (number * factor).round();
        // Of 0.07M, the product is not exactly 70000.
        if unit == Unit::Tokens && (number * factor - limit).abs() > 4.0 * limit * f64::EPSILON {
            return Err(format!(
                "'{}' has a part of a token; a budget counts whole tokens: write '500 tokens/day' or '0.5k tokens/day'",
                shortened(text)
            ));
        }
        if !(1.0..=MOST).contains(&limit) {
            return Err(wrong());
        }
        Ok(Budget(Quota { unit, period, limit: limit as u64 }))
    }

    pub fn quota(self) -> Quota {
        self.0
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Budget::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// What a key has used of a limit in the current window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaUsage {
    pub quota: Quota,
    pub used: u64,
    pub resets_at: Timestamp,
}

impl Serialize for QuotaUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("limit", &self.quota.to_string())?;
        match self.quota.unit {
            Unit::NanoDollars => {
                map.serialize_entry("used_usd", &(self.used as f64 / NANO))?;
            }
            Unit::Requests | Unit::Tokens => map.serialize_entry("used", &self.used)?,
        }
        map.serialize_entry("resets_at", &self.resets_at.to_string())?;
        map.end()
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a moment")
    }

    #[test]
    fn budgets_are_read_as_people_write_them() {
        for (text, shown) in [
            ("5 USD/month", "5 USD/month"),
            ("0.25usd/day", "0.25 USD/day"),
            ("$5/month", "5 USD/month"),
            ("200k tokens/day", "200000 tokens/day"),
            ("1.5M tokens / month", "1500000 tokens/month"),
            ("100 tokens/day", "100 tokens/day"),
            ("0.5k tokens/day", "500 tokens/day"),
            ("0.07M tokens/day", "70000 tokens/day"),
            ("0.0000004 USD/day", "0.0000004 USD/day"),
        ] {
            assert_eq!(Budget::parse(text).map(|budget| budget.to_string()), Ok(shown.to_owned()), "{text}");
        }
        for text in [
            "",
            "5",
            "5 USD",
            "5 EUR/month",
            "5 USD/year",
            "-5 USD/day",
            "0 USD/day",
            "0 tokens/day",
            "nan USD/day",
            "1e30 USD/day",
        ] {
            let refusal = Budget::parse(text).expect_err(text);
            assert!(refusal.contains("5 USD/month"), "{refusal}");
        }
    }

    #[test]
    fn a_part_of_a_token_is_refused() {
        for text in [
            "0.5 tokens/day",
            "1.5 tokens/month",
            "0.4 tokens/day",
            "0.0005k tokens/day",
            "1.0001k tokens/day",
        ] {
            let refusal = Budget::parse(text).expect_err(text);
            assert!(refusal.starts_with(&format!("'{text}' has a part of a token; ")), "{refusal}");
        }
    }

    #[test]
    fn windows_are_those_of_the_calendar() {
        let now = at("2026-02-28T23:59:59.5Z");
        for (period, start, end) in [
            (Period::Minute, "2026-02-28T23:59:00Z", "2026-03-01T00:00:00Z"),
            (Period::Day, "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"),
            (Period::Month, "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        ] {
            let window = period.window(now);
            assert_eq!(Timestamp::from_second(window).expect("a moment"), at(start), "{period:?}");
            assert_eq!(period.end(window), at(end), "{period:?}");
        }
    }

    #[test]
    fn what_is_used_of_a_budget_is_in_its_unit() {
        let resets_at = at("2026-03-01T00:00:00Z");
        let written = |budget: &str, used| {
            let quota = Budget::parse(budget).expect(budget).quota();
            serde_json::to_value(QuotaUsage { quota, used, resets_at }).expect("JSON")
        };
        let resets_at = "2026-03-01T00:00:00Z";
        assert_eq!(
            written("5 USD/month", 1_250_000_000),
            serde_json::json!({ "limit": "5 USD/month", "used_usd": 1.25, "resets_at": resets_at })
        );
        assert_eq!(
            written("100 tokens/day", 7),
            serde_json::json!({ "limit": "100 tokens/day", "used": 7, "resets_at": resets_at })
        );
    }

    proptest! {
        #[test]
        fn a_written_budget_is_read_as_the_same_budget(limit in 1..1_000_000_000_000_u64, tokens: bool, day: bool) {
            let quota = Quota {
                unit: if tokens { Unit::Tokens } else { Unit::NanoDollars },
                period: if day { Period::Day } else { Period::Month },
                limit,
            };
            prop_assert_eq!(Budget::parse(&quota.to_string()), Ok(Budget(quota)));
        }

        #[test]
        fn a_moment_is_in_its_window(seconds in 0..4_000_000_000_i64) {
            let now = Timestamp::from_second(seconds).expect("a moment");
            for period in [Period::Minute, Period::Day, Period::Month] {
                let window = period.window(now);
                prop_assert!(window <= seconds && now < period.end(window));
                prop_assert_eq!(period.window(period.end(window)), period.end(window).as_second());
            }
        }
    }
}
