//! The steps that every request passes: count, check, route.
//!
//! These are plain calls. Layers of the router would cost every request a copy of all services behind them.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use hob_keys::{IdentityService, KeyService};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::access_log::{AccessLogWriter, LoggedRequest};
use crate::caller_role::Proof;
use crate::error::{ApiError, ErrorFormat, RefusalReason};
use crate::guard::{Accepted, CallerSources, Guard};
use crate::limits::log_limit::LogLimit;
use crate::limits::rate_headers::with_rate_limits;
use crate::pages::changes::Changes;
use crate::reload::AccessRules;
use crate::request_context::RequestContext;
use crate::request_metrics::RequestMetrics;

/// Characters of a refusal's reason in the log.
const MAX_REASON_CHARS: usize = 160;

/// The key of `[server] api_key` in the access log.
const OWNER_KEY: &str = "owner";

/// The routes, and the steps before them.
pub(crate) struct Pipeline {
    pub(crate) rules: Arc<ArcSwap<AccessRules>>,
    /// Counts before the guard, so that refused requests are counted too. `None` if `[telemetry] metrics` is off.
    pub(crate) metrics: Option<Arc<RequestMetrics>>,
    pub(crate) routes: Router,
    /// The named API keys.
    pub(crate) keys: Option<Arc<KeyService>>,
    /// `None` if no tokens are accepted.
    pub(crate) identity: Option<Arc<IdentityService>>,
    /// Empty if `[server] access_log` is off.
    pub(crate) access_log: Arc<ArcSwapOption<AccessLogWriter>>,
    /// Anyone can cause refusals, as many as they like.
    pub(crate) refusal_log: LogLimit,
    /// Tells the open pages what has changed.
    pub(crate) changes: Changes,
}

impl Pipeline {
    pub(crate) async fn answer(&self, request: Request, context: RequestContext) -> Response {
        let rules = self.rules.load_full();
        let guard = &rules.guard;
        // CORS is outermost, so that a listed page can read why it was refused.
        let Some(cors) = &rules.cors else { return self.logged(guard, request, context).await };
        let inside = service_fn(async |request| {
            Ok::<_, Infallible>(self.logged(guard, request, context.clone()).await)
        });
        let Ok(response) = cors.layer(inside).oneshot(request).await;
        response
    }

    async fn logged(&self, guard: &Guard, request: Request, mut context: RequestContext) -> Response {
        let Some(writer) = self.access_log.load_full() else {
            return self.counted(guard, request, context).await;
        };
        let asked = (request.method(), request.uri().path());
        let logged = LoggedRequest::begin(&writer, asked, (context.peer, &context.id));
        context.tally = Some(logged.tally());
        logged.finish_with(self.counted(guard, request, context).await)
    }

    async fn counted(&self, guard: &Guard, request: Request, context: RequestContext) -> Response {
        let Some(metrics) = &self.metrics else { return self.checked(guard, request, context).await };
        let timer = metrics.start_timer(request.uri().path());
        timer.finish_with(self.checked(guard, request, context).await)
    }

    async fn checked(&self, guard: &Guard, mut request: Request, mut context: RequestContext) -> Response {
        let peer = context.peer;
        let format = ErrorFormat::of_path(request.uri().path());
        let sources = CallerSources { keys: self.keys.as_deref(), identity: self.identity.as_deref() };
        let mut checked = guard.check(&request, peer, sources);
        if let Some(identity) = &self.identity
            && checked.as_ref().is_err_and(ApiError::needs_signing_keys)
        {
            // Boxed, because few requests need it.
            Box::pin(identity.refresh()).await;
            checked = guard.check(&request, peer, sources);
        }
        let response = match checked {
            Ok(Accepted { origin, proof }) => {
                let limited_key = match &proof {
                    Proof::NamedKey(key) if key.grant.spending.is_some() => Some(Arc::clone(key)),
                    Proof::NamedKey(_) | Proof::OwnerKey | Proof::None => None,
                };
                // Before the answer, because the caller may leave.
                match (&context.tally, &proof) {
                    (Some(tally), Proof::NamedKey(key)) => tally.set_key(Arc::clone(&key.grant.name)),
                    (Some(tally), Proof::OwnerKey) => tally.set_key(OWNER_KEY.into()),
                    (Some(_), Proof::None) | (None, _) => {}
                }
                context.origin = origin;
                context.proof = proof;
                request.extensions_mut().insert(context);
                let response = self.routed(request, format).await;
                match limited_key {
                    Some(key) => with_rate_limits(response, &key),
                    None => response,
                }
            }
            Err(error) if error.is_wrong_key() => {
                // Boxed, because few requests need it.
                Box::pin(guard.delay_wrong_key(error, peer)).await.in_format(format).into_response()
            }
            Err(error) => error.in_format(format).into_response(),
        };
        if let Some(RefusalReason(reason)) = response.extensions().get() {
            self.log_refusal(response.status(), peer, reason);
        }
        response
    }

    async fn routed(&self, request: Request, format: ErrorFormat) -> Response {
        // A panic drops the request with everything it holds, and poisoned locks are recovered.
        match AssertUnwindSafe(self.routes.clone().call(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            Err(_) => {
                tracing::error!(
                    "a request panicked because of a bug in Hob. Report this bug with the panic message on \
                     standard error"
                );
                ApiError::panicked().in_format(format).into_response()
            }
        }
    }

    fn log_refusal(&self, status: StatusCode, peer: IpAddr, reason: &str) {
        if let Some(suppressed) = self.refusal_log.allow(Instant::now()) {
            // The reason can repeat what the caller sent, so it is cut and logged with escapes.
            let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
            tracing::warn!(
                %peer,
                status = status.as_u16(),
                ?reason,
                suppressed,
                "a request was refused; the caller got the reason"
            );
        }
    }
}
