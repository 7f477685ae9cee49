//! Moments and days as the database has them: whole numbers, in UTC.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time, to the microsecond. Written `2026-11-15T04:21:15.000000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Since the beginning of 1970.
    microseconds: i64,
}

impl Moment {
    /// A clock before 1970 or after the year 9999 is wrong; it is taken to show the nearest of these.
    pub fn of(time: SystemTime) -> Self {
        let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { microseconds: microseconds(since_1970).min(Timestamp::MAX.as_microsecond()) }
    }

    pub fn day(self) -> UtcDay {
        UtcDay { days: self.microseconds.div_euclid(MICROSECONDS_PER_DAY) }
    }

    pub(crate) fn from_microseconds(microseconds: i64) -> Self {
        Moment { microseconds }
    }

    pub(crate) fn microseconds(self) -> i64 {
        self.microseconds
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timestamp = Timestamp::from_microsecond(self.microseconds).unwrap_or(Timestamp::MAX);
        write!(f, "{timestamp:.6}")
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A calendar day in UTC. Written `2026-11-15`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcDay {
    /// Since the beginning of 1970.
    days: i64,
}

impl UtcDay {
    pub fn of(time: SystemTime) -> Self {
        Moment::of(time).day()
    }

    /// The day so many days earlier.
    pub fn minus(self, days: u32) -> Self {
        UtcDay { days: self.days.saturating_sub(i64::from(days)) }
    }

    /// The day after.
    pub fn next(self) -> Self {
        UtcDay { days: self.days.saturating_add(1) }
    }

    /// Its first moment.
    pub fn start(self) -> Moment {
        Moment { microseconds: self.days.saturating_mul(MICROSECONDS_PER_DAY) }
    }

    pub(crate) fn days(self) -> i64 {
        self.days
    }
}

impl fmt::Display for UtcDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start =
            Timestamp::from_second(self.days.saturating_mul(SECONDS_PER_DAY)).unwrap_or(Timestamp::MAX);
        write!(f, "{}", TimeZone::UTC.to_datetime(start).date())
    }
}

impl Serialize for UtcDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

pub(crate) fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn from_microseconds(microseconds: i64) -> Duration {
    Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
}

/// A duration as a number of seconds, for `serialize_with`.
pub(crate) fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// As [`as_seconds`], for a duration that may not be known.
pub(crate) fn as_seconds_if_known<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(|known| known.as_secs_f64()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_a_date_and_belongs_to_a_day() {
        let moment = Moment::of(UNIX_EPOCH + Duration::from_millis(1_794_716_475_250));
        assert_eq!(moment.to_string(), "2026-11-15T04:21:15.250000Z");
        assert_eq!(moment.day().to_string(), "2026-11-15");
        assert_eq!(moment.day().start().to_string(), "2026-11-15T00:00:00.000000Z");
        assert_eq!(moment.day().minus(15).to_string(), "2026-10-31");
    }

    #[test]
    fn a_clock_that_is_wrong_does_no_harm() {
        let long_ago = Moment::of(UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!(long_ago.to_string(), "1970-01-01T00:00:00.000000Z");
        let far_off = Moment::of(UNIX_EPOCH + Duration::from_secs(1 << 55));
        assert!(far_off.to_string().starts_with("9999-12-30T"), "{far_off}");
        assert_eq!(far_off.day().to_string(), "9999-12-30");
    }
}
