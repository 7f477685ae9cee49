//! Reports against a count over the recorded rows, for generated calls, in both databases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hob_core::{FinishReason, Usage, Zone};
use proptest::prelude::*;

use super::tests::{NewStore, inference, noon, postgres, rows, savings_at, sqlite};
use super::*;
use crate::call_record::{CallOutcome, CallRecord};
use crate::figures::CallFigures;
use crate::inference::{Energy, Inference, InferenceEnd};
use crate::savings::{Prices, TimeSlice};
use crate::timings::LatencySummary;

hob_testkit::on_both_databases!(sqlite, postgres: every_report_matches_the_rows, savings_match_the_rows);

/// Deletes what is older than so many days, 0 for nothing, and says how many calls that were.
fn prune(telemetry: &dyn TelemetryStore, days: u32) -> u64 {
    let oldest_kept = UtcDay::of(noon()).minus(days);
    let days_gone = std::iter::from_fn(|| match telemetry.delete_oldest(oldest_kept).expect("pruned") {
        DayDeletion::Deleted(calls) => Some(calls),
        DayDeletion::NothingOld => None,
        DayDeletion::Busy => panic!("only this test uses the database"),
    });
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
    let Some(timing) = timing else { return assert_eq!(exact, [Duration::ZERO; 0]) };
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
pub(in crate::store) fn assert_reports_match_rows(telemetry: &Arc<dyn TelemetryStore>) {
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

fn every_report_matches_the_rows(new: NewStore) {
    let telemetry = new();
    proptest!(ProptestConfig::with_cases(48), |(
        batches in prop::collection::vec(prop::collection::vec(any_inference(), 0..30), 1..5),
        retention in 1u32..32,
    )| {
        telemetry.clear().expect("cleared");
        for batch in &batches {
            telemetry.record_batch(batch, &Prices::standard()).expect("recorded");
        }
        assert_reports_match_rows(&telemetry.store);
        let before = telemetry.rows();
        let oldest_kept = UtcDay::of(noon()).minus(retention);
        let deleted = prune(&*telemetry, retention);
        let kept: Vec<CallRecord> = before.iter().filter(|row| row.started.day() >= oldest_kept).cloned().collect();
        prop_assert_eq!(deleted as usize, before.len() - kept.len());
        prop_assert_eq!(telemetry.rows(), kept);
        assert_reports_match_rows(&telemetry.store);
    });
}

fn savings_match_the_rows(new: NewStore) {
    let telemetry = new();
    proptest!(ProptestConfig::with_cases(48), |(
        batch in prop::collection::vec(any_inference(), 0..60),
        retention in 0u32..40,
    )| {
        telemetry.clear().expect("cleared");
        telemetry.record_batch(&batch, &Prices::standard()).expect("recorded");
        prune(&*telemetry, retention);
        let rows = telemetry.rows();
        let local = |row: &&CallRecord| {
            row.engine != "cloud" && row.source != "bench" && row.outcome != CallOutcome::Failed
        };
        let savings = savings_at(&*telemetry, noon(), &Zone::UTC);
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
    });
}

/// All that a store reports on some days.
fn reports(store: &Arc<dyn TelemetryStore>, since: UtcDay) -> impl PartialEq + std::fmt::Debug {
    (
        (store.overview(None).expect("readable"), store.overview(Some(since)).expect("readable")),
        store.top_models(Some(since), 5).expect("readable"),
        store.engines(None).expect("readable"),
        store.agents(Some(since)).expect("readable"),
        store.per_day(31, noon()).expect("readable"),
        store.speeds(since, 3).expect("readable"),
        store.served(UtcDay::of(noon())).expect("readable"),
        (store.recent(7).expect("readable"), rows(store)),
    )
}

#[test]
fn both_databases_report_the_same() {
    let (one, other) = (sqlite(), postgres());
    proptest!(ProptestConfig::with_cases(24), |(
        batches in prop::collection::vec(prop::collection::vec(any_inference(), 0..30), 1..4),
        ago in 0u32..32,
    )| {
        for telemetry in [&one, &other] {
            telemetry.clear().expect("cleared");
            for batch in &batches {
                telemetry.record_batch(batch, &Prices::standard()).expect("recorded");
            }
        }
        let since = UtcDay::of(noon()).minus(ago);
        prop_assert_eq!(reports(&one.store, since), reports(&other.store, since));
    });
}
