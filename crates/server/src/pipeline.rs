//! The way in that every request takes: counted, checked, answered by its route.
//!
//! Plain calls rather than layers of the router, each of which would cost every request a copy of all that lies behind it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::error::{ApiError, RefusalReason};
use crate::guard::Guard;
use crate::limits::log_limit::LogLimit;
use crate::reload::AccessRules;
use crate::request_context::RequestContext;
use crate::request_metrics::RequestMetrics;

/// Of the reason for a refusal that stands in the log.
const LONGEST_REASON: usize = 160;

/// The routes, and what stands before them.
pub(crate) struct Pipeline {
    pub(crate) rules: Arc<ArcSwap<AccessRules>>,
    /// Before the guard, so that those who are turned away are counted too. `None` where nothing is counted.
    pub(crate) metrics: Option<Arc<RequestMetrics>>,
    pub(crate) routes: Router,
    /// Anyone can be turned away as often as they like.
    pub(crate) refusal_log: LogLimit,
}

impl Pipeline {
    pub(crate) async fn answer(&self, request: Request, context: RequestContext) -> Response {
        let rules = self.rules.load_full();
        let guard = &rules.guard;
        // Outermost, so that an invited page may read why it was turned away.
        let Some(cors) = &rules.cors else { return self.counted(guard, request, context).await };
        let inside = service_fn(async |request| {
            Ok::<_, Infallible>(self.counted(guard, request, context.clone()).await)
        });
        let Ok(response) = cors.layer(inside).oneshot(request).await;
        response
    }

    async fn counted(&self, guard: &Guard, request: Request, context: RequestContext) -> Response {
        let Some(metrics) = &self.metrics else { return self.checked(guard, request, context).await };
        let timer = metrics.start_timer(request.uri().path());
        timer.finish_with(self.checked(guard, request, context).await)
    }

    async fn checked(&self, guard: &Guard, mut request: Request, mut context: RequestContext) -> Response {
        let peer = context.peer;
        let response = match guard.check(&request, peer) {
            Ok(origin) => {
                context.origin = origin;
                context.is_keyed = guard.is_keyed();
                request.extensions_mut().insert(context);
                self.routed(request).await
            }
            Err(error) if error.is_wrong_key() => {
                // Boxed, as all that few requests need.
                Box::pin(guard.delay_wrong_key(error, peer)).await.into_response()
            }
            Err(error) => error.into_response(),
        };
        if let Some(RefusalReason(reason)) = response.extensions().get() {
            self.log_refusal(response.status(), peer, reason);
        }
        response
    }

    async fn routed(&self, request: Request) -> Response {
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

    fn log_refusal(&self, status: StatusCode, peer: IpAddr, reason: &str) {
        if let Some(suppressed) = self.refusal_log.allow(Instant::now()) {
            // The reason may repeat what the caller sent, which is shown as text and not for ever.
            let reason: String = reason.chars().take(LONGEST_REASON).collect();
            tracing::warn!(%peer, status = status.as_u16(), ?reason, suppressed, "refused a request");
        }
    }
}
