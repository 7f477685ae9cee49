//! Which path is answered by whom.

use std::future;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use hob_config::ServerConfig;
use hob_system::{Record, Scheduler, System};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::admin::{channels, events, feedback, health, memory, metrics, openapi, savings, tasks};
use crate::blocking_pool::BlockingPool;
use crate::caller::Trust;
use crate::error::ApiError;
use crate::limits::body::Bodies;
use crate::limits::concurrency_limit::Admission;
use crate::limits::log_limit::LogLimit;
use crate::openai::{chat, embeddings, models};
use crate::pages::{chat_page, dashboard};
use crate::pipeline::Door;
use crate::pulse::Pulse;
use crate::reload::AccessRules;
use crate::request_id::REQUEST_ID;
use crate::request_metrics::Metrics;
use crate::route_suggestions::Signposts;

/// Of [`App::reports`].
const MOST_REPORTS: usize = 2;

/// What the server shows to the world.
pub struct ServerParts {
    pub system: Arc<System>,
    /// What was asked and answered, for the savings.
    pub record: Record,
    /// Keeps and runs tasks; `None` where there are none.
    pub scheduler: Option<Arc<Scheduler>>,
}

impl From<Arc<System>> for ServerParts {
    /// Without a record and without tasks.
    fn from(system: Arc<System>) -> Self {
        ServerParts { system, record: Record::default(), scheduler: None }
    }
}

/// What handlers share.
pub(crate) struct App {
    pub(crate) system: Arc<System>,
    pub(crate) record: Record,
    pub(crate) scheduler: Option<Arc<Scheduler>>,
    pub(crate) pulse: Pulse,
    /// `None` where nothing is counted.
    pub(crate) metrics: Option<Arc<Metrics>>,
    /// Reports that may be made at once: each takes a thread.
    pub(crate) reports: Semaphore,
    pub(crate) admission: Admission,
    pub(crate) bodies: Bodies,
    pub(crate) blocking: BlockingPool,
    pub(crate) trust: Trust,
    /// Cancelled when the server stops, for answers that would otherwise never end.
    pub(crate) stopping: CancellationToken,
}

/// Every path and who answers it.
fn routes() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("/v1/chat/completions", post(chat::create)),
        ("/v1/embeddings", post(embeddings::create)),
        ("/v1/models", get(models::list)),
        ("/v1/models/{*id}", get(models::show)),
        ("/v1/events", get(events::watch)),
        ("/v1/channels", get(channels::list)),
        ("/v1/channels/send", post(channels::send)),
        ("/v1/channels/status", get(channels::status)),
        ("/v1/memory/search", post(memory::search)),
        ("/v1/memory/stats", get(memory::stats)),
        ("/v1/tasks", get(tasks::list).post(tasks::create)),
        ("/v1/tasks/{id}", get(tasks::show).delete(tasks::delete)),
        ("/v1/tasks/{id}/pause", post(tasks::pause)),
        ("/v1/tasks/{id}/resume", post(tasks::resume)),
        ("/v1/tasks/{id}/cancel", post(tasks::cancel)),
        ("/v1/tasks/{id}/run", post(tasks::run)),
        ("/v1/tasks/{id}/logs", get(tasks::logs)),
        ("/v1/feedback", post(feedback::create)),
        ("/v1/savings", get(savings::show)),
        ("/", get(chat_page::show)),
        ("/dashboard", get(dashboard::show)),
        ("/health", get(health::show)),
        ("/metrics", get(metrics::show)),
        ("/openapi.json", get(openapi::show)),
    ]
}

pub(crate) fn router(parts: ServerParts, config: &ServerConfig, stopping: CancellationToken) -> Door {
    let ServerParts { system, record, scheduler } = parts;
    let routes = routes();
    let patterns = || routes.iter().map(|(pattern, _)| *pattern);
    let signposts = Arc::new(Signposts::new(patterns()));
    let metrics = system.totals().map(|_| Arc::new(Metrics::new(patterns())));
    let app = Arc::new(App {
        metrics: metrics.clone(),
        pulse: Pulse::new(system.pool(), &stopping),
        system,
        record,
        scheduler,
        reports: Semaphore::new(MOST_REPORTS),
        admission: Admission::new(config.max_in_flight, config.max_waiting, config.queue_timeout),
        bodies: Bodies::new(config),
        blocking: BlockingPool::new(),
        trust: Trust,
        stopping,
    });
    let router = routes
        .into_iter()
        .fold(Router::new(), |router, (pattern, methods)| router.route(pattern, methods))
        .fallback(move |request: Request| {
            let path = request.uri().path();
            let elsewhere = chat_page::redirect(request.method(), path, request.headers());
            let missed = || ApiError::no_such_path(path, signposts.nearest(path).as_deref()).into_response();
            future::ready(elsewhere.unwrap_or_else(missed))
        })
        .method_not_allowed_fallback(|request: Request| async move {
            ApiError::no_such_method(request.method().as_str(), request.uri().path())
        })
        .with_state(app);
    Door {
        rules: Arc::new(ArcSwap::from_pointee(AccessRules::new(config))),
        metrics,
        routes: router,
        refusal_log: LogLimit::new(),
    }
}

/// Browsers keep an answer from the page that asked unless the server allows that page by name.
pub(crate) fn cors(config: &ServerConfig) -> Option<CorsLayer> {
    let origins = match config.cors_origins.as_slice() {
        [] => return None,
        origins if origins.iter().any(|origin| origin == "*") => AllowOrigin::any(),
        origins => AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok())),
    };
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        // Every client library sends headers of its own, so an invited page may send any.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            HeaderName::from_static("x-hob-warning"),
            HeaderName::from_static("x-hob-model-reason"),
            HeaderName::from_static("x-hob-engine"),
            REQUEST_ID,
            header::RETRY_AFTER,
        ]);
    Some(layer)
}
