//! Answers over time: the hours of today and the days of the last month, in the zone of the reader.

use hob_core::time::{Moment, Zone};
use serde::Serialize;

/// Days of the chart before today.
const DAYS_BEFORE: u32 = 29;

/// Answers in a quarter of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quarter {
    pub start: Moment,
    pub calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverTime {
    /// The zone of the days.
    pub timezone: String,
    /// All hours of today.
    pub today: Vec<TimeSlice>,
    /// The last 30 days, including today.
    pub days: Vec<TimeSlice>,
}

/// Answers from `start` until the next slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimeSlice {
    pub start: Moment,
    pub calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

pub(super) fn over_time(quarters: &[Quarter], now: Moment, zone: &Zone) -> OverTime {
    let days = zone.days_until(now, DAYS_BEFORE);
    let hours = match days.as_slice() {
        [.., today, tomorrow] => hours_between(*today, *tomorrow),
        _ => Vec::new(),
    };
    OverTime {
        timezone: zone.name().to_owned(),
        today: slices(quarters, &hours),
        days: slices(quarters, &days),
    }
}

/// The boundaries of the hours. There are 23 or 25 on days when the clock changes.
fn hours_between(start: Moment, end: Moment) -> Vec<Moment> {
    let mut hours: Vec<Moment> =
        (0..).map(|hour| start.plus_hours(hour)).take_while(|hour| *hour < end).collect();
    hours.push(end);
    hours
}

/// Sums the quarters between the boundaries. Both are sorted.
fn slices(quarters: &[Quarter], boundaries: &[Moment]) -> Vec<TimeSlice> {
    let between = |pair: &[Moment]| {
        let (start, end) = (pair[0], pair[1]);
        let from = quarters.partition_point(|quarter| quarter.start < start);
        let to = quarters.partition_point(|quarter| quarter.start < end);
        let within = &quarters[from..to];
        let sum = |count: fn(&Quarter) -> u64| within.iter().map(count).fold(0, u64::saturating_add);
        TimeSlice {
            start,
            calls: sum(|quarter| quarter.calls),
            prompt_tokens: sum(|quarter| quarter.prompt_tokens),
            completion_tokens: sum(|quarter| quarter.completion_tokens),
        }
    };
    boundaries.windows(2).map(between).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// A quarter of an hour with one call, so many seconds after 1970.
    fn quarter(seconds: u64) -> Quarter {
        let start = Moment::of(UNIX_EPOCH + Duration::from_secs(seconds));
        Quarter { start, calls: 1, prompt_tokens: 10, completion_tokens: 1 }
    }

    #[test]
    fn an_engine_that_counts_nonsense_does_not_stop_the_chart() {
        let start = Moment::of(UNIX_EPOCH);
        let endless = Quarter { start, calls: 1, prompt_tokens: u64::MAX, completion_tokens: u64::MAX };
        let end = Moment::of(UNIX_EPOCH + Duration::from_secs(3_600));
        let summed = slices(&[endless, endless], &[start, end]);
        let expected = TimeSlice { start, calls: 2, prompt_tokens: u64::MAX, completion_tokens: u64::MAX };
        assert_eq!(summed, [expected]);
    }

    fn calls(slices: &[TimeSlice]) -> Vec<(String, u64)> {
        let with_calls = slices.iter().filter(|slice| slice.calls > 0);
        with_calls.map(|slice| (slice.start.to_string().replace(".000000", ""), slice.calls)).collect()
    }

    fn zone(name: &str) -> Zone {
        Zone::named(name).expect("a zone")
    }

    /// Noon of 2026-11-15 in UTC.
    const NOON: u64 = 1_794_744_000;

    #[test]
    fn a_day_is_the_readers_day() {
        let now = quarter(NOON).start;
        // At 18:15 the day before: already today in India, where it is a quarter to midnight, and not in Nepal.
        let quarters = [quarter(NOON - 18 * 3600 + 900), quarter(NOON)];
        let of = |name: &str| calls(&over_time(&quarters, now, &zone(name)).days);
        assert_eq!(
            of("Asia/Kolkata"),
            [("2026-11-13T18:30:00Z".into(), 1), ("2026-11-14T18:30:00Z".into(), 1)]
        );
        assert_eq!(of("Asia/Kathmandu"), [("2026-11-14T18:15:00Z".into(), 2)]);
        assert_eq!(of("UTC"), [("2026-11-14T00:00:00Z".into(), 1), ("2026-11-15T00:00:00Z".into(), 1)]);
    }

    #[test]
    fn today_has_23_to_25_hours() {
        let hours = |name: &str, now: u64| {
            let over_time = over_time(&[], quarter(now).start, &zone(name));
            assert_eq!(over_time.days.len(), 30);
            over_time.today.len()
        };
        assert_eq!(hours("Europe/Berlin", NOON), 24);
        // The last Sundays of March and of October.
        assert_eq!(hours("Europe/Berlin", 1_774_782_000), 23);
        assert_eq!(hours("Europe/Berlin", 1_792_926_000), 25);
    }

    #[test]
    fn nothing_is_lost_when_the_clock_changes() {
        let now = 1_792_926_000;
        let quarters: Vec<Quarter> = (0..96 * 29).rev().map(|ago| quarter(now - ago * 900)).collect();
        let slices = over_time(&quarters, quarter(now).start, &zone("Europe/Berlin")).days;
        assert_eq!(slices.iter().map(|slice| slice.calls).sum::<u64>(), 96 * 29);
    }

    #[test]
    fn an_unknown_time_zone_is_none() {
        for name in ["", "Mars/Olympus", "../../etc/passwd", "Europe/Berlin\0"] {
            assert_eq!(Zone::named(name), None, "{name:?}");
        }
    }
}
