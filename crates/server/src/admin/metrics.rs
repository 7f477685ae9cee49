//! `GET /metrics`: what an operator watches, in the text format of Prometheus. For the owner only: it names models.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hob_system::metrics::{Histogram, ModelTotals};

use crate::admin::prometheus_text::Page;
use crate::error::ApiError;
use crate::limits::concurrency_limit::Crowd;
use crate::request_metrics::Metrics;
use crate::router::App;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn show(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    if !app.trust.is_owner(request.extensions()) {
        return Err(ApiError::owner_only("/metrics"));
    }
    let (Some(metrics), Some(totals)) = (&app.metrics, app.system.totals()) else {
        return Err(ApiError::no_metrics());
    };
    let mut page = Page::default();
    requests(&mut page, metrics, app.admission.crowd());
    inferences(&mut page, &totals.models());
    if app.system.meters().names().is_some() {
        energy(&mut page, &totals.models());
    }
    house(&mut page, &app, &app.pulse.feel_each().await);
    process(&mut page, metrics.started);
    let headers = [(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, page.into_text()).into_response())
}

fn house(page: &mut Page, app: &App, engines: &[(&str, bool)]) {
    page.gauge("hob_engine_up", "Whether an engine answered when it was last asked.");
    for (engine, healthy) in engines {
        page.sample(&[("engine", engine)], u8::from(*healthy));
    }
    page.counter(
        "hob_telemetry_dropped_total",
        "Calls that were not recorded because the database could not be opened or written in time.",
    );
    page.sample(&[], app.record.dropped());
    page.counter(
        "hob_spans_dropped_total",
        "Spans that were lost because the trace collector was too slow or gone.",
    );
    page.sample(&[], app.system.spans().dropped());
    page.gauge("hob_build_info", "The version that runs.");
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
}

fn requests(page: &mut Page, metrics: &Metrics, crowd: Crowd) {
    page.counter(
        "hob_http_requests_total",
        "Requests by route and status; 499 is a caller who left before an answer.",
    );
    for (pattern, route) in metrics.routes() {
        for (status, count) in route.statuses() {
            page.sample(&[("route", pattern), ("status", &status.to_string())], count);
        }
    }
    page.histogram(
        "hob_http_request_duration_seconds",
        "From a request's head to the last byte of its answer.",
    );
    for (pattern, route) in metrics.routes() {
        page.buckets(&[("route", pattern)], &route.latency);
    }
    page.gauge("hob_requests_in_flight", "Requests that an engine or an agent works on.");
    page.sample(&[], crowd.in_flight);
    page.gauge("hob_requests_queued", "Requests that wait for a slot.");
    page.sample(&[], crowd.queued);
}

/// A name of a figure, what it says, and the figure.
type Count = (&'static str, &'static str, fn(&ModelTotals) -> &AtomicU64);
type Times = (&'static str, &'static str, fn(&ModelTotals) -> &Histogram);

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

fn inferences(page: &mut Page, models: &[Arc<ModelTotals>]) {
    page.counter(
        "hob_inferences_total",
        "Questions to engines by how they ended: complete, failed, cancelled.",
    );
    for totals in models {
        let ends =
            [("complete", &totals.complete), ("failed", &totals.failed), ("cancelled", &totals.cancelled)];
        for (ending, count) in ends {
            let labels = [("engine", &*totals.engine), ("model", &*totals.model), ("ending", ending)];
            page.sample(&labels, count.load(Ordering::Relaxed));
        }
    }
    for (name, help, count) in COUNTS {
        page.counter(name, help);
        for totals in models {
            page.sample(&labels(totals), count(totals).load(Ordering::Relaxed));
        }
    }
    for (name, help, times) in TIMES {
        page.histogram(name, help);
        for totals in models {
            page.buckets(&labels(totals), times(totals));
        }
    }
}

/// A figure only where there is a meter: zero would be a claim.
fn energy(page: &mut Page, models: &[Arc<ModelTotals>]) {
    page.counter(
        "hob_energy_joules_total",
        "What processor and graphics card used while questions were under way.",
    );
    for totals in models {
        page.sample(&labels(totals), totals.energy.load(Ordering::Relaxed) as f64 / 1e6);
    }
}

fn labels(totals: &ModelTotals) -> [(&'static str, &str); 2] {
    [("engine", &totals.engine), ("model", &totals.model)]
}

/// Under the names that every exporter uses.
fn process(page: &mut Page, started: SystemTime) {
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    page.gauge("process_start_time_seconds", "When the server started, in seconds since 1970.");
    page.sample(&[], started.as_secs_f64());
    if let Some(bytes) = resident_bytes() {
        page.gauge("process_resident_memory_bytes", "Memory of the process that is in use.");
        page.sample(&[], bytes);
    }
}

/// `None` where the system does not tell in this way; a page without it is still worth having.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::{Ending, Energy, FinishReason, Inference, InferenceLog, RequestSource, Unrecorded, Usage};
    use hob_system::metrics::Totals;

    use super::*;

    #[test]
    fn energy_is_told_in_joules_by_engine_and_model() {
        let totals = Totals::before(Arc::new(Unrecorded));
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
                ending: Ending::Complete(FinishReason::Stop),
            });
        }
        let mut page = Page::default();
        energy(&mut page, &totals.models());
        let text = page.into_text();
        let line = "hob_energy_joules_total{engine=\"ollama\",model=\"qwen3:8b\"} 2.5";
        assert_eq!(text.lines().last(), Some(line), "{text}");
    }
}
