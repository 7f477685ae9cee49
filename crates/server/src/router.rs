//! Which path is answered by whom.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use hob_config::ServerConfig;
use hob_system::System;
use tokio_util::sync::CancellationToken;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::admission::Admission;
use crate::body::BodyLimits;
use crate::error::ApiError;
use crate::gate::Gate;
use crate::routes::{chat, events, health, models, openapi};
use crate::trust::Trust;

/// What handlers share.
pub(crate) struct App {
    pub(crate) system: Arc<System>,
    pub(crate) admission: Admission,
    pub(crate) body_limits: BodyLimits,
    pub(crate) trust: Trust,
    /// Cancelled when the server stops, for answers that would otherwise never end.
    pub(crate) stopping: CancellationToken,
}

pub(crate) fn router(system: Arc<System>, config: &ServerConfig, stopping: CancellationToken) -> Router {
    let app = Arc::new(App {
        system,
        admission: Admission::new(config.max_in_flight, config.max_waiting, config.queue_timeout),
        body_limits: BodyLimits { max_mb: config.max_body_mb, pause: config.body_timeout },
        trust: Trust { keyed: config.api_key.is_some() },
        stopping,
    });
    let router = Router::new()
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::show))
        .route("/v1/events", get(events::watch))
        .route("/health", get(health::show))
        .route("/openapi.json", get(openapi::show))
        .fallback(|request: Request| async move { ApiError::no_such_path(request.uri().path()) })
        .method_not_allowed_fallback(|request: Request| async move {
            ApiError::no_such_method(request.method().as_str(), request.uri().path())
        })
        .with_state(app)
        .layer(middleware::from_fn_with_state(Arc::new(Gate::new(config)), guard));
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
