//! Points in time, days, time zones and the clock. A moment and a day are whole numbers, in UTC.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};
use serde::{Serialize, Serializer};

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const MICROSECONDS_PER_HOUR: i64 = 3_600_000_000;
const MICROSECONDS_PER_QUARTER: i64 = MICROSECONDS_PER_HOUR / 4;

/// The file in which some systems have the name of their zone.
const ZONE_FILE: &str = "/etc/timezone";

/// The next changes of clocks that are compared to see whether two zones are the same: those of two years.
const COMPARED_CHANGES: usize = 4;

/// Returns the current time. Tests use their own clock.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

impl<F: Fn() -> Timestamp + Send + Sync> Clock for F {
    fn now(&self) -> Timestamp {
        self()
    }
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

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

    /// The same on the system's clock.
    pub fn time(self) -> SystemTime {
        UNIX_EPOCH + from_microseconds(self.microseconds)
    }

    pub fn day(self) -> UtcDay {
        UtcDay { days: self.microseconds.div_euclid(MICROSECONDS_PER_DAY) }
    }

    pub fn from_microseconds(microseconds: i64) -> Self {
        Moment { microseconds }
    }

    /// The quarter of an hour it lies in, counted since the beginning of 1970.
    pub fn quarter(self) -> i64 {
        self.microseconds.div_euclid(MICROSECONDS_PER_QUARTER)
    }

    /// The first moment of a quarter.
    pub fn of_quarter(quarter: i64) -> Self {
        Moment { microseconds: quarter.saturating_mul(MICROSECONDS_PER_QUARTER) }
    }

    pub fn microseconds(self) -> i64 {
        self.microseconds
    }

    pub fn plus_hours(self, hours: i64) -> Self {
        Moment { microseconds: self.microseconds.saturating_add(hours.saturating_mul(MICROSECONDS_PER_HOUR)) }
    }

    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(self.microseconds).unwrap_or(Timestamp::MAX)
    }

    fn of_timestamp(timestamp: Timestamp) -> Self {
        Moment { microseconds: timestamp.as_microsecond() }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.timestamp())
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A time zone with an IANA name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    zone: TimeZone,
}

impl Zone {
    pub const UTC: Zone = Zone { zone: TimeZone::UTC };

    /// The zone of this machine, or UTC where it has none with a name: zones are stored by their names.
    pub fn system() -> Self {
        Zone::find_system().unwrap_or(Zone::UTC)
    }

    /// Whether [`Zone::system`] is the zone of this machine. Otherwise the name of that zone cannot be found.
    pub fn is_system_known() -> bool {
        Zone::find_system().is_some()
    }

    fn find_system() -> Option<Self> {
        match TimeZone::try_system() {
            Ok(zone) if zone.iana_name().is_some() => Some(Zone { zone }),
            // Such as a file at /etc/localtime that is no link.
            Ok(unnamed) => {
                let listed = std::fs::read_to_string(ZONE_FILE).ok();
                named_like(&unnamed, listed.as_deref(), Timestamp::now())
            }
            // A machine without a zone is in UTC.
            Err(_) => Some(Zone::UTC),
        }
    }

    /// The zone with a name such as `Europe/Berlin`; `None` when there is none of that name.
    pub fn named(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(|zone| Zone { zone })
    }

    pub fn name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// When the days from `ago` days before `now` to today begin, and, last, when tomorrow does.
    pub fn days_until(&self, now: Moment, ago: u32) -> Vec<Moment> {
        let today = self.zone.to_datetime(now.timestamp()).date();
        let begin = |days: i64| {
            let date = today.saturating_add(days.days());
            // Midnight; where clocks are put forward at midnight, the first moment after.
            let start = date.to_zoned(self.zone.clone()).and_then(|day| day.start_of_day());
            start
                .map_or(Moment::of_timestamp(Timestamp::MAX), |start| Moment::of_timestamp(start.timestamp()))
        };
        (-i64::from(ago)..=1).map(begin).collect()
    }
}

/// The zone with the listed name, or UTC, whichever has the same times as one without a name. In a container, the name may be that of
/// the image, and the zone that of the host.
fn named_like(unnamed: &TimeZone, listed: Option<&str>, now: Timestamp) -> Option<Zone> {
    let changes = |zone: &TimeZone| -> Vec<(Timestamp, Offset)> {
        let next = zone.following(now).take(COMPARED_CHANGES);
        next.map(|change| (change.timestamp(), change.offset())).collect()
    };
    let is_same =
        |zone: &TimeZone| zone.to_offset(now) == unnamed.to_offset(now) && changes(zone) == changes(unnamed);
    let listed = listed.and_then(|name| Zone::named(name.trim()));
    listed.into_iter().chain([Zone::UTC]).find(|zone| is_same(&zone.zone))
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

    /// The day so many days after the first one of 1970.
    pub fn from_days(days: i64) -> Self {
        UtcDay { days }
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

    pub fn days(self) -> i64 {
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

pub fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub fn from_microseconds(microseconds: i64) -> Duration {
    Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
}

/// A duration as a number of seconds, for `serialize_with`.
pub fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// As [`as_seconds`], for a duration that may not be known.
pub fn as_seconds_if_known<S: Serializer>(
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
    fn a_zone_without_a_name_gets_the_listed_name_if_both_have_the_same_times() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let name = |rules: &str, listed: Option<&str>| {
            let zone = named_like(&TimeZone::posix(rules).unwrap(), listed, now);
            zone.map(|zone| zone.name().to_owned())
        };
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
        assert_eq!(name(berlin, Some("Europe/Berlin\n")).as_deref(), Some("Europe/Berlin"));
        assert_eq!(name(berlin, Some("Africa/Algiers")), None, "the same now, and not in summer");
        assert_eq!(name(berlin, Some("Etc/UTC")), None, "that of the image");
        assert_eq!(name(berlin, Some("nowhere")), None);
        assert_eq!(name(berlin, None), None);
        assert_eq!(name("UTC0", None).as_deref(), Some("UTC"));
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
