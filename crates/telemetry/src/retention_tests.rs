//! What is too old goes, whenever a day has passed, and a disk that refuses does not end that.

use super::*;
use crate::call_record::CallRecord;
use crate::inference::Inference;
use crate::store::tests::{DAY, NewStore, TestStore, inference, noon, postgres, sqlite};

hob_testkit::on_both_databases!(
    sqlite, postgres:
    every_new_day_deletes_the_oldest_one,
    zero_days_of_retention_is_forever,
    a_failed_deletion_is_retried_after_a_while,
);

/// The last four days, a call each.
fn four_days(new: NewStore) -> TestStore {
    let calls: Vec<Inference> =
        (0..4).map(|ago| Inference { started: noon() - ago * DAY, ..inference() }).collect();
    TestStore::with(new, &calls)
}

/// How many days ago the calls on record were made.
fn days_on_record(telemetry: &TestStore) -> Vec<u64> {
    let ago = |row: &CallRecord| {
        let passed = noon().duration_since(row.started.time()).expect("in the past");
        passed.as_secs() / DAY.as_secs()
    };
    telemetry.rows().iter().map(ago).collect()
}

/// Until there is no more to do; says how many days were deleted.
fn apply(retention: &mut Retention, telemetry: &TestStore, now: SystemTime, clock: Instant) -> usize {
    std::iter::from_fn(|| (retention.step(&**telemetry, now, clock) == Pruning::Continues).then_some(()))
        .count()
}

fn every_new_day_deletes_the_oldest_one(new: NewStore) {
    let (telemetry, clock) = (four_days(new), Instant::now());
    let mut retention = Retention::new(2);
    assert_eq!(apply(&mut retention, &telemetry, noon(), clock), 1);
    assert_eq!(days_on_record(&telemetry), [2, 1, 0]);
    assert_eq!(apply(&mut retention, &telemetry, noon() + DAY / 4, clock), 0, "it is still today");
    assert_eq!(apply(&mut retention, &telemetry, noon() + DAY, clock), 1);
    assert_eq!(apply(&mut retention, &telemetry, noon() + 3 * DAY, clock), 2);
    assert_eq!(days_on_record(&telemetry), [] as [u64; 0]);
}

fn zero_days_of_retention_is_forever(new: NewStore) {
    let telemetry = four_days(new);
    assert_eq!(apply(&mut Retention::new(0), &telemetry, noon() + 9_999 * DAY, Instant::now()), 0);
    assert_eq!(days_on_record(&telemetry).len(), 4);
}

fn a_failed_deletion_is_retried_after_a_while(new: NewStore) {
    let (telemetry, clock) = (four_days(new), Instant::now());
    let mut retention = Retention::new(2);
    telemetry.run_sql(
        "CREATE TRIGGER refuses BEFORE DELETE ON telemetry_day BEGIN SELECT raise(ABORT, 'no'); END",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
         CREATE TRIGGER refuses BEFORE DELETE ON telemetry_day EXECUTE FUNCTION refuse()",
    );
    assert_eq!(apply(&mut retention, &telemetry, noon(), clock), 0);
    telemetry.run_sql("DROP TRIGGER refuses", "DROP TRIGGER refuses ON telemetry_day");
    assert_eq!(apply(&mut retention, &telemetry, noon(), clock + RETRY_INTERVAL / 2), 0, "it was just asked");
    assert_eq!(apply(&mut retention, &telemetry, noon(), clock + RETRY_INTERVAL), 1);
    assert_eq!(days_on_record(&telemetry), [2, 1, 0]);
}
