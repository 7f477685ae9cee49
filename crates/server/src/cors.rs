//! CORS: which web pages can read answers. Knows the headers that answers have, and no route.

use axum::http::{HeaderName, HeaderValue, Method, header};
use hob_config::ServerConfig;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::request_id::REQUEST_ID;

/// The layer that lets listed pages read answers. `None` if no page is listed.
pub(crate) fn cors(config: &ServerConfig) -> Option<CorsLayer> {
    let origins = match config.cors_origins.as_slice() {
        [] => return None,
        origins if origins.iter().any(|origin| origin == "*") => AllowOrigin::any(),
        origins => AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok())),
    };
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        // Client libraries send their own headers, so a listed page can send any header.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            HeaderName::from_static("x-hob-warning"),
            HeaderName::from_static("x-hob-model-reason"),
            HeaderName::from_static("x-hob-engine"),
            HeaderName::from_static("x-hob-queue"),
            REQUEST_ID,
            header::RETRY_AFTER,
        ]);
    Some(layer)
}
