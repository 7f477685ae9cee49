//! Counts requests by route and status, and measures their duration.
//!
//! Every request passes here, so a count is one atomic addition. A route is the router's pattern, not the path of a request, so
//! the number of counters is bounded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use axum::http::StatusCode;
use axum::response::Response;
use hob_telemetry::metrics::Histogram;

use crate::keep_until_sent::keep_until_sent;

/// The route of requests that match no pattern.
const OTHER: &str = "other";

/// nginx's status for a client that closed the connection before an answer.
const CALLER_LEFT: u16 = 499;

/// Statuses have three digits.
const STATUSES: std::ops::Range<u16> = 100..1000;

/// The counters of all routes.
pub(crate) struct RequestMetrics {
    pub(crate) started: SystemTime,
    routes: matchit::Router<Arc<RouteMetrics>>,
    by_name: Vec<(String, Arc<RouteMetrics>)>,
    other: Arc<RouteMetrics>,
}

/// The counters of one route.
#[derive(Default)]
pub(crate) struct RouteMetrics {
    /// By status. Allocated at the first request.
    statuses: OnceLock<Box<[AtomicU64]>>,
    /// Until the last byte of the answer was handed over.
    pub(crate) latency: Histogram,
}

impl RouteMetrics {
    fn count(&self, status: u16) {
        let statuses = self.statuses.get_or_init(|| STATUSES.map(|_| AtomicU64::new(0)).collect());
        if let Some(count) = statuses.get(usize::from(status.saturating_sub(STATUSES.start))) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Each status of an answer, with its count.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        let counts = self.statuses.get().into_iter().flatten().map(|count| count.load(Ordering::Relaxed));
        STATUSES.zip(counts).filter(|(_, count)| *count > 0)
    }
}

impl RequestMetrics {
    /// Takes the patterns of all routes, and those that are not reported.
    pub(crate) fn new(patterns: impl Iterator<Item = &'static str>, unreported: &[&str]) -> Self {
        let mut routes = matchit::Router::new();
        let mut by_name = Vec::new();
        for pattern in patterns {
            let route = Arc::new(RouteMetrics::default());
            // The router accepted the same patterns, and refuses duplicates.
            let is_new = routes.insert(pattern, Arc::clone(&route)).is_ok();
            if is_new && !unreported.contains(&pattern) {
                by_name.push((name_of(pattern), route));
            }
        }
        let other = Arc::new(RouteMetrics::default());
        by_name.push((OTHER.to_owned(), Arc::clone(&other)));
        by_name.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        RequestMetrics { started: SystemTime::now(), routes, by_name, other }
    }

    /// All routes that had a request, by names such as `/v1/tasks/:id`.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &(String, Arc<RouteMetrics>)> {
        self.by_name.iter().filter(|(_, route)| route.statuses.get().is_some())
    }

    /// Measures a request from now to the last byte of its answer.
    pub(crate) fn start_timer(&self, path: &str) -> RequestTimer {
        let route = self.routes.at(path).map_or(&self.other, |found| found.value);
        RequestTimer { route: Arc::clone(route), started: Instant::now(), status: None }
    }
}

/// Without the router's braces, which are special characters in search patterns.
fn name_of(pattern: &str) -> String {
    pattern.replace("{*", ":").replace('{', ":").replace('}', "")
}

/// A request in progress. Dropping this ends it.
pub(crate) struct RequestTimer {
    route: Arc<RouteMetrics>,
    started: Instant,
    status: Option<StatusCode>,
}

impl RequestTimer {
    /// Counts the status, and measures until the body has been sent.
    pub(crate) fn finish_with(mut self, response: Response) -> Response {
        self.answered(response.status());
        keep_until_sent(self, response)
    }

    fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
        self.route.count(status.as_u16());
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.route.count(CALLER_LEFT);
        }
        self.route.latency.observe(self.started.elapsed());
    }
}
