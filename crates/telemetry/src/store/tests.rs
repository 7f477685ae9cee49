//! What is recorded is what reports say, in both databases.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hob_core::{FinishReason, Usage, Zone};
use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase};
use proptest::prelude::*;

use super::*;
use crate::call_record::CallRecord;
use crate::export::CallExport;
use crate::figures::CallFigures;
use crate::inference::{CallDetails, Energy, Inference, InferenceEnd};
use crate::savings::{Price, Prices, Savings, savings};
use crate::timings::LatencySummary;

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// Noon of 2026-11-15.
pub(crate) fn noon() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_794_744_000)
}

/// A plain local answer.
pub(crate) fn inference() -> Inference {
    Inference {
        started: noon(),
        run: Arc::from("run-1"),
        source: RequestSource::Server,
        engine: "ollama".to_owned(),
        model: "qwen3:8b".to_owned(),
        agent: None,
        key: None,
        end_user: None,
        details: Default::default(),
        streamed: true,
        usage: Usage {
            prompt_tokens: 100,
            completion_tokens: 50,
            cached_tokens: Some(20),
            reasoning_tokens: None,
            load_time: None,
        },
        estimated: false,
        latency: Duration::from_millis(2000),
        first_token: Some(Duration::from_millis(250)),
        energy: None,
        ending: InferenceEnd::Complete(FinishReason::Stop),
    }
}

/// A store in an empty database.
pub(crate) struct TestStore {
    pub(crate) store: Arc<dyn TelemetryStore>,
    connected: Connected,
}

enum Connected {
    Sqlite(Database),
    Postgres { database: PostgresDatabase, _created: TestDatabase },
}

pub(crate) type NewStore = fn() -> TestStore;

pub(crate) fn sqlite() -> TestStore {
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    let store = Arc::new(SqliteTelemetryStore::new(database.clone()));
    TestStore { store, connected: Connected::Sqlite(database) }
}

pub(crate) fn postgres() -> TestStore {
    let created = PostgresServer::shared().create_database();
    let database = connect(&created);
    let store = Arc::new(PostgresTelemetryStore::new(database.clone()));
    TestStore { store, connected: Connected::Postgres { database, _created: created } }
}

/// A process of its own, as far as the server knows.
pub(crate) fn connect(created: &TestDatabase) -> PostgresDatabase {
    let options = created.url().parse().expect("a URL");
    PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened")
}

impl Deref for TestStore {
    type Target = dyn TelemetryStore;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

impl TestStore {
    pub(crate) fn with(new: NewStore, records: &[Inference]) -> Self {
        let telemetry = new();
        telemetry.record_batch(records, &Prices::standard()).expect("recorded");
        telemetry
    }

    pub(crate) fn export(&self, since: Option<UtcDay>) -> CallExport {
        CallExport::new(Arc::clone(&self.store), since)
    }

    pub(crate) fn rows(&self) -> Vec<CallRecord> {
        rows(&self.store)
    }

    /// The savings, with the days of `zone`.
    fn savings(&self, now: SystemTime, zone: &Zone) -> Savings {
        savings_at(self.store.as_ref(), now, zone)
    }

    pub(crate) fn run_sql(&self, sqlite: &str, postgres: &str) {
        match &self.connected {
            Connected::Sqlite(database) => database.writer().execute_batch(sqlite).expect("run"),
            Connected::Postgres { database, .. } => {
                database.write(|transaction| transaction.run_script(postgres)).expect("run");
            }
        }
    }

    fn series(&self) -> i64 {
        let sql = "SELECT count(*) FROM telemetry_series";
        let counted = match &self.connected {
            Connected::Sqlite(database) => {
                database.read(|connection| connection.query_row(sql, [], |row| row.get(0)))
            }
            Connected::Postgres { database, .. } => {
                database.read(|transaction| Ok(transaction.query_one(sql, &[])?.try_get(0)?))
            }
        };
        counted.expect("counted")
    }
}

pub(crate) fn rows(store: &Arc<dyn TelemetryStore>) -> Vec<CallRecord> {
    CallExport::new(Arc::clone(store), None).collect::<Result<_, _>>().expect("readable")
}

pub(crate) fn savings_at(store: &dyn TelemetryStore, now: SystemTime, zone: &Zone) -> Savings {
    let served = store.served(UtcDay::of(now)).expect("readable");
    savings(served, &Prices::standard(), Moment::of(now), zone)
}

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_row_has_all_values_of_a_call,
    a_failed_call_counts_as_a_failure_with_its_energy_and_in_nothing_else,
    a_cancelled_call_has_used_tokens_but_has_no_latency,
    a_call_to_the_cloud_costs_what_its_model_costs,
    a_broken_cloud_stream_costs_what_was_sent,
    the_speed_of_a_model_is_calculated_from_completed_calls_only,
    a_single_call_is_its_own_percentile,
    reports_rank_by_calls,
    days_without_calls_are_days_too,
    an_engine_with_wrong_counts_does_not_falsify_the_sums,
    clearing_leaves_nothing,
    a_day_that_is_deleted_takes_its_series_along,
    the_last_complete_call_excludes_sources_and_runs,
    the_last_calls_are_the_last_however_batches_overlap,
);

fn a_row_has_all_values_of_a_call(new: NewStore) {
    let agents_turn = Inference {
        key: Some("ana".into()),
        end_user: Some("u-1".into()),
        agent: Some("react".to_owned()),
        engine: "cloud".to_owned(),
        model: "gpt-5.2-2025-12-11".to_owned(),
        energy: Some(Energy::from_microjoules(12_500_000)),
        details: CallDetails {
            request_id: Some("req-1".into()),
            route: Some("/v1/messages"),
            queued: Some(Duration::from_millis(3)),
            host: Some("http://10.0.0.7:8000".into()),
        },
        ..inference()
    };
    let row = TestStore::with(new, &[agents_turn]).recent(5).expect("readable").remove(0);
    insta::assert_json_snapshot!(row, @r#"
    {
      "started": "2026-11-15T12:00:00.000000Z",
      "run": "run-1",
      "source": "server",
      "engine": "cloud",
      "model": "gpt-5.2-2025-12-11",
      "agent": "react",
      "key": "ana",
      "end_user": "u-1",
      "streamed": true,
      "prompt_tokens": 100,
      "completion_tokens": 50,
      "cached_tokens": 20,
      "estimated": false,
      "latency_seconds": 2.0,
      "first_token_seconds": 0.25,
      "tokens_per_second": 25.0,
      "outcome": "complete",
      "finish_reason": "stop",
      "error": null,
      "cost": 0.000875,
      "energy_joules": 12.5,
      "request_id": "req-1",
      "route": "/v1/messages",
      "host": "http://10.0.0.7:8000",
      "queue_seconds": 0.003
    }
    "#);
}

fn a_failed_call_counts_as_a_failure_with_its_energy_and_in_nothing_else(new: NewStore) {
    let energy = Some(Energy::from_microjoules(7));
    let failed =
        Inference { ending: InferenceEnd::Failed("out of memory".to_owned()), energy, ..inference() };
    let telemetry = TestStore::with(new, &[failed]);
    let figures = telemetry.overview(None).expect("readable").figures;
    assert_eq!(figures, CallFigures { calls: 1, failures: 1, energy, measured: 1, ..CallFigures::default() });
    let row = telemetry.recent(1).expect("readable").remove(0);
    assert_eq!((row.prompt_tokens, row.error.as_deref()), (100, Some("out of memory")));
}

fn a_cancelled_call_has_used_tokens_but_has_no_latency(new: NewStore) {
    let figures = TestStore::with(new, &[Inference { ending: InferenceEnd::Cancelled, ..inference() }])
        .overview(None)
        .expect("readable")
        .figures;
    let expected = CallFigures {
        calls: 1,
        cancelled: 1,
        prompt_tokens: 100,
        completion_tokens: 50,
        cached_tokens: 20,
        ..CallFigures::default()
    };
    assert_eq!(figures, expected);
}

fn a_call_to_the_cloud_costs_what_its_model_costs(new: NewStore) {
    let to = |model: &str, ending: InferenceEnd| Inference {
        engine: "cloud".to_owned(),
        model: model.to_owned(),
        usage: Usage {
            prompt_tokens: 1,
            completion_tokens: 1,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        },
        ending,
        ..inference()
    };
    let done = InferenceEnd::Complete(FinishReason::Stop);
    let telemetry = TestStore::with(
        new,
        &[
            to("claude-opus-4-6", done.clone()),
            to("gpt-5.2", InferenceEnd::Cancelled),
            Inference { first_token: None, ..to("gpt-5.2", InferenceEnd::Failed("overloaded".to_owned())) },
            to("gpt-7", done),
            inference(),
        ],
    );
    let figures = telemetry.overview(None).expect("readable").figures;
    assert_eq!((figures.cost.pico(), figures.unpriced), (30_000_000 + 15_750_000, 1));
    let costs: Vec<Option<u128>> =
        telemetry.rows().iter().map(|row| row.cost.map(|cost| cost.pico())).collect();
    assert_eq!(costs, [Some(30_000_000), Some(15_750_000), None, None, None]);
}

fn a_broken_cloud_stream_costs_what_was_sent(new: NewStore) {
    let broken = Inference {
        engine: "cloud".to_owned(),
        model: "gpt-5.2".to_owned(),
        usage: Usage {
            prompt_tokens: 1,
            completion_tokens: 1,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        },
        ending: InferenceEnd::Failed("it hung up".to_owned()),
        ..inference()
    };
    let telemetry = TestStore::with(new, &[broken]);
    let figures = telemetry.overview(None).expect("readable").figures;
    assert_eq!((figures.calls, figures.failures, figures.latency), (1, 1, None));
    assert_eq!((figures.prompt_tokens, figures.completion_tokens), (1, 1));
    assert_eq!(figures.cost.pico(), 15_750_000);
    let savings = telemetry.savings(noon(), &Zone::UTC);
    assert_eq!((savings.local_cost.pico(), savings.total_calls), (15_750_000, 0));
}

fn the_speed_of_a_model_is_calculated_from_completed_calls_only(new: NewStore) {
    let (done, started) = (InferenceEnd::Complete(FinishReason::Stop), noon());
    let wrote = |tokens, seconds, ending: &InferenceEnd| Inference {
        usage: Usage {
            prompt_tokens: 9,
            completion_tokens: tokens,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        },
        latency: Duration::from_secs(seconds),
        ending: ending.clone(),
        started,
        ..inference()
    };
    let telemetry = TestStore::with(
        new,
        &[
            wrote(100, 2, &done),
            wrote(20, 4, &done),
            wrote(1_000, 3, &InferenceEnd::Cancelled),
            Inference { engine: "cloud".to_owned(), ..wrote(50, 1, &InferenceEnd::Failed("no".to_owned())) },
        ],
    );
    let speeds = telemetry.speeds(UtcDay::of(noon()), 10).expect("readable");
    let Inference { engine, model, .. } = inference();
    assert_eq!(speeds, [ModelSpeed { engine, model, tokens_per_second: 20.0 }]);
    assert_eq!(telemetry.speeds(UtcDay::of(noon()).next(), 10).expect("readable"), []);
}

fn a_single_call_is_its_own_percentile(new: NewStore) {
    let latency = Duration::from_micros(1_234_567);
    let figures = TestStore::with(new, &[Inference { latency, ..inference() }])
        .overview(None)
        .expect("readable")
        .figures;
    assert_eq!(figures.latency, Some(LatencySummary { mean: latency, p50: latency, p95: latency }));
}

fn reports_rank_by_calls(new: NewStore) {
    let on = |engine: &str, model: &str, agent: Option<&str>| Inference {
        engine: engine.to_owned(),
        model: model.to_owned(),
        agent: agent.map(str::to_owned),
        key: agent.map(Into::into),
        ..inference()
    };
    let telemetry = TestStore::with(
        new,
        &[
            on("vllm", "llama", None),
            on("ollama", "qwen", Some("react")),
            on("ollama", "llama", None),
            on("ollama", "qwen", None),
        ],
    );
    let models = telemetry.top_models(None, 2).expect("readable");
    let models: Vec<_> = models.into_iter().map(|of| (of.model, of.engine, of.figures.calls)).collect();
    assert_eq!(models, [("qwen".into(), "ollama".into(), 2), ("llama".into(), "ollama".into(), 1)]);
    let engines = telemetry.engines(None).expect("readable");
    let engines: Vec<_> = engines.into_iter().map(|of| (of.engine, of.figures.calls)).collect();
    assert_eq!(engines, [("ollama".into(), 3), ("vllm".into(), 1)]);
    let agents = telemetry.agents(None).expect("readable");
    let agents: Vec<_> = agents.into_iter().map(|of| (of.agent, of.figures.calls)).collect();
    assert_eq!(agents, [(None, 3), (Some("react".into()), 1)]);
    let keys = telemetry.keys(None).expect("readable");
    let keys: Vec<_> = keys.into_iter().map(|of| (of.key, of.last_day, of.figures.calls)).collect();
    let day = Some(UtcDay::of(noon()));
    assert_eq!(keys, [(None, day, 3), (Some("react".into()), day, 1)]);
}

fn days_without_calls_are_days_too(new: NewStore) {
    let telemetry = TestStore::with(
        new,
        &[
            inference(),
            Inference { started: noon() - 2 * DAY, ..inference() },
            Inference { started: noon() - 9 * DAY, ..inference() },
        ],
    );
    let days: Vec<(String, u64)> = telemetry
        .per_day(4, noon())
        .expect("readable")
        .into_iter()
        .map(|day| (day.day.to_string(), day.figures.calls))
        .collect();
    let expected = [("2026-11-12", 0), ("2026-11-13", 1), ("2026-11-14", 0), ("2026-11-15", 1)];
    assert_eq!(days, expected.map(|(day, calls)| (day.to_owned(), calls)));
    let since = Some(UtcDay::of(noon()).minus(2));
    assert_eq!(telemetry.overview(since).expect("readable").figures.calls, 2);
}

fn an_engine_with_wrong_counts_does_not_falsify_the_sums(new: NewStore) {
    let absurd = Inference {
        engine: "cloud".to_owned(),
        model: "dear".to_owned(),
        usage: Usage {
            prompt_tokens: u64::MAX,
            completion_tokens: u64::MAX,
            cached_tokens: Some(u64::MAX),
            reasoning_tokens: None,
            load_time: None,
        },
        latency: Duration::MAX,
        first_token: Some(Duration::MAX),
        energy: Some(Energy::from_microjoules(u64::MAX)),
        started: UNIX_EPOCH + Duration::from_secs(1 << 50),
        ..inference()
    };
    let mut prices = Prices::standard();
    prices.set("dear", Price { input: u64::MAX, output: u64::MAX });
    let telemetry = new();
    for _ in 0..3 {
        telemetry.record_batch(&[absurd.clone(), absurd.clone()], &prices).expect("recorded");
    }
    let figures = telemetry.overview(None).expect("readable").figures;
    assert_eq!((figures.calls, figures.prompt_tokens), (6, 6_000_000_000));
    assert_eq!(figures.cost.pico(), i64::MAX as u128);
    assert_eq!(telemetry.rows().len(), 6);
}

fn clearing_leaves_nothing(new: NewStore) {
    let telemetry = TestStore::with(new, &[inference(), inference()]);
    assert_eq!(telemetry.clear().expect("cleared"), 2);
    assert_eq!(telemetry.rows(), []);
    let overview = telemetry.overview(None).expect("readable");
    assert_eq!(overview, CallOverview { recorded_since: None, figures: CallFigures::default() });
    assert_eq!(telemetry.series(), 0);
}

fn a_day_that_is_deleted_takes_its_series_along(new: NewStore) {
    let old = Inference { started: noon() - 9 * DAY, model: "old".to_owned(), ..inference() };
    let telemetry = TestStore::with(new, &[old.clone(), old, inference()]);
    let today = UtcDay::of(noon());
    assert_eq!(telemetry.delete_oldest(today).expect("deleted"), DayDeletion::Deleted(2));
    assert_eq!(telemetry.delete_oldest(today).expect("looked"), DayDeletion::NothingOld);
    assert_eq!((telemetry.series(), telemetry.rows().len()), (1, 1));
}

fn the_last_complete_call_excludes_sources_and_runs(new: NewStore) {
    let began = |second: u64, run: &str, source| Inference {
        started: noon() + Duration::from_secs(second),
        run: run.into(),
        source,
        ..inference()
    };
    let telemetry = TestStore::with(
        new,
        &[
            began(1, "first", RequestSource::Ask),
            Inference { ending: InferenceEnd::Cancelled, ..began(2, "cancelled", RequestSource::Ask) },
            began(3, "job", RequestSource::Scheduler),
            began(4, "this", RequestSource::Ask),
        ],
    );
    let last = |since: u64, sources: &[RequestSource], runs: &[&str]| {
        let since = Moment::of(noon() + Duration::from_secs(since));
        telemetry.last_complete(since, sources, runs).expect("readable").map(|call| call.run)
    };
    assert_eq!(last(0, &[], &[]).as_deref(), Some("this"));
    assert_eq!(last(0, &[], &["", "this"]).as_deref(), Some("job"));
    assert_eq!(
        last(0, &[RequestSource::Scheduler, RequestSource::Bench], &["this"]).as_deref(),
        Some("first")
    );
    assert_eq!(last(2, &[RequestSource::Scheduler], &["this"]), None);
}

fn the_last_calls_are_the_last_however_batches_overlap(new: NewStore) {
    let telemetry = new();
    let config = ProptestConfig::with_cases(48);
    proptest!(config, |(
        batches in prop::collection::vec(prop::collection::vec((0u64..200_000, 0u8..4), 0..20), 1..8),
        most in 0usize..40,
        run in 0u8..5,
        ago in 0u64..200_000,
    )| {
        telemetry.clear().expect("cleared");
        let began = |ago: u64| noon() - Duration::from_secs(ago);
        for batch in &batches {
            let call = |(ago, run): &(u64, u8)| Inference {
                started: began(*ago),
                run: Arc::from(format!("\"{run}\"")),
                ..inference()
            };
            let calls: Vec<Inference> = batch.iter().map(call).collect();
            telemetry.record_batch(&calls, &Prices::standard()).expect("recorded");
        }
        let mut all: Vec<(Moment, u8)> =
            batches.iter().flatten().map(|(ago, run)| (Moment::of(began(*ago)), *run)).collect();
        all.sort_by_key(|(started, _)| std::cmp::Reverse(*started));

        let recent: Vec<Moment> =
            telemetry.recent(most).expect("readable").into_iter().map(|row| row.started).collect();
        let expected: Vec<Moment> = all.iter().take(most).map(|(started, _)| *started).collect();
        prop_assert_eq!(recent, expected);

        let (since, wanted) = (Moment::of(began(ago)), format!("\"{run}\""));
        let found = telemetry.find_run(&wanted, since).expect("readable");
        let expected = all.iter().find(|(started, its)| *its == run && *started >= since);
        prop_assert_eq!(found.map(|row| row.started), expected.map(|(started, _)| *started));
    });
}
