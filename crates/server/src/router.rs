//! Which path is answered by whom.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use hob_config::ServerConfig;
use hob_system::{Record, Scheduler, System};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::admission::Admission;
use crate::body::BodyLimits;
use crate::error::ApiError;
use crate::gate::Gate;
use crate::metrics::{self as counts, Metrics};
use crate::pulse::Pulse;
use crate::routes::{
    channels, chat, dashboard, embeddings, events, health, memory, metrics, models, openapi, savings, tasks,
};
use crate::trust::Trust;

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
    pub(crate) body_limits: BodyLimits,
    pub(crate) trust: Trust,
    /// Cancelled when the server stops, for answers that would otherwise never end.
    pub(crate) stopping: CancellationToken,
}

pub(crate) fn router(parts: ServerParts, config: &ServerConfig, stopping: CancellationToken) -> Router {
    let ServerParts { system, record, scheduler } = parts;
    let metrics = system.totals().map(|_| Arc::new(Metrics::new()));
    let app = Arc::new(App {
        metrics: metrics.clone(),
        pulse: Pulse::new(Arc::clone(&system), stopping.clone()),
        system,
        record,
        scheduler,
        reports: Semaphore::new(MOST_REPORTS),
        admission: Admission::new(config.max_in_flight, config.max_waiting, config.queue_timeout),
        body_limits: BodyLimits { max_mb: config.max_body_mb, pause: config.body_timeout },
        trust: Trust { keyed: config.api_key.is_some() },
        stopping,
    });
    let router = Router::new()
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/embeddings", post(embeddings::create))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::show))
        .route("/v1/events", get(events::watch))
        .route("/v1/channels", get(channels::list))
        .route("/v1/channels/send", post(channels::send))
        .route("/v1/channels/status", get(channels::status))
        .route("/v1/memory/search", post(memory::search))
        .route("/v1/memory/stats", get(memory::stats))
        .route("/v1/tasks", get(tasks::list).post(tasks::create))
        .route("/v1/tasks/{id}", get(tasks::show).delete(tasks::delete))
        .route("/v1/tasks/{id}/pause", post(tasks::pause))
        .route("/v1/tasks/{id}/resume", post(tasks::resume))
        .route("/v1/tasks/{id}/cancel", post(tasks::cancel))
        .route("/v1/tasks/{id}/run", post(tasks::run))
        .route("/v1/tasks/{id}/logs", get(tasks::logs))
        .route("/v1/savings", get(savings::show))
        .route("/dashboard", get(dashboard::show))
        .route("/health", get(health::show))
        .route("/metrics", get(metrics::show))
        .route("/openapi.json", get(openapi::show))
        .fallback(|request: Request| async move { ApiError::no_such_path(request.uri().path()) })
        .method_not_allowed_fallback(|request: Request| async move {
            ApiError::no_such_method(request.method().as_str(), request.uri().path())
        })
        .with_state(app)
        .layer(middleware::from_fn_with_state(Arc::new(Gate::new(config)), guard));
    // Around the gate, so that those who were turned away are counted too.
    let router = match metrics {
        Some(metrics) => router.layer(middleware::from_fn_with_state(metrics, counts::count)),
        None => router,
    };
    // Around the gate, so that an invited page may read why it was turned away.
    match cors(config) {
        Some(layer) => router.layer(layer),
        None => router,
    }
}

async fn guard(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Result<Response, ApiError> {
    gate.check(&request)?;
    Ok(next.run(request).await)
}

/// Browsers keep an answer from the page that asked unless the server allows that page by name.
fn cors(config: &ServerConfig) -> Option<CorsLayer> {
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
        .expose_headers([HeaderName::from_static("x-hob-warning"), header::RETRY_AFTER]);
    Some(layer)
}
