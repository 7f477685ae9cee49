//! What is too old goes, whenever a day has passed, and a disk that refuses does not end that.

use super::*;
use crate::call_record::CallRecord;
use crate::inference::Inference;
use crate::store::SqliteTelemetryStore;
use crate::store::tests::{DAY, inference, noon, rows, with};

/// The last four days, a call each.
fn four_days() -> SqliteTelemetryStore {
    let calls: Vec<Inference> =
        (0..4).map(|ago| Inference { started: noon() - ago * DAY, ..inference() }).collect();
    with(&calls)
}

/// How many days ago the calls on record were made.
fn days_on_record(telemetry: &SqliteTelemetryStore) -> Vec<u64> {
    let ago = |row: &CallRecord| {
        let passed = noon().duration_since(row.started.time()).expect("in the past");
        passed.as_secs() / DAY.as_secs()
    };
    rows(telemetry).iter().map(ago).collect()
}

/// Until there is no more to do; says how many days were deleted.
fn apply(
    retention: &mut Retention,
    telemetry: &SqliteTelemetryStore,
    now: SystemTime,
    clock: Instant,
) -> usize {
    std::iter::from_fn(|| (retention.step(telemetry, now, clock) == Pruning::Continues).then_some(())).count()
}

#[test]
fn every_day_that_passes_takes_the_oldest_one_with_it() {
    let (telemetry, clock) = (four_days(), Instant::now());
    let mut retention = Retention::new(2);
    assert_eq!(apply(&mut retention, &telemetry, noon(), clock), 1);
    assert_eq!(days_on_record(&telemetry), [2, 1, 0]);
    assert_eq!(apply(&mut retention, &telemetry, noon() + DAY / 4, clock), 0, "it is still today");
    assert_eq!(apply(&mut retention, &telemetry, noon() + DAY, clock), 1);
    assert_eq!(apply(&mut retention, &telemetry, noon() + 3 * DAY, clock), 2);
    assert_eq!(days_on_record(&telemetry), [] as [u64; 0]);
}

#[test]
fn zero_days_of_retention_is_for_ever() {
    let telemetry = four_days();
    assert_eq!(apply(&mut Retention::new(0), &telemetry, noon() + 9_999 * DAY, Instant::now()), 0);
    assert_eq!(days_on_record(&telemetry).len(), 4);
}

#[test]
fn a_disk_that_refuses_is_asked_again_after_a_while_and_not_all_the_time() {
    let (telemetry, clock) = (four_days(), Instant::now());
    let refuse = |refuse: bool| {
        telemetry.database.writer().pragma_update(None, "query_only", refuse).expect("set");
    };
    let mut retention = Retention::new(2);
    refuse(true);
    assert_eq!(apply(&mut retention, &telemetry, noon(), clock), 0);
    refuse(false);
    assert_eq!(apply(&mut retention, &telemetry, noon(), clock + TRY_AGAIN / 2), 0, "it was just asked");
    assert_eq!(apply(&mut retention, &telemetry, noon(), clock + TRY_AGAIN), 1);
    assert_eq!(days_on_record(&telemetry), [2, 1, 0]);
}
