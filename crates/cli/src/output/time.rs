//! Times formatted for people. Pure.

use hob_core::Zone;
use jiff::{SignedDuration, Timestamp};

use crate::output::number::counted;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Such as `in 3 hours, Mon 09:00`: how long it takes, and what the clocks of `zone` show then.
pub fn next_run(at: Timestamp, now: Timestamp, zone: &Zone) -> String {
    let left = at.duration_since(now);
    let when = clock(at, now, zone);
    if left <= SignedDuration::ZERO { format!("due, {when}") } else { format!("in {}, {when}", span(left)) }
}

/// The weekday within a week; beyond that the date.
pub fn clock(at: Timestamp, now: Timestamp, zone: &Zone) -> String {
    let there = at.to_zoned(zone.time_zone().clone());
    let days_away = at.duration_since(now).as_secs().abs() / DAY;
    let same_year = there.year() == now.to_zoned(zone.time_zone().clone()).year();
    let form = match (days_away < 7, same_year) {
        (true, _) => "%a %H:%M",
        (false, true) => "%-d %b %H:%M",
        (false, false) => "%-d %b %Y %H:%M",
    };
    there.strftime(form).to_string()
}

/// The full date and time.
pub fn in_full(at: Timestamp, zone: &Zone) -> String {
    at.to_zoned(zone.time_zone().clone()).strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string()
}

/// A moment of the past, as logs have it.
pub fn to_the_second(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// The largest unit of which there are some, rounded down.
pub fn span(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    for (size, unit) in [(DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")] {
        let count = seconds / size;
        if count > 0 {
            return counted(count, unit);
        }
    }
    counted(seconds, "second")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a moment")
    }

    #[test]
    fn the_next_run_is_told_as_people_would() {
        let now = at("2026-11-15T06:00:00Z");
        let berlin = Zone::named("Europe/Berlin").expect("a zone");
        for (next, zone, words) in [
            ("2026-11-15T06:00:42Z", Zone::UTC, "in 42 seconds, Sun 06:00"),
            ("2026-11-15T06:01:00Z", Zone::UTC, "in 1 minute, Sun 06:01"),
            ("2026-11-15T09:30:00Z", Zone::UTC, "in 3 hours, Sun 09:30"),
            ("2026-11-16T08:00:00Z", berlin.clone(), "in 1 day, Mon 09:00"),
            ("2026-11-27T08:00:00Z", berlin, "in 12 days, 27 Nov 09:00"),
            ("2027-01-01T00:00:00Z", Zone::UTC, "in 46 days, 1 Jan 2027 00:00"),
            ("2026-11-15T05:59:00Z", Zone::UTC, "due, Sun 05:59"),
        ] {
            assert_eq!(next_run(at(next), now, &zone), words);
        }
    }

    #[test]
    fn times_are_shown_to_the_second() {
        assert_eq!(to_the_second(at("2026-11-15T06:00:42.987654Z")), "2026-11-15T06:00:42Z");
    }
}
