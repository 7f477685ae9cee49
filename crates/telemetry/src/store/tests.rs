//! What is recorded is what reports say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hob_core::{FinishReason, Usage, Zone};
use hob_db::Database;
use proptest::prelude::*;

use super::*;
use crate::call_record::{CallOutcome, CallRecord};
use crate::export::CallExport;
use crate::figures::CallFigures;
use crate::inference::{Energy, Inference, InferenceEnd};
use crate::savings::{Price, Prices, Savings, TimeSlice, savings};
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

fn savings_at(store: &SqliteTelemetryStore, now: SystemTime, zone: &Zone) -> Savings {
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

/// Deletes what is older than so many days, 0 for nothing, and says how many calls that were.
fn prune(telemetry: &SqliteTelemetryStore, days: u32) -> u64 {
    let oldest_kept = UtcDay::of(noon()).minus(days);
    let days_gone = std::iter::from_fn(|| telemetry.delete_oldest(oldest_kept).expect("pruned"));
    if days == 0 { 0 } else { days_gone.sum() }
}

/// What is known together; `None` when nothing is.
fn sum_of(amounts: impl IntoIterator<Item = Option<Energy>>) -> Option<Energy> {
    let known = amounts.into_iter().flatten().map(Energy::microjoules);
    known.reduce(|sum, next| sum + next).map(Energy::from_microjoules)
}

/// The figures of some rows, counted one by one; durations apart, sorted.
fn recount<'a>(rows: impl Iterator<Item = &'a CallRecord>) -> (CallFigures, Vec<Duration>, Vec<Duration>) {
    let (mut figures, mut latencies, mut first_tokens) = (CallFigures::default(), Vec::new(), Vec::new());
    for row in rows {
        figures.calls += 1;
        figures.energy = sum_of([figures.energy, row.energy]);
        figures.measured += u64::from(row.energy.is_some());
        if row.outcome == CallOutcome::Failed {
            figures.failures += 1;
            if row.engine != "cloud" || row.first_token.is_none() {
                continue;
            }
        }
        figures.cancelled += u64::from(row.outcome == CallOutcome::Cancelled);
        figures.estimated += u64::from(row.estimated);
        figures.prompt_tokens += row.prompt_tokens;
        figures.completion_tokens += row.completion_tokens;
        figures.cached_tokens += row.cached_tokens.unwrap_or_default();
        figures.cost += row.cost.unwrap_or_default();
        figures.unpriced += u64::from(row.engine == "cloud" && row.cost.is_none());
        if row.outcome == CallOutcome::Complete {
            latencies.push(row.latency);
            first_tokens.extend(row.first_token);
        }
    }
    latencies.sort_unstable();
    first_tokens.sort_unstable();
    (figures, latencies, first_tokens)
}

fn assert_close(told: Duration, exact: Duration) {
    let (told, exact) = (told.as_secs_f64(), exact.as_secs_f64());
    assert!((told - exact).abs() <= 0.025 * exact + 1e-9, "{told} for {exact}");
}

fn assert_timing(timing: Option<LatencySummary>, exact: &[Duration]) {
    let Some(timing) = timing else { return assert_eq!(exact, []) };
    let mean = exact.iter().sum::<Duration>() / exact.len() as u32;
    assert!(timing.mean.abs_diff(mean) <= Duration::from_micros(1), "{timing:?} for {mean:?}");
    for (told, percent) in [(timing.p50, 50), (timing.p95, 95)] {
        assert_close(told, exact[(percent * exact.len()).div_ceil(100) - 1]);
    }
}

fn assert_figures<'a>(told: &CallFigures, rows: impl Iterator<Item = &'a CallRecord>) {
    let (exact, latencies, first_tokens) = recount(rows);
    assert_timing(told.latency, &latencies);
    assert_timing(told.first_token, &first_tokens);
    assert_eq!(CallFigures { latency: None, first_token: None, ..told.clone() }, exact);
}

/// That every report says what a count over the rows says.
fn assert_reports_match_rows(telemetry: &SqliteTelemetryStore) {
    let rows = rows(telemetry);
    let overview = telemetry.overview(None).expect("readable");
    assert_figures(&overview.figures, rows.iter());
    assert_eq!(overview.recorded_since, rows.first().map(|row| row.started));
    let mut seen = BTreeMap::from([("models", 0), ("engines", 0), ("agents", 0), ("days", 0)]);
    let mut tally = |report: &'static str, figures: &CallFigures| {
        *seen.entry(report).or_default() += figures.calls;
    };
    for model in telemetry.top_models(None, usize::MAX).expect("readable") {
        let its = |row: &&CallRecord| row.model == model.model && row.engine == model.engine;
        assert_figures(&model.figures, rows.iter().filter(its));
        tally("models", &model.figures);
    }
    for engine in telemetry.engines(None).expect("readable") {
        assert_figures(&engine.figures, rows.iter().filter(|row| row.engine == engine.engine));
        tally("engines", &engine.figures);
    }
    for agent in telemetry.agents(None).expect("readable") {
        assert_figures(&agent.figures, rows.iter().filter(|row| row.agent == agent.agent));
        tally("agents", &agent.figures);
    }
    for day in telemetry.per_day(40, noon()).expect("readable") {
        assert_figures(&day.figures, rows.iter().filter(|row| row.started.day() == day.day));
        tally("days", &day.figures);
    }
    assert!(seen.values().all(|calls| *calls == rows.len() as u64), "{seen:?} of {}", rows.len());
}

prop_compose! {
    fn any_inference()(
        (ago, source, engine, model) in (
            0u64..30 * 86_400,
            prop::sample::select(RequestSource::ALL.to_vec()),
            prop::sample::select(vec!["ollama", "vllm", "cloud"]),
            prop::sample::select(vec!["qwen3:8b", "gpt-5.2", "claude-opus-4-6", "unheard-of"]),
        ),
        agent in prop::option::of(prop::sample::select(vec!["simple", "react"])),
        (streamed, estimated) in any::<(bool, bool)>(),
        usage in (0u64..200_000, 0u64..8_000, prop::option::of(0u64..1000)),
        // Powers, so that microseconds are as likely as minutes.
        latency in (0.0..28.0f64).prop_map(|power| Duration::from_micros(power.exp2() as u64)),
        first_token in prop::option::of(1u32..20),
        energy in prop::option::of(0u64..10_000_000_000),
        ending in prop_oneof![
            3 => Just(InferenceEnd::Complete(FinishReason::Stop)),
            1 => Just(InferenceEnd::Cancelled),
            1 => Just(InferenceEnd::Failed("no".to_owned())),
        ],
    ) -> Inference {
        Inference {
            started: noon() - Duration::from_secs(ago),
            source,
            engine: engine.to_owned(),
            model: model.to_owned(),
            agent: agent.map(str::to_owned),
            streamed,
            estimated,
            usage: Usage { prompt_tokens: usage.0, completion_tokens: usage.1, cached_tokens: usage.2, reasoning_tokens: None, load_time: None },
            latency,
            first_token: first_token.map(|part| latency / part),
            energy: energy.map(Energy::from_microjoules),
            ending,
            ..inference()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_report_matches_the_rows(
        batches in prop::collection::vec(prop::collection::vec(any_inference(), 0..30), 1..5),
        retention in 1u32..32,
    ) {
        let telemetry = telemetry();
        for batch in &batches {
            telemetry.record_batch(batch, &Prices::standard()).expect("recorded");
        }
        assert_reports_match_rows(&telemetry);
        let before = rows(&telemetry);
        let oldest_kept = UtcDay::of(noon()).minus(retention);
        let deleted = prune(&telemetry, retention);
        let kept: Vec<CallRecord> = before.iter().filter(|row| row.started.day() >= oldest_kept).cloned().collect();
        prop_assert_eq!(deleted as usize, before.len() - kept.len());
        prop_assert_eq!(rows(&telemetry), kept);
        assert_reports_match_rows(&telemetry);
    }

    #[test]
    fn savings_match_the_rows(
        batch in prop::collection::vec(any_inference(), 0..60),
        retention in 0u32..40,
    ) {
        let telemetry = with(&batch);
        prune(&telemetry, retention);
        let rows = rows(&telemetry);
        let local = |row: &&CallRecord| {
            row.engine != "cloud" && row.source != "bench" && row.outcome != CallOutcome::Failed
        };
        let savings = savings_at(&telemetry, noon(), &Zone::UTC);
        let prompt: u64 = rows.iter().filter(local).map(|row| row.prompt_tokens).sum();
        let completion: u64 = rows.iter().filter(local).map(|row| row.completion_tokens).sum();
        prop_assert_eq!(savings.total_calls as usize, rows.iter().filter(local).count());
        prop_assert_eq!((savings.total_prompt_tokens, savings.total_completion_tokens), (prompt, completion));
        prop_assert_eq!(savings.local_cost, rows.iter().filter_map(|row| row.cost).sum());
        let measured = savings.energy.map(|measured| measured.energy);
        prop_assert_eq!(measured, sum_of(rows.iter().map(|row| row.energy)));
        let gpt = &savings.per_provider[0];
        // Exactly, and not call by call with a rounding each: 1.75 and 14 millionths of a dollar per token.
        prop_assert_eq!(
            gpt.total_cost.pico(),
            u128::from(prompt) * 1_750_000 + u128::from(completion) * 14_000_000
        );
        prop_assert_eq!(savings.per_model.iter().map(|model| model.calls).sum::<u64>(), savings.total_calls);
        prop_assert_eq!(savings.per_model.iter().map(|model| model.total_tokens).sum::<u64>(), savings.total_tokens);
        prop_assert_eq!(savings.recent.len(), rows.len().min(10));
        let charted = |spans: &[TimeSlice]| {
            spans.iter().map(|span| (span.calls, span.prompt_tokens + span.completion_tokens)).fold(
                (0, 0), |sum, span| (sum.0 + span.0, sum.1 + span.1)
            )
        };
        let of_rows = |since: UtcDay| {
            let those = rows.iter().filter(local).filter(|row| row.started.day() >= since);
            those.map(|row| row.prompt_tokens + row.completion_tokens).fold(
                (0, 0), |sum, tokens| (sum.0 + 1, sum.1 + tokens)
            )
        };
        let today = UtcDay::of(noon());
        prop_assert_eq!(charted(&savings.over_time.days), of_rows(today.minus(29)));
        prop_assert_eq!(charted(&savings.over_time.today), of_rows(today));
        let latencies = recount(rows.iter().filter(local).filter(|row| row.started.day() >= today.minus(29))).1;
        assert_timing(savings.latency, &latencies);
    }
}
