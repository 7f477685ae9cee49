//! Cron against an independent calculation: every minute of a year is checked.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The slots of an expression in a span, as the place's clocks show them, with their offset.
fn shown(expression: &str, place: &str, from: &str, until: &str) -> Vec<String> {
    let (cron, zone) = (CronSpec::parse(expression).unwrap(), zone(place));
    let slots = std::iter::successors(cron.next_after(&zone, at(from)), |slot| cron.next_after(&zone, *slot));
    slots
        .take_while(|slot| *slot <= at(until))
        .map(|slot| slot.to_zoned(zone.clone()).strftime("%d %H:%M%:z").to_string())
        .collect()
}

#[test]
fn a_time_that_the_clock_skips_runs_once_right_after() {
    let spring =
        |expression| shown(expression, "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z");
    assert_eq!(spring("30 2 * * *"), ["29 03:00+02:00"]);
    assert_eq!(spring("0,30 2 * * *"), ["29 03:00+02:00"], "two skipped times are one moment");
    assert_eq!(spring("30 1,2,3 * * *"), ["29 01:30+01:00", "29 03:00+02:00", "29 03:30+02:00"]);
    assert_eq!(spring("0 2,3 * * *"), ["29 03:00+02:00"]);
    assert_eq!(
        spring("*/30 1-3 * * *"),
        ["29 01:00+01:00", "29 01:30+01:00", "29 03:00+02:00", "29 03:30+02:00"]
    );
    // A whole day was skipped here when the date line was moved.
    let samoa = shown("0 12 30 12 *", "Pacific/Apia", "2011-12-29T12:00:00Z", "2012-01-10T12:00:00Z");
    assert_eq!(samoa, ["31 00:00+14:00"]);
}

#[test]
fn a_time_that_the_clock_shows_twice_runs_once() {
    let autumn =
        |expression| shown(expression, "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z");
    assert_eq!(autumn("30 2 * * *"), ["25 02:30+02:00"]);
    assert_eq!(autumn("0,30 2 * * *"), ["25 02:00+02:00", "25 02:30+02:00"]);
    assert_eq!(autumn("30 1,2,3 * * *"), ["25 01:30+02:00", "25 02:30+02:00", "25 03:30+01:00"]);
    let in_the_second_hour = at("2026-10-25T01:10:00Z");
    let cron = CronSpec::parse("*/20 2 * * *").unwrap();
    assert_eq!(cron.next_after(&zone("Europe/Berlin"), in_the_second_hour), Some(at("2026-10-26T01:00:00Z")));
}

#[test]
fn hourly_tasks_run_in_both_repeated_hours() {
    let autumn =
        |expression| shown(expression, "Europe/Berlin", "2026-10-24T23:45:00Z", "2026-10-25T02:40:00Z");
    assert_eq!(autumn("30 * * * *"), ["25 02:30+02:00", "25 02:30+01:00", "25 03:30+01:00"]);
    assert_eq!(autumn("0 * * * *"), ["25 02:00+02:00", "25 02:00+01:00", "25 03:00+01:00"]);
}

#[test]
fn five_and_six_fields_names_ranges_and_nicknames_are_understood() {
    let first = |expression: &str| {
        let slot =
            CronSpec::parse(expression).unwrap().next_after(&TimeZone::UTC, at("2026-11-15T12:00:00Z"));
        slot.map(|slot| slot.to_string())
    };
    for (expression, expected) in [
        ("0 9 * * MON-FRI", "2026-11-16T09:00:00Z"),
        ("0 9 * * mon,wed", "2026-11-16T09:00:00Z"),
        ("0 9 * * 7", "2026-11-22T09:00:00Z"),
        ("*/15 * * * *", "2026-11-15T12:15:00Z"),
        ("*/10 * * * * *", "2026-11-15T12:00:10Z"),
        ("0 0 1 JAN *", "2027-01-01T00:00:00Z"),
        ("5-10/5 0 1 1-3 *", "2027-01-01T00:05:00Z"),
        ("0 0 L * *", "2026-11-30T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        // Day and weekday: either will do, as it always was.
        ("0 0 13 * FRI", "2026-11-20T00:00:00Z"),
        ("@hourly", "2026-11-15T13:00:00Z"),
        ("@daily", "2026-11-16T00:00:00Z"),
        ("@midnight", "2026-11-16T00:00:00Z"),
        ("@weekly", "2026-11-22T00:00:00Z"),
        ("@monthly", "2026-12-01T00:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
    ] {
        assert_eq!(first(expression).as_deref(), Some(expected), "{expression}");
    }
}

#[test]
fn a_refusal_names_the_field_and_what_it_takes() {
    for (wrong, expected) in [
        ("61 * * * *", "its minute cannot be '61'. It is a number from 0 to 59"),
        ("61 * * * * *", "its second cannot be '61'. It is a number from 0 to 59"),
        ("0 24 * * *", "its hour cannot be '24'. It is a number from 0 to 23"),
        ("0 9 32 * *", "its day cannot be '32'. It is a number from 1 to 31"),
        (
            "0 9 * JANUARY *",
            "its month cannot be 'JANUARY'. It is a number from 1 to 12, or a name such as JAN",
        ),
        ("0 9 * * 8", "its weekday cannot be '8'. It is a number from 0 to 7"),
        ("MON * * * *", "its minute cannot be 'MON'"),
        ("0 1,,2 * * *", "its hour cannot be '1,,2'"),
        ("5-1 * * * *", "its minute cannot be '5-1'"),
        ("* * * *", "it has 4 fields; write five fields"),
        ("daily", "it has 1 field; write five fields"),
        ("@fortnightly", "there is no such nickname; write five fields"),
    ] {
        let error = CronSpec::parse(wrong).expect_err(wrong);
        let whole = format!("'{wrong}' is not a cron expression: {expected}");
        assert!(error.starts_with(&whole), "{error}");
    }
}

#[test]
fn invalid_expressions_are_refused_and_impossible_dates_are_found_quickly() {
    let began = std::time::Instant::now();
    for wrong in [
        "",
        "* * * *",
        "* * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "a b c d e",
        "@fortnightly",
        "1,,2 * * * *",
        "MON * * * *",
        "* * * * MONDAY",
    ] {
        let error = CronSpec::parse(wrong).expect_err(wrong);
        assert!(error.contains("is not a cron expression"), "{error}");
    }
    assert!(CronSpec::parse(&"1,".repeat(10_000)).is_err());
    for never in ["0 0 30 2 *", "* * * 31 4 *", "0 0 31 2,4,6,9,11 *"] {
        let cron = CronSpec::parse(never).unwrap();
        assert_eq!(cron.next_after(&zone("Europe/Berlin"), at("2026-11-15T12:00:00Z")), None, "{never}");
    }
    assert!(began.elapsed().as_secs() < 60);
}

/// The fields of an expression as plain sets of numbers.
#[derive(Debug, Clone)]
struct Fields {
    minutes: BTreeSet<i64>,
    hours: BTreeSet<i64>,
    /// From Sunday, which is 0.
    weekdays: BTreeSet<i64>,
}

impl Fields {
    fn expression(&self) -> String {
        let list =
            |numbers: &BTreeSet<i64>| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        format!("{} {} * * {}", list(&self.minutes), list(&self.hours), list(&self.weekdays))
    }

    /// Whether a time of the wall clock is meant, given as minutes since the beginning of 1970, which was a Thursday.
    fn has(&self, shown: i64) -> bool {
        self.minutes.contains(&shown.rem_euclid(60))
            && self.hours.contains(&shown.div_euclid(60).rem_euclid(24))
            && self.weekdays.contains(&(shown.div_euclid(1440) + 4).rem_euclid(7))
    }

    /// Walks over the minutes of a span and keeps the clock's hand in sight: what it shows now, and what it has shown.
    fn slots(&self, zone: &TimeZone, from: i64, until: i64) -> BTreeSet<i64> {
        let every_hour = self.hours.len() == 24;
        let mut slots = BTreeSet::new();
        let offset_at = |minute: i64| {
            let moment = Timestamp::from_second(minute * 60).unwrap();
            i64::from(zone.to_offset(moment).seconds() / 60)
        };
        let mut offset = offset_at(from);
        // The furthest that the hand has been.
        let mut furthest = from + offset;
        for minute in from + 1..=until {
            // No clock is changed at another time than a quarter of an hour.
            if minute % 15 == 0 {
                offset = offset_at(minute);
            }
            let hand = minute + offset;
            // All times that the hand passed by since it was last seen, the one it shows included.
            if (furthest + 1..=hand).any(|passed| self.has(passed)) {
                slots.insert(minute);
            }
            if hand <= furthest && every_hour && self.has(hand) {
                slots.insert(minute);
            }
            furthest = furthest.max(hand);
        }
        slots
    }
}

fn some_of(range: std::ops::RangeInclusive<i64>, most: usize) -> impl Strategy<Value = BTreeSet<i64>> {
    prop::collection::btree_set(range, 1..=most)
}

fn fields() -> impl Strategy<Value = Fields> {
    let all_hours = Just((0..24).collect::<BTreeSet<i64>>());
    let hours = prop_oneof![3 => some_of(0..=23, 6), 2 => some_of(0..=4, 5), 1 => all_hours];
    (some_of(0..=59, 4), hours, some_of(0..=6, 7)).prop_map(|(minutes, hours, weekdays)| Fields {
        minutes,
        hours,
        weekdays,
    })
}

/// Places whose clocks are changed by an hour, by half an hour, by two, in the south, on Fridays, at midnight, or never.
const PLACES: [&str; 10] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "America/Santiago",
    "Asia/Gaza",
    "Africa/Cairo",
    "America/St_Johns",
    "Africa/Casablanca",
    "Asia/Kolkata",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn a_year_of_slots_matches_an_independent_calculation(fields in fields(), place in 0..PLACES.len(), year in 2024..2030_i16) {
        let zone = zone(PLACES[place]);
        let first = jiff::civil::date(year, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp();
        let (from, until) = (first.as_second() / 60, first.as_second() / 60 + 366 * 1440);
        let cron = CronSpec::parse(&fields.expression()).unwrap();
        let slots: BTreeSet<i64> =
            std::iter::successors(cron.next_after(&zone, first), |slot| cron.next_after(&zone, *slot))
                .map(|slot| slot.as_second() / 60)
                .take_while(|slot| *slot <= until)
                .collect();
        let expected = fields.slots(&zone, from, until);
        let (missing, extra): (Vec<_>, Vec<_>) =
            (expected.difference(&slots).collect(), slots.difference(&expected).collect());
        prop_assert!(missing.is_empty() && extra.is_empty(),
            "{} in {} {year}: missing {missing:?}, too many {extra:?}", fields.expression(), PLACES[place]);
    }

    #[test]
    fn the_next_run_is_always_later(fields in fields(), place in 0..PLACES.len(), after in 1_600_000_000_000_i64..2_000_000_000_000) {
        let after = Timestamp::from_millisecond(after).unwrap();
        let next = CronSpec::parse(&fields.expression()).unwrap().next_after(&zone(PLACES[place]), after).unwrap();
        prop_assert!(next > after);
        // Nothing between the two is left out.
        let just_before = next - SignedDuration::from_nanos(1);
        prop_assert_eq!(CronSpec::parse(&fields.expression()).unwrap().next_after(&zone(PLACES[place]), just_before), Some(next));
    }
}
