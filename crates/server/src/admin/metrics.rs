//! `GET /metrics`: the metrics in the text format of Prometheus. For the owner only, because they name models.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hob_core::{CallerRole, ComputeDevice, DeviceShare, RunningModel};
use hob_engines::EngineHosts;
use hob_keys::KeyService;
use hob_telemetry::metrics::{Histogram, KeyMetrics, ModelMetrics};

use super::prometheus_text::MetricsText;
use crate::error::{ApiError, ApiResult};
use crate::limits::concurrency_limit::InFlightCounts;
use crate::request_context::RequestContext;
use crate::request_metrics::RequestMetrics;
use crate::state::{ServerState, SharedState};

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn show(State(state): SharedState, request: Request) -> ApiResult<Response> {
    RequestContext::check_owner(request.extensions(), "/metrics")?;
    let (Some(metrics), Some(totals)) = (&state.metrics, state.system.metrics()) else {
        return Err(ApiError::no_metrics());
    };
    let mut out = MetricsText::default();
    requests(&mut out, metrics, state.concurrency_limit.counts());
    refusals(&mut out, state.keys.as_deref());
    inferences(&mut out, &totals.models());
    key_calls(&mut out, &totals.keys());
    if state.system.meters().names().is_some() {
        energy(&mut out, &totals.models());
    }
    let cards = state.system.pool().devices().await;
    if !cards.is_empty() {
        devices(&mut out, &cards, &state.system.running_models(CallerRole::Owner).await);
    }
    let health = state.health.load_full();
    engines_and_build(&mut out, &state, &health.all().await);
    process(&mut out, metrics.started);
    let headers = [(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, out.into_text()).into_response())
}

fn engines_and_build(out: &mut MetricsText, state: &ServerState, engines: &[(&str, bool)]) {
    out.gauge("hob_engine_up", "Whether the engine answered the last health check.");
    for (engine, healthy) in engines {
        out.sample(&[("engine", engine)], u8::from(*healthy));
    }
    out.gauge(
        "hob_dependency_up",
        "Whether a part on another machine that requests need, such as the database, works now.",
    );
    for (dependency, is_up) in state.readiness.parts() {
        out.sample(&[("dependency", dependency)], u8::from(is_up));
    }
    let health = state.health.load_full();
    let listed = health.hosts();
    if !listed.is_empty() {
        out.gauge("hob_engine_host_info", "A host that Hob sends requests of this engine to.");
        for EngineHosts { engine, hosts } in &listed {
            for host in hosts {
                out.sample(&[("engine", engine), ("host", host)], 1);
            }
        }
    }
    out.counter(
        "hob_telemetry_dropped_total",
        "Calls not recorded because the database could not be opened or written in time.",
    );
    out.sample(&[], state.record.dropped());
    out.counter(
        "hob_spans_dropped_total",
        "Spans lost because the trace collector was too slow or not reachable.",
    );
    out.sample(&[], state.system.tracer().dropped());
    out.gauge("hob_build_info", "Version of the running server.");
    out.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
}

fn requests(out: &mut MetricsText, metrics: &RequestMetrics, counts: InFlightCounts) {
    out.counter(
        "hob_http_requests_total",
        "Requests by route and status; 499 means that the client disconnected before an answer.",
    );
    for (pattern, route) in metrics.routes() {
        for (status, count) in route.statuses() {
            out.sample(&[("route", pattern), ("status", &status.to_string())], count);
        }
    }
    out.histogram(
        "hob_http_request_duration_seconds",
        "Time from the request head to the last byte of the answer.",
    );
    for (pattern, route) in metrics.routes() {
        out.buckets(&[("route", pattern)], &route.latency);
    }
    out.gauge("hob_requests_in_flight", "Requests that an engine or an agent is processing.");
    out.sample(&[], counts.in_flight);
    out.gauge("hob_requests_queued", "Requests waiting for a slot.");
    out.sample(&[], counts.queued);
}

/// Requests and calls that the limits of named keys refused.
fn refusals(out: &mut MetricsText, keys: Option<&KeyService>) {
    out.counter(
        "hob_key_refusals_total",
        "Requests and engine calls that a limit of a named key refused; '(other)' is all keys after the first 50.",
    );
    for (key, limit, count) in keys.map(KeyService::refusals).unwrap_or_default() {
        out.sample(&[("key", &key), ("limit", limit.as_str())], count);
    }
}

/// The name of a metric, its help text, and its value.
type Count = (&'static str, &'static str, fn(&ModelMetrics) -> &AtomicU64);
type Times = (&'static str, &'static str, fn(&ModelMetrics) -> &Histogram);

const COUNTS: [Count; 3] = [
    ("hob_prompt_tokens_total", "Prompt tokens read by models.", |totals| &totals.counts.prompt_tokens),
    ("hob_completion_tokens_total", "Tokens generated by models.", |totals| &totals.counts.completion_tokens),
    ("hob_cached_tokens_total", "Prompt tokens read from a cache, if the engine reports them.", |totals| {
        &totals.cached_tokens
    }),
];

const TIMES: [Times; 2] = [
    ("hob_inference_duration_seconds", "Time from an engine call to the end of its answer.", |totals| {
        &totals.latency
    }),
    ("hob_first_token_seconds", "Time from an engine call to the first piece of its stream.", |totals| {
        &totals.first_token
    }),
];

fn inferences(out: &mut MetricsText, models: &[Arc<ModelMetrics>]) {
    out.counter("hob_inferences_total", "Engine calls by ending: complete, failed, cancelled.");
    for totals in models {
        for (ending, count) in totals.counts.ends() {
            let labels = [("engine", &*totals.engine), ("model", &*totals.model), ("ending", ending)];
            out.sample(&labels, count);
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

/// Only with a named key. The number of keys that are named is bounded.
fn key_calls(out: &mut MetricsText, keys: &[Arc<KeyMetrics>]) {
    if keys.is_empty() {
        return;
    }
    out.counter(
        "hob_key_inferences_total",
        "Engine calls of each named key by ending; '(other)' is all keys after the first 50.",
    );
    for of in keys {
        for (ending, count) in of.counts.ends() {
            out.sample(&[("key", &*of.key), ("ending", ending)], count);
        }
    }
    out.counter("hob_key_prompt_tokens_total", "Prompt tokens read for each named key.");
    for of in keys {
        out.sample(&[("key", &*of.key)], of.counts.prompt_tokens.load(Ordering::Relaxed));
    }
    out.counter("hob_key_completion_tokens_total", "Tokens generated for each named key.");
    for of in keys {
        out.sample(&[("key", &*of.key)], of.counts.completion_tokens.load(Ordering::Relaxed));
    }
}

/// Only with a meter: zero would be a wrong value.
fn energy(out: &mut MetricsText, models: &[Arc<ModelMetrics>]) {
    out.counter(
        "hob_energy_joules_total",
        "Energy that processor and graphics card used during engine calls.",
    );
    for totals in models {
        out.sample(&labels(totals), totals.energy.load(Ordering::Relaxed) as f64 / 1e6);
    }
}

/// Only with a graphics card that an engine in this process uses.
fn devices(out: &mut MetricsText, cards: &[ComputeDevice], running: &[(String, RunningModel)]) {
    out.gauge("hob_device_memory_bytes", "Memory of graphics cards.");
    for card in cards {
        out.sample(&device_labels(card), card.memory_total);
    }
    out.gauge("hob_device_memory_free_bytes", "Free memory of graphics cards.");
    for card in cards {
        out.sample(&device_labels(card), card.memory_free);
    }
    let counts: [ShareCount; 2] = [
        ("hob_model_device_layers", "Layers of a loaded model on a graphics card.", |share| {
            share.layers.into()
        }),
        ("hob_model_device_bytes", "About the memory of a loaded model on a graphics card.", |share| {
            share.bytes
        }),
    ];
    for (name, help, count) in counts {
        out.gauge(name, help);
        for (engine, model) in running {
            for share in &model.devices {
                let labels = [("engine", engine.as_str()), ("model", &model.id), ("device", &share.device)];
                out.sample(&labels, count(share));
            }
        }
    }
}

/// The name of a metric, its help text, and its value.
type ShareCount = (&'static str, &'static str, fn(&DeviceShare) -> u64);

fn device_labels(card: &ComputeDevice) -> [(&'static str, &str); 3] {
    [("device", &card.name), ("backend", &card.backend), ("description", &card.description)]
}

fn labels(totals: &ModelMetrics) -> [(&'static str, &str); 2] {
    [("engine", &totals.engine), ("model", &totals.model)]
}

/// The process metrics, under their usual names.
fn process(out: &mut MetricsText, started: SystemTime) {
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    out.gauge("process_start_time_seconds", "Start time of the server, in seconds since 1970.");
    out.sample(&[], started.as_secs_f64());
    if let Some(bytes) = resident_bytes() {
        out.gauge("process_resident_memory_bytes", "Resident memory of the process.");
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
    fn every_card_is_shown_with_its_memory_and_with_the_layers_on_it() {
        let card = ComputeDevice {
            name: "CUDA0".into(),
            description: "NVIDIA H200".into(),
            backend: "CUDA".into(),
            memory_total: 150,
            memory_free: 90,
        };
        let model = RunningModel {
            id: "qwen3:8b".into(),
            devices: vec![DeviceShare { device: "CUDA0".into(), layers: 37, bytes: 60 }],
            ..RunningModel::default()
        };
        let mut out = MetricsText::default();
        devices(&mut out, &[card], &[("embedded".into(), model)]);
        let text = out.into_text();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"hob_device_memory_bytes{device="CUDA0",backend="CUDA",description="NVIDIA H200"} 150"#,
                r#"hob_device_memory_free_bytes{device="CUDA0",backend="CUDA",description="NVIDIA H200"} 90"#,
                r#"hob_model_device_layers{engine="embedded",model="qwen3:8b",device="CUDA0"} 37"#,
                r#"hob_model_device_bytes{engine="embedded",model="qwen3:8b",device="CUDA0"} 60"#,
            ]
        );
    }

    fn call(microjoules: Option<u64>) -> Inference {
        Inference {
            started: UNIX_EPOCH,
            run: "run".into(),
            source: RequestSource::Server,
            engine: "ollama".into(),
            model: "qwen3:8b".into(),
            agent: None,
            key: None,
            end_user: None,
            details: Default::default(),
            streamed: false,
            usage: Usage {
                prompt_tokens: 3,
                completion_tokens: 2,
                cached_tokens: None,
                reasoning_tokens: None,
                load_time: None,
            },
            estimated: false,
            latency: Duration::from_millis(20),
            first_token: None,
            energy: microjoules.map(Energy::from_microjoules),
            ending: InferenceEnd::Complete(FinishReason::Stop),
        }
    }

    #[test]
    fn calls_and_tokens_are_shown_by_key_if_there_is_one() {
        let totals = InferenceMetrics::before(Arc::new(NoInferenceLog));
        totals.record(call(None));
        let mut out = MetricsText::default();
        key_calls(&mut out, &totals.keys());
        assert_eq!(out.into_text(), "");

        totals.record(Inference { key: Some("ana".into()), ..call(None) });
        let failed = InferenceEnd::Failed("no answer".into());
        totals.record(Inference { key: Some("ana".into()), ending: failed, ..call(None) });
        let mut out = MetricsText::default();
        key_calls(&mut out, &totals.keys());
        let text = out.into_text();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"hob_key_inferences_total{key="ana",ending="complete"} 1"#,
                r#"hob_key_inferences_total{key="ana",ending="failed"} 1"#,
                r#"hob_key_inferences_total{key="ana",ending="cancelled"} 0"#,
                r#"hob_key_prompt_tokens_total{key="ana"} 6"#,
                r#"hob_key_completion_tokens_total{key="ana"} 4"#,
            ]
        );
    }

    #[test]
    fn energy_is_in_joules_by_engine_and_model() {
        let totals = InferenceMetrics::before(Arc::new(NoInferenceLog));
        for microjoules in [Some(2_000_000), None, Some(500_000)] {
            totals.record(call(microjoules));
        }
        let mut out = MetricsText::default();
        energy(&mut out, &totals.models());
        let text = out.into_text();
        let line = "hob_energy_joules_total{engine=\"ollama\",model=\"qwen3:8b\"} 2.5";
        assert_eq!(text.lines().last(), Some(line), "{text}");
    }
}
