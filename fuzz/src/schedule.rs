//! Schedules of tasks.

use hob_core::Zone;
use hob_tasks::{Schedule, ScheduleSpec, ScheduleType};
use jiff::Timestamp;

/// Clocks change by an hour, by half an hour, at midnight, and never.
const ZONES: [&str; 4] = ["Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "UTC"];

/// A value that is accepted means the same when it is written and read again, and its slots are in order.
pub fn parse(bytes: &[u8]) {
    let Ok(value) = std::str::from_utf8(bytes) else { return };
    let zone = Zone::named(ZONES[bytes.len() % ZONES.len()]).expect("the zones are built in");
    for kind in ScheduleType::ALL {
        let Ok(spec) = ScheduleSpec::parse(kind, value, &zone) else { continue };
        let again = ScheduleSpec::parse(kind, &spec.to_string(), &zone);
        assert!(again.is_ok_and(|again| again == spec), "a schedule changes when it is written");
        check_slots(kind, value, &zone);
    }
}

fn check_slots(kind: ScheduleType, value: &str, zone: &Zone) {
    // Shortly before clocks change in the first zone.
    let mut last: Timestamp = "2026-10-24T20:00:00Z".parse().expect("a date");
    let Ok(schedule) = Schedule::from_now(kind, value, zone.clone(), last) else { return };
    for slot in schedule.upcoming(last).take(10) {
        assert!(slot > last, "the slot {slot} comes after {last}");
        last = slot;
    }
}
