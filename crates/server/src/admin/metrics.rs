//! `GET /metrics`: the metrics in the text format of Prometheus. For the owner only, because they name models.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hob_telemetry::metrics::{Histogram, ModelMetrics};

use super::prometheus_text::MetricsText;
use crate::error::ApiError;
use crate::limits::concurrency_limit::InFlightCounts;
use crate::request_context::RequestContext;
use crate::request_metrics::RequestMetrics;
use crate::state::ServerState;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn show(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<Response, ApiError> {
    if !RequestContext::is_owner(request.extensions()) {
        return Err(ApiError::owner_only("/metrics"));
    }
    let (Some(metrics), Some(totals)) = (&state.metrics, state.system.metrics()) else {
        return Err(ApiError::no_metrics());
    };
    let mut out = MetricsText::default();
    requests(&mut out, metrics, state.concurrency_limit.counts());
    inferences(&mut out, &totals.models());
    if state.system.meters().names().is_some() {
        energy(&mut out, &totals.models());
    }
    engines_and_build(&mut out, &state, &state.health.all().await);
    process(&mut out, metrics.started);
    let headers = [(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, out.into_text()).into_response())
}

fn engines_and_build(out: &mut MetricsText, state: &ServerState, engines: &[(&str, bool)]) {
    out.gauge("hob_engine_up", "Whether an engine answered when it was last asked.");
    for (engine, healthy) in engines {
        out.sample(&[("engine", engine)], u8::from(*healthy));
    }
    out.counter(
        "hob_telemetry_dropped_total",
        "Calls that were not recorded because the database could not be opened or written in time.",
    );
    out.sample(&[], state.record.dropped());
    out.counter(
        "hob_spans_dropped_total",
        "Spans that were lost because the trace collector was too slow or gone.",
    );
    out.sample(&[], state.system.tracer().dropped());
    out.gauge("hob_build_info", "The version that runs.");
    out.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
}

fn requests(out: &mut MetricsText, metrics: &RequestMetrics, counts: InFlightCounts) {
    out.counter(
        "hob_http_requests_total",
        "Requests by route and status; 499 is a caller who left before an answer.",
    );
    for (pattern, route) in metrics.routes() {
        for (status, count) in route.statuses() {
            out.sample(&[("route", pattern), ("status", &status.to_string())], count);
        }
    }
    out.histogram(
        "hob_http_request_duration_seconds",
        "From a request's head to the last byte of its answer.",
    );
    for (pattern, route) in metrics.routes() {
        out.buckets(&[("route", pattern)], &route.latency);
    }
    out.gauge("hob_requests_in_flight", "Requests that an engine or an agent works on.");
    out.sample(&[], counts.in_flight);
    out.gauge("hob_requests_queued", "Requests that wait for a slot.");
    out.sample(&[], counts.queued);
}

/// The name of a metric, its help text, and its value.
type Count = (&'static str, &'static str, fn(&ModelMetrics) -> &AtomicU64);
type Times = (&'static str, &'static str, fn(&ModelMetrics) -> &Histogram);

const COUNTS: [Count; 3] = [
    ("hob_prompt_tokens_total", "Tokens read by models.", |totals| &totals.prompt_tokens),
    ("hob_completion_tokens_total", "Tokens written by models.", |totals| &totals.completion_tokens),
    (
        "hob_cached_tokens_total",
        "Tokens of prompts that came out of a cache, where the engine tells.",
        |totals| &totals.cached_tokens,
    ),
];

const TIMES: [Times; 2] = [
    ("hob_inference_duration_seconds", "From a question to an engine to the end of its answer.", |totals| {
        &totals.latency
    }),
    ("hob_first_token_seconds", "From a question to an engine to the first piece of a stream.", |totals| {
        &totals.first_token
    }),
];

fn inferences(out: &mut MetricsText, models: &[Arc<ModelMetrics>]) {
    out.counter(
        "hob_inferences_total",
        "Questions to engines by how they ended: complete, failed, cancelled.",
    );
    for totals in models {
        let ends =
            [("complete", &totals.complete), ("failed", &totals.failed), ("cancelled", &totals.cancelled)];
        for (ending, count) in ends {
            let labels = [("engine", &*totals.engine), ("model", &*totals.model), ("ending", ending)];
            out.sample(&labels, count.load(Ordering::Relaxed));
        }
    }
    for (name, help, count) in COUNTS {
        out.counter(name, help);
        for totals in models {
            out.sample(&labels(totals), count(totals).load(Ordering::Relaxed));
        }
    }
    for (name, help, times) in TIMES {
        out.histogram(name, help);
        for totals in models {
            out.buckets(&labels(totals), times(totals));
        }
    }
}

/// Only with a meter: zero would be a wrong value.
fn energy(out: &mut MetricsText, models: &[Arc<ModelMetrics>]) {
    out.counter(
        "hob_energy_joules_total",
        "What processor and graphics card used while questions were under way.",
    );
    for totals in models {
        out.sample(&labels(totals), totals.energy.load(Ordering::Relaxed) as f64 / 1e6);
    }
}

fn labels(totals: &ModelMetrics) -> [(&'static str, &str); 2] {
    [("engine", &totals.engine), ("model", &totals.model)]
}

/// The process metrics, under their usual names.
fn process(out: &mut MetricsText, started: SystemTime) {
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    out.gauge("process_start_time_seconds", "When the server started, in seconds since 1970.");
    out.sample(&[], started.as_secs_f64());
    if let Some(bytes) = resident_bytes() {
        out.gauge("process_resident_memory_bytes", "Memory of the process that is in use.");
        out.sample(&[], bytes);
    }
}

/// `None` on systems without `/proc`.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::{FinishReason, RequestSource, Usage};
    use hob_telemetry::metrics::InferenceMetrics;
    use hob_telemetry::{Energy, Inference, InferenceEnd, InferenceLog, NoInferenceLog};

    use super::*;

    #[test]
    fn energy_is_in_joules_by_engine_and_model() {
        let totals = InferenceMetrics::before(Arc::new(NoInferenceLog));
        for microjoules in [Some(2_000_000), None, Some(500_000)] {
            totals.record(Inference {
                started: UNIX_EPOCH,
                run: "run".into(),
                source: RequestSource::Server,
                engine: "ollama".into(),
                model: "qwen3:8b".into(),
                agent: None,
                streamed: false,
                usage: Usage { prompt_tokens: 1, completion_tokens: 1, cached_tokens: None },
                estimated: false,
                latency: Duration::from_millis(20),
                first_token: None,
                energy: microjoules.map(Energy::from_microjoules),
                ending: InferenceEnd::Complete(FinishReason::Stop),
            });
        }
        let mut out = MetricsText::default();
        energy(&mut out, &totals.models());
        let text = out.into_text();
        let line = "hob_energy_joules_total{engine=\"ollama\",model=\"qwen3:8b\"} 2.5";
        assert_eq!(text.lines().last(), Some(line), "{text}");
    }
}
