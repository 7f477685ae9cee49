//! What is recorded is what reports say.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hob_core::{FinishReason, Usage, Zone};
use hob_db::Database;

use super::*;
use crate::call_record::CallRecord;
use crate::export::CallExport;
use crate::figures::CallFigures;
use crate::inference::{Energy, Inference, InferenceEnd};
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

pub(crate) fn telemetry() -> SqliteTelemetryStore {
    SqliteTelemetryStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"))
}

pub(crate) fn export(store: &SqliteTelemetryStore, since: Option<UtcDay>) -> CallExport {
    CallExport::new(Arc::new(store.clone()), since)
}

pub(crate) fn savings_at(store: &SqliteTelemetryStore, now: SystemTime, zone: &Zone) -> Savings {
    let served = store.served(UtcDay::of(now)).expect("readable");
    savings(served, &Prices::standard(), Moment::of(now), zone)
}

pub(crate) fn with(records: &[Inference]) -> SqliteTelemetryStore {
    let telemetry = telemetry();
    telemetry.record_batch(records, &Prices::standard()).expect("recorded");
    telemetry
}

pub(crate) fn rows(telemetry: &SqliteTelemetryStore) -> Vec<CallRecord> {
    export(telemetry, None).collect::<Result<_, _>>().expect("readable")
}

#[test]
fn a_row_has_all_values_of_a_call() {
    let agents_turn = Inference {
        key: Some("ana".into()),
        end_user: Some("u-1".into()),
        agent: Some("react".to_owned()),
        engine: "cloud".to_owned(),
        model: "gpt-5.2-2025-12-11".to_owned(),
        energy: Some(Energy::from_microjoules(12_500_000)),
        ..inference()
    };
    let row = with(&[agents_turn]).recent(5).expect("readable").remove(0);
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
      "energy_joules": 12.5
    }
    "#);
}

#[test]
fn a_failed_call_counts_as_a_failure_with_its_energy_and_in_nothing_else() {
    let energy = Some(Energy::from_microjoules(7));
    let failed =
        Inference { ending: InferenceEnd::Failed("out of memory".to_owned()), energy, ..inference() };
    let telemetry = with(&[failed]);
    let figures = telemetry.overview(None).expect("readable").figures;
    assert_eq!(figures, CallFigures { calls: 1, failures: 1, energy, measured: 1, ..CallFigures::default() });
    let row = telemetry.recent(1).expect("readable").remove(0);
    assert_eq!((row.prompt_tokens, row.error.as_deref()), (100, Some("out of memory")));
}

#[test]
fn a_cancelled_call_has_used_tokens_but_has_no_latency() {
    let figures = with(&[Inference { ending: InferenceEnd::Cancelled, ..inference() }])
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

#[test]
fn a_call_to_the_cloud_costs_what_its_model_costs() {
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
    let telemetry = with(&[
        to("claude-opus-4-6", done.clone()),
        to("gpt-5.2", InferenceEnd::Cancelled),
        Inference { first_token: None, ..to("gpt-5.2", InferenceEnd::Failed("overloaded".to_owned())) },
        to("gpt-7", done),
        inference(),
    ]);
    let figures = telemetry.overview(None).expect("readable").figures;
    assert_eq!((figures.cost.pico(), figures.unpriced), (30_000_000 + 15_750_000, 1));
    let costs: Vec<Option<u128>> =
        rows(&telemetry).iter().map(|row| row.cost.map(|cost| cost.pico())).collect();
    assert_eq!(costs, [Some(30_000_000), Some(15_750_000), None, None, None]);
}

#[test]
fn a_broken_cloud_stream_costs_what_was_sent() {
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
    let telemetry = with(&[broken]);
    let figures = telemetry.overview(None).expect("readable").figures;
    assert_eq!((figures.calls, figures.failures, figures.latency), (1, 1, None));
    assert_eq!((figures.prompt_tokens, figures.completion_tokens), (1, 1));
    assert_eq!(figures.cost.pico(), 15_750_000);
    let savings = savings_at(&telemetry, noon(), &Zone::UTC);
    assert_eq!((savings.local_cost.pico(), savings.total_calls), (15_750_000, 0));
}

#[test]
fn the_speed_of_a_model_is_calculated_from_completed_calls_only() {
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
    let telemetry = with(&[
        wrote(100, 2, &done),
        wrote(20, 4, &done),
        wrote(1_000, 3, &InferenceEnd::Cancelled),
        Inference { engine: "cloud".to_owned(), ..wrote(50, 1, &InferenceEnd::Failed("no".to_owned())) },
    ]);
    let speeds = telemetry.speeds(UtcDay::of(noon()), 10).expect("readable");
    let Inference { engine, model, .. } = inference();
    assert_eq!(speeds, [ModelSpeed { engine, model, tokens_per_second: 20.0 }]);
    assert_eq!(telemetry.speeds(UtcDay::of(noon()).next(), 10).expect("readable"), []);
}

#[test]
fn a_single_call_is_its_own_percentile() {
    let latency = Duration::from_micros(1_234_567);
    let figures = with(&[Inference { latency, ..inference() }]).overview(None).expect("readable").figures;
    assert_eq!(figures.latency, Some(LatencySummary { mean: latency, p50: latency, p95: latency }));
}

#[test]
fn reports_rank_by_calls() {
    let on = |engine: &str, model: &str, agent: Option<&str>| Inference {
        engine: engine.to_owned(),
        model: model.to_owned(),
        agent: agent.map(str::to_owned),
        ..inference()
    };
    let telemetry = with(&[
        on("vllm", "llama", None),
        on("ollama", "qwen", Some("react")),
        on("ollama", "llama", None),
        on("ollama", "qwen", None),
    ]);
    let models: Vec<(String, String, u64)> = telemetry
        .top_models(None, 2)
        .expect("readable")
        .into_iter()
        .map(|model| (model.model, model.engine, model.figures.calls))
        .collect();
    assert_eq!(models, [("qwen".into(), "ollama".into(), 2), ("llama".into(), "ollama".into(), 1)]);
    let engines: Vec<(String, u64)> = telemetry
        .engines(None)
        .expect("readable")
        .into_iter()
        .map(|engine| (engine.engine, engine.figures.calls))
        .collect();
    assert_eq!(engines, [("ollama".into(), 3), ("vllm".into(), 1)]);
    let agents: Vec<(Option<String>, u64)> = telemetry
        .agents(None)
        .expect("readable")
        .into_iter()
        .map(|agent| (agent.agent, agent.figures.calls))
        .collect();
    assert_eq!(agents, [(None, 3), (Some("react".into()), 1)]);
}

#[test]
fn days_without_calls_are_days_too() {
    let telemetry = with(&[
        inference(),
        Inference { started: noon() - 2 * DAY, ..inference() },
        Inference { started: noon() - 9 * DAY, ..inference() },
    ]);
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

#[test]
fn an_engine_with_wrong_counts_does_not_falsify_the_sums() {
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
    let telemetry = telemetry();
    for _ in 0..3 {
        telemetry.record_batch(&[absurd.clone(), absurd.clone()], &prices).expect("recorded");
    }
    let figures = telemetry.overview(None).expect("readable").figures;
    assert_eq!((figures.calls, figures.prompt_tokens), (6, 6_000_000_000));
    assert_eq!(figures.cost.pico(), i64::MAX as u128);
    assert_eq!(rows(&telemetry).len(), 6);
}

#[test]
fn clearing_leaves_nothing() {
    let telemetry = with(&[inference(), inference()]);
    assert_eq!(telemetry.clear().expect("cleared"), 2);
    assert_eq!(rows(&telemetry), []);
    let overview = telemetry.overview(None).expect("readable");
    assert_eq!(overview, CallOverview { recorded_since: None, figures: CallFigures::default() });
    let series: i64 = telemetry
        .database
        .read(|connection| {
            connection.query_row("SELECT count(*) FROM telemetry_series", [], |row| row.get(0))
        })
        .expect("readable");
    assert_eq!(series, 0);
}
