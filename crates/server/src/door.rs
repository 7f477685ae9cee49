//! The way in that every request takes: counted, checked, answered by its route.
//!
//! Plain calls rather than layers of the router, each of which would cost every request a copy of all that lies behind it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_http::cors::CorsLayer;

use crate::gate::Gate;
use crate::metrics::Metrics;

/// The routes, and what stands before them.
pub(crate) struct Door {
    /// Outermost, so that an invited page may read why it was turned away. `None` where no page is invited.
    pub(crate) cors: Option<CorsLayer>,
    /// Before the gate, so that those who are turned away are counted too. `None` where nothing is counted.
    pub(crate) metrics: Option<Arc<Metrics>>,
    pub(crate) gate: Gate,
    pub(crate) routes: Router,
}

impl Door {
    pub(crate) async fn answer(&self, request: Request) -> Response {
        let Some(cors) = &self.cors else { return self.counted(request).await };
        let inside = service_fn(async |request| Ok::<_, Infallible>(self.counted(request).await));
        let Ok(response) = cors.layer(inside).oneshot(request).await;
        response
    }

    async fn counted(&self, request: Request) -> Response {
        let Some(metrics) = &self.metrics else { return self.checked(request).await };
        let visit = metrics.visit(request.uri().path());
        visit.follow(self.checked(request).await)
    }

    async fn checked(&self, request: Request) -> Response {
        if let Err(error) = self.gate.check(&request) {
            return error.into_response();
        }
        let Ok(response) = self.routes.clone().call(request).await;
        response
    }
}
