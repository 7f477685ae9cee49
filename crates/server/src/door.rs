//! The way in that every request takes: counted, checked, answered by its route.
//!
//! Plain calls rather than layers of the router, each of which would cost every request a copy of all that lies behind it.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_http::cors::CorsLayer;

use crate::error::ApiError;
use crate::gate::Gate;
use crate::metrics::Metrics;
use crate::refusal::refusal;
use crate::trust::Visitor;

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

    async fn checked(&self, mut request: Request) -> Response {
        match self.gate.check(&request) {
            Ok(Visitor::Expected) => {}
            Ok(Visitor::AnyPage) => {
                request.extensions_mut().insert(Visitor::AnyPage);
            }
            Err(error) => return refusal(error, request.headers()),
        }
        // What a panic leaves behind is dropped with the request, and locks are taken whether or not somebody panicked with them.
        match AssertUnwindSafe(self.routes.clone().call(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            Err(_) => {
                tracing::error!(
                    "a request has panicked, which is a fault of Hob's; standard error says where"
                );
                ApiError::panicked().into_response()
            }
        }
    }
}
