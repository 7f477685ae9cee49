//! Several processes on one server, and a server that fails.

use std::thread;
use std::time::{Duration, Instant};

use hob_db::postgres::QueryError;
use hob_testkit::{PostgresServer, TestDatabase};

use super::record::fingerprint;
use super::*;
use crate::export::CallExport;
use crate::inference::{InferenceEnd, InferenceLog};
use crate::store::recount_tests::assert_reports_match_rows;
use crate::store::tests::{DAY, connect, inference, noon, rows};
use crate::writer::{TelemetryWriter, WriterOptions};

fn store(created: &TestDatabase) -> PostgresTelemetryStore {
    PostgresTelemetryStore::new(connect(created))
}

fn shared(store: &PostgresTelemetryStore) -> Arc<dyn TelemetryStore> {
    Arc::new(store.clone())
}

fn calls(store: &PostgresTelemetryStore) -> u64 {
    store.overview(None).expect("readable").figures.calls
}

/// Calls of several series, days and quarters, in an order of its own for each `number`.
fn mixed(number: u64) -> Vec<Inference> {
    let call = |at: u64| {
        let at = at.wrapping_mul(2 * number + 1) % 12;
        Inference {
            started: noon() - (at % 3) as u32 * 9 * DAY + Duration::from_secs(at * 900),
            model: format!("m{}", at % 4),
            agent: at.is_multiple_of(2).then(|| "react".to_owned()),
            latency: Duration::from_millis(1 + at * number),
            ..inference()
        }
    };
    (0..12).map(call).collect()
}

#[test]
fn processes_that_record_and_delete_at_once_keep_exact_sums() {
    let created = PostgresServer::shared().create_database();
    let pools = [store(&created), store(&created)];
    let prices = Prices::standard();
    let today = UtcDay::of(noon());
    let deleted: u64 = thread::scope(|scope| {
        let writers: Vec<_> = (0..8_u64)
            .map(|writer| {
                let store = &pools[writer as usize % 2];
                let prices = &prices;
                scope.spawn(move || {
                    let mut deleted = 0;
                    for number in 0..15 {
                        store.record_batch(&mixed(writer * 15 + number), prices).expect("recorded");
                        // The days of a third of the calls are deleted while others write to them.
                        if number.is_multiple_of(4)
                            && let DayDeletion::Deleted(calls) =
                                store.delete_oldest(today.minus(10)).expect("looked")
                        {
                            deleted += calls;
                        }
                    }
                    deleted
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("it ended")).sum()
    });
    assert!(deleted > 0, "nothing was deleted meanwhile");
    assert_eq!(calls(&pools[0]) + deleted, 8 * 15 * 12);
    assert_reports_match_rows(&shared(&pools[1]));
}

#[test]
fn one_process_deletes_and_the_others_do_not_wait() {
    let created = PostgresServer::shared().create_database();
    let (one, other) = (store(&created), store(&created));
    let old = Inference { started: noon() - 9 * DAY, ..inference() };
    let new = Inference { model: "new".to_owned(), ..inference() };
    one.record_batch(&[old, inference()], &Prices::standard()).expect("recorded");
    let today = UtcDay::of(noon());
    let meanwhile = one.database.write(|transaction| {
        let first = delete::delete_oldest(transaction, today)?;
        // Calls of today are recorded while a day is being deleted.
        other.record_batch(std::slice::from_ref(&new), &Prices::standard()).expect("recorded");
        Ok((first, other.delete_oldest(today).expect("looked")))
    });
    assert_eq!(meanwhile.expect("deleted"), (DayDeletion::Deleted(1), DayDeletion::Busy));
    assert_eq!(other.delete_oldest(today).expect("looked"), DayDeletion::NothingOld);
    assert_eq!(calls(&other), 2);
}

#[test]
fn a_day_is_deleted_in_the_order_in_which_batches_lock_its_series() {
    let created = PostgresServer::shared().create_database();
    let store = store(&created);
    let call =
        |key: &str, model: &str| Inference { key: Some(key.into()), model: model.to_owned(), ..inference() };
    let names = [("c", "m1"), ("a", "m2"), ("b", "m1"), ("a", "m1"), ("c", "m2"), ("b", "m2")];
    for (key, model) in names {
        store.record_batch(&[call(key, model)], &Prices::standard()).expect("recorded");
    }
    let locked = store.database.write(|transaction| {
        let locked = transaction.query(delete::LOCK_SERIES, &[&UtcDay::of(noon()).days()])?;
        let mut order = Vec::new();
        for row in locked {
            let id: i64 = row.try_get(0)?;
            let series =
                transaction.query_one("SELECT key, model FROM telemetry_series WHERE id = $1", &[&id])?;
            order.push((series.try_get::<_, String>(1)?, series.try_get::<_, String>(0)?));
        }
        Ok(order)
    });
    let locked = locked.expect("locked");
    assert_eq!(locked.len(), 6);
    assert!(locked.is_sorted(), "{locked:?}");
}

#[test]
fn a_search_looks_at_some_calls_for_each_page() {
    let created = PostgresServer::shared().create_database();
    let store = store(&created);
    let call = |second: u64, model: &str| Inference {
        started: noon() + Duration::from_secs(second),
        model: model.to_owned(),
        ..inference()
    };
    let mut batch: Vec<Inference> = (0..20).map(|second| call(second, "other")).collect();
    batch.extend([call(0, "wanted"), call(7, "wanted"), call(19, "wanted")]);
    store.record_batch(&batch, &Prices::standard()).expect("recorded");
    let mut query = CallQuery { model: Some("wanted".to_owned()), limit: 2, ..CallQuery::default() };
    let mut pages = Vec::new();
    while pages.len() < 30 {
        let page = store.database.read(|transaction| calls::call_page_among(transaction, &query, 5));
        let CallPage { calls, next } = page.expect("readable");
        pages.push(calls.len());
        if next.is_none() {
            break;
        }
        query.after = next;
    }
    assert_eq!(pages.iter().sum::<usize>(), 3, "{pages:?}");
    assert_eq!((pages[0], pages[1]), (1, 0), "{pages:?}");
}

#[test]
fn an_export_loses_no_call_that_is_committed_after_one_with_a_larger_id() {
    let created = PostgresServer::shared().create_database();
    let (late, store) = (store(&created), store(&created));
    store.record_batch(&[inference()], &Prices::standard()).expect("recorded");
    let first = late.database.write(|transaction| {
        transaction.execute(
            "INSERT INTO telemetry_call (
                 started, run, source, engine, model, agent, streamed, prompt_tokens, completion_tokens, estimated, latency_us,
                 outcome
             ) SELECT started + 1, 'late', source, engine, model, agent, streamed, 0, 0, FALSE, 0, 'complete' FROM telemetry_call",
            &[],
        )?;
        store.record_batch(&[inference()], &Prices::standard()).expect("recorded");
        Ok(store.page_after(ExportPosition::before(None)).expect("readable"))
    });
    let first = first.expect("written");
    assert_eq!((first.calls.len(), first.position.newest), (2, Some(3)), "the late call has the id 2");
    let continued = store.page_after(first.position).expect("readable");
    let runs: Vec<&str> = continued.calls.iter().map(|call| call.run.as_str()).collect();
    assert_eq!(runs, ["late"], "it began after the position");
    assert_eq!(CallExport::new(shared(&store), None).count(), 3);
}

#[test]
fn a_batch_that_was_recorded_when_the_connection_broke_is_not_recorded_again() {
    let created = PostgresServer::shared().create_database();
    let store = store(&created);
    let (batch, prices) = ([inference(), inference()], Prices::standard());
    let is_unknown = |transaction: &str| {
        *store.unknown.lock() =
            Some(UnknownEnd { batch: fingerprint(&batch), transaction: transaction.to_owned() });
    };
    store.record_batch(&batch, &prices).expect("recorded");
    let committed = store.database.read(|transaction| {
        let row = transaction.query_one("SELECT xmin::text FROM telemetry_call LIMIT 1", &[])?;
        Ok(row.try_get::<_, String>(0)?)
    });
    is_unknown(&committed.expect("readable"));
    store.record_batch(&batch, &prices).expect("recorded before");
    assert_eq!(calls(&store), 2);
    store.record_batch(&batch, &prices).expect("recorded");
    assert_eq!(calls(&store), 4, "the same calls again are other calls");

    let mut rolled_back = String::new();
    let failed = store.database.write(|transaction| {
        rolled_back = transaction.query_one("SELECT pg_current_xact_id()::text", &[])?.try_get(0)?;
        Err::<(), _>(QueryError::unreadable("nothing", "on purpose"))
    });
    assert!(failed.is_err());
    is_unknown(&rolled_back);
    store.record_batch(&batch, &prices).expect("recorded");
    assert_eq!(calls(&store), 6);
    is_unknown("999999999");
    store.record_batch(&batch, &prices).expect("recorded");
    assert_eq!(calls(&store), 8, "a new primary does not know the transaction");

    let mut of_another = String::new();
    let committed = store.database.write(|transaction| {
        of_another = transaction.query_one("SELECT pg_current_xact_id()::text", &[])?.try_get(0)?;
        Ok(())
    });
    committed.expect("committed");
    is_unknown(&of_another);
    store.record_batch(&batch, &prices).expect("recorded");
    assert_eq!(calls(&store), 10, "after a crash, another transaction may have the number");
}

#[test]
fn a_server_that_is_killed_and_started_again_loses_and_doubles_nothing() {
    let mut server = PostgresServer::start();
    let created = server.create_database();
    let store = store(&created);
    store.clear().expect("migrated");
    let opened = shared(&store);
    let options = WriterOptions { prices: Arc::new(Prices::standard()), retention_days: 0 };
    let writer = TelemetryWriter::start(move || Ok(Arc::clone(&opened)), options).expect("started");
    let mut recorded = 0;
    let mut record = |calls: u64| {
        for number in recorded..recorded + calls {
            writer.record(Inference { run: number.to_string().into(), ..inference() });
        }
        recorded += calls;
    };
    for _ in 0..2 {
        record(1000);
        // Kills it while it writes. A server that was away may refuse a question while the writer connects to it.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !store.overview(None).is_ok_and(|overview| overview.figures.calls > 0) {
            assert!(Instant::now() < deadline, "nothing is recorded");
        }
        record(1000);
        server.kill();
        record(500);
        server.start_again();
    }
    assert!((0..1000).any(|_| writer.flush(Duration::from_secs(60))), "it never wrote");
    assert_eq!((calls(&store), writer.dropped()), (recorded, 0));
    let mut runs: Vec<u64> =
        rows(&shared(&store)).iter().map(|call| call.run.parse().expect("a number")).collect();
    runs.sort_unstable();
    assert_eq!(runs, (0..recorded).collect::<Vec<u64>>());
}

#[test]
fn a_name_with_a_null_character_is_recorded_and_found() {
    let created = PostgresServer::shared().create_database();
    let store = store(&created);
    let odd = Inference {
        run: "r\0".into(),
        model: "m\0".to_owned(),
        agent: Some("\0".to_owned()),
        ending: InferenceEnd::Failed("no\0".to_owned()),
        ..inference()
    };
    store.record_batch(&[odd, inference()], &Prices::standard()).expect("recorded");
    let found = store.find_run("r\0", Moment::of(noon())).expect("readable").expect("found");
    assert_eq!((found.run.as_str(), found.model.as_str()), ("r\u{fffd}", "m\u{fffd}"));
    assert_eq!((found.agent.as_deref(), found.error.as_deref()), (Some("\u{fffd}"), Some("no\u{fffd}")));
    assert_eq!(calls(&store), 2);
}

#[test]
fn an_engine_has_answered_once_an_answer_of_its_is_recorded() {
    let created = PostgresServer::shared().create_database();
    let store = store(&created);
    let failed = Inference {
        engine: "vllm".to_owned(),
        ending: InferenceEnd::Failed("unreachable".into()),
        ..inference()
    };
    store.record_batch(&[inference(), failed], &Prices::standard()).expect("recorded");
    for (engine, expected) in [("ollama", true), ("vllm", false), ("llamacpp", false)] {
        assert_eq!(store.has_answered(engine).expect("readable"), expected, "{engine}");
    }
}
