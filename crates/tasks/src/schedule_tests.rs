use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn table(kind: ScheduleType, value: &str, zone: &str, anchor: &str) -> Schedule {
    let zone = parse_zone(zone).unwrap();
    Schedule { spec: ScheduleSpec::parse(kind, value, &zone).unwrap(), zone, anchor: at(anchor) }
}

#[test]
fn an_interval_stays_on_its_grid_however_late_it_is_asked() {
    let table = table(ScheduleType::Interval, "90", "UTC", "2026-01-01T00:00:10Z");
    assert_eq!(table.next_run(at("2020-01-01T00:00:00Z")), Some(at("2026-01-01T00:01:40Z")));
    assert_eq!(table.next_run(at("2026-01-01T00:01:40Z")), Some(at("2026-01-01T00:03:10Z")));
    assert_eq!(table.next_run(at("2026-01-01T00:03:09.999Z")), Some(at("2026-01-01T00:03:10Z")));
    assert_eq!(
        table
            .next_run(at("2026-06-01T00:00:00Z"))
            .map(|slot| { (slot.as_second() - table.anchor.as_second()) % 90 }),
        Some(0)
    );
}

#[test]
fn a_date_without_an_offset_is_in_the_zone_of_the_task() {
    let once = |value: &str, zone: &str| {
        table(ScheduleType::Once, value, zone, "2026-01-01T00:00:00Z").next_run(at("2026-01-01T00:00:00Z"))
    };
    assert_eq!(once("2026-07-01T09:00", "Europe/Berlin"), Some(at("2026-07-01T07:00:00Z")));
    assert_eq!(once("2026-07-01 09:00:30", "UTC"), Some(at("2026-07-01T09:00:30Z")));
    assert_eq!(once("2026-07-01T09:00:00+02:00", "America/New_York"), Some(at("2026-07-01T07:00:00Z")));
    assert_eq!(once("2026-07-01", "Asia/Tokyo"), Some(at("2026-06-30T15:00:00Z")));
    // The clock skips 02:30 there, and later shows it twice.
    assert_eq!(once("2026-03-29T02:30", "Europe/Berlin"), Some(at("2026-03-29T01:30:00Z")));
    assert_eq!(once("2026-10-25T02:30", "Europe/Berlin"), Some(at("2026-10-25T00:30:00Z")));
}

#[test]
fn once_is_once() {
    let table = table(ScheduleType::Once, "2026-07-01T09:00Z", "UTC", "2026-01-01T00:00:00Z");
    assert_eq!(table.upcoming(at("2026-01-01T00:00:00Z")).count(), 1);
    assert_eq!(table.next_run(at("2026-07-01T09:00:00Z")), None);
}

#[test]
fn an_unknown_zone_is_an_error() {
    for unknown in ["Mars/Olympus", "", "../../etc/passwd"] {
        assert!(parse_zone(unknown).unwrap_err().to_string().contains("IANA name"), "{unknown}");
    }
    assert_eq!(parse_zone("europe/berlin").unwrap().name(), "Europe/Berlin");
    assert_eq!(parse_zone("UTC").unwrap(), Zone::UTC);
}

proptest! {
    #[test]
    fn the_next_run_of_an_interval_is_later_and_at_most_one_interval_away(
        anchor in 0_i64..4_000_000_000, every in 1_u32..1_000_000, after in 0_i64..4_000_000_000,
    ) {
        let zone = Zone::UTC;
        let spec = ScheduleSpec::parse(ScheduleType::Interval, &every.to_string(), &zone).unwrap();
        let anchor = Timestamp::from_second(anchor).unwrap();
        let after = Timestamp::from_second(after).unwrap();
        let next = Schedule { spec, zone, anchor }.next_run(after).unwrap();
        prop_assert!(next > after && next > anchor);
        prop_assert!(next.as_second() <= after.max(anchor).as_second() + i64::from(every));
        prop_assert_eq!((next.as_second() - anchor.as_second()) % i64::from(every), 0);
    }
}
