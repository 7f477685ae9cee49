//! Exports, however large and however slowly read.

use std::sync::Arc;
use std::time::Duration;

use hob_db::DatabaseError;

use super::*;
use crate::inference::Inference;
use crate::savings::Prices;
use crate::store::sqlite::export::MIN_CALLS;
use crate::store::sqlite::pages::MAX_INFERENCES;
use crate::store::tests::{DAY, NewStore, TestStore, inference, noon, postgres, sqlite};

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_hundred_thousand_rows_are_exported_some_pages_at_a_time,
    a_long_call_is_ordered_by_its_start,
    long_calls_do_not_fill_the_memory,
    records_during_an_export_are_not_part_of_it_and_do_not_wait,
    an_export_of_nothing_is_empty_and_an_error_ends_it,
);

/// So many rows, several of them in each millisecond, with their number for a name.
fn filled(new: NewStore, rows: u64) -> TestStore {
    let telemetry = new();
    let numbered = |number: u64| Inference {
        started: noon() + Duration::from_millis(number / 7),
        run: Arc::from(number.to_string()),
        ..inference()
    };
    let batch: Vec<Inference> = (0..rows).map(numbered).collect();
    telemetry.record_batch(&batch, &Prices::standard()).expect("recorded");
    telemetry
}

fn a_hundred_thousand_rows_are_exported_some_pages_at_a_time(new: NewStore) {
    let telemetry = filled(new, 100_000);
    let mut export = telemetry.export(None);
    let mut exported = 0;
    while let Some(row) = export.next() {
        assert_eq!(row.expect("readable").run, exported.to_string());
        assert!(export.ready.len() + export.held.len() < MIN_CALLS + 2 * MAX_INFERENCES);
        exported += 1;
    }
    assert_eq!(exported, 100_000);
}

fn a_long_call_is_ordered_by_its_start(new: NewStore) {
    let telemetry = new();
    let began = |second: u64| Inference { started: noon() + Duration::from_secs(second), ..inference() };
    for batch in 1..=30 {
        let mut ended: Vec<Inference> = (0..100).map(|number| began(100 * batch + number)).collect();
        ended.push(began(batch));
        telemetry.record_batch(&ended, &Prices::standard()).expect("recorded");
    }
    let rows: Vec<CallRecord> = telemetry.export(None).collect::<Result<_, _>>().expect("readable");
    assert_eq!(rows.len(), 30 * 101);
    assert!(rows.is_sorted_by_key(|row| row.started));
}

fn long_calls_do_not_fill_the_memory(new: NewStore) {
    let telemetry = new();
    let began = |milliseconds: u64| Inference {
        started: noon() + Duration::from_millis(milliseconds),
        ..inference()
    };
    for batch in 0..20 {
        let mut ended: Vec<Inference> =
            (1..MAX_INFERENCES as u64).map(|number| began(1_000_000 * batch + number)).collect();
        ended.push(began(batch));
        telemetry.record_batch(&ended, &Prices::standard()).expect("recorded");
    }
    let mut export = telemetry.export(None);
    let mut exported = 0;
    while let Some(row) = export.next() {
        row.expect("readable");
        assert!(export.ready.len() + export.held.len() < MAX_HELD + MIN_CALLS + MAX_INFERENCES);
        exported += 1;
    }
    assert_eq!(exported, 20 * MAX_INFERENCES);
}

fn records_during_an_export_are_not_part_of_it_and_do_not_wait(new: NewStore) {
    let telemetry = filled(new, 2500);
    let earlier = Inference { started: noon() - DAY, ..inference() };
    let later = Inference { started: noon() + DAY, ..inference() };
    let mut exported = 0;
    for row in telemetry.export(None) {
        row.expect("readable");
        if exported % 50 == 0 {
            telemetry.record_batch(&[earlier.clone(), later.clone()], &Prices::standard()).expect("recorded");
        }
        exported += 1;
    }
    assert_eq!(exported, 2500);
    assert_eq!(telemetry.export(Some(UtcDay::of(noon()).next())).count(), 50);
}

fn an_export_of_nothing_is_empty_and_an_error_ends_it(new: NewStore) {
    let telemetry = new();
    assert_eq!(telemetry.export(None).count(), 0);
    telemetry.run_sql("DROP TABLE telemetry_page", "DROP TABLE telemetry_call");
    let rows: Vec<Result<CallRecord, DatabaseError>> = telemetry.export(None).collect();
    assert!(
        matches!(rows[..], [Err(DatabaseError::Failed { .. } | DatabaseError::QueryFailed { .. })]),
        "{rows:?}"
    );
}
