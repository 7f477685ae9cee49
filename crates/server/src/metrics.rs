//! What the server counts of itself: requests by route and status, and how long they took.
//!
//! Every request passes here, so a count is an atomic addition. A route is the router's own pattern, never the path that was
//! asked for: there are as many figures as there are routes, whatever anybody sends.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use hob_system::metrics::Histogram;
use http_body::{Body as _, Frame, SizeHint};

/// The route of requests that no route answers.
const OTHER: &str = "other";

/// What nginx calls a caller who left before there was a status.
const CALLER_LEFT: u16 = 499;

/// Statuses are numbers of three digits.
const STATUSES: std::ops::Range<u16> = 100..1000;

/// The counts.
pub(crate) struct Metrics {
    pub(crate) started: SystemTime,
    routes: RwLock<BTreeMap<Arc<str>, Arc<Route>>>,
}

/// The counts of one route.
#[derive(Default)]
pub(crate) struct Route {
    /// By status. Made for routes that are asked for.
    statuses: OnceLock<Box<[AtomicU64]>>,
    /// Until the last byte of the answer was on its way.
    pub(crate) latency: Histogram,
}

impl Route {
    fn count(&self, status: u16) {
        let statuses = self.statuses.get_or_init(|| STATUSES.map(|_| AtomicU64::new(0)).collect());
        if let Some(count) = statuses.get(usize::from(status.saturating_sub(STATUSES.start))) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each status that was answered, and how often.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        let counts = self.statuses.get().into_iter().flatten().map(|count| count.load(Ordering::Relaxed));
        STATUSES.zip(counts).filter(|(_, count)| *count > 0)
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Metrics { started: SystemTime::now(), routes: RwLock::default() }
    }

    /// All routes that were asked for, by names such as `/v1/tasks/:id`.
    pub(crate) fn routes(&self) -> Vec<(String, Arc<Route>)> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        routes.iter().map(|(pattern, route)| (name_of(pattern), Arc::clone(route))).collect()
    }

    fn route(&self, pattern: &str) -> Arc<Route> {
        let known = self.routes.read().unwrap_or_else(PoisonError::into_inner).get(pattern).map(Arc::clone);
        known.unwrap_or_else(|| {
            let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(routes.entry(pattern.into()).or_default())
        })
    }
}

/// Without the router's braces, which mean something else to those who search by pattern.
fn name_of(pattern: &str) -> String {
    pattern.replace("{*", ":").replace('{', ":").replace('}', "")
}

/// Counts a request, from its head to the last byte of its answer.
pub(crate) async fn count(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let pattern = request.extensions().get::<MatchedPath>().map_or(OTHER, MatchedPath::as_str);
    let mut visit = Visit { route: metrics.route(pattern), clock: Instant::now(), status: None };
    let response = next.run(request).await;
    visit.answered(response.status());
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| Body::new(Counted { body, _visit: visit }))
}

/// A request under way. It ends with its value.
struct Visit {
    route: Arc<Route>,
    clock: Instant,
    status: Option<StatusCode>,
}

impl Visit {
    fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
        self.route.count(status.as_u16());
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.route.count(CALLER_LEFT);
        }
        self.route.latency.observe(self.clock.elapsed());
    }
}

/// A body of unknown length, whose end is the request's.
struct Counted {
    body: Body,
    _visit: Visit,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
