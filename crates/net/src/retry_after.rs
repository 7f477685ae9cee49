//! The header `Retry-After`: when a server accepts a request again.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// The seconds to wait, from a number of seconds or a date. A date that has passed is no wait.
pub fn retry_after(value: &str, now: SystemTime) -> Option<u64> {
    let value = value.trim();
    whole_seconds(value).or_else(|| {
        let at = DateTimeParser::new().parse_timestamp(value).ok()?;
        let wait = at.duration_since(Timestamp::try_from(now).ok()?);
        Some(rounded_up(Duration::try_from(wait).unwrap_or_default()))
    })
}

/// The seconds of a number such as `39.5`.
pub fn whole_seconds(number: &str) -> Option<u64> {
    Duration::try_from_secs_f64(number.parse().ok()?).ok().map(rounded_up)
}

/// Rounded up: a retry that is too early fails again.
fn rounded_up(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    /// The seconds from half a second after Sun, 06 Nov 1994 08:49:37 GMT.
    fn wait(value: &str) -> Option<u64> {
        retry_after(value, UNIX_EPOCH + Duration::from_millis(784_111_777_500))
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_or_a_date() {
        for (value, seconds) in [
            ("7", 7),
            (" 0 ", 0),
            ("1.5", 2),
            ("0.001", 1),
            ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sun, 06 Nov 1994 08:49:38 GMT", 1),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
            ("Mon, 01 Jan 0001 00:00:00 GMT", 0),
        ] {
            assert_eq!(wait(value), Some(seconds), "{value}");
        }
    }

    #[test]
    fn what_is_no_wait_is_ignored() {
        for value in ["", "-1", "soon", "inf", "NaN", "99999999999999999999", "Sun, 06 Nov 1994", "1,5"] {
            assert_eq!(wait(value), None, "{value}");
        }
    }
}
