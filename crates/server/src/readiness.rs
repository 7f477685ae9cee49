//! Whether a load balancer should send requests to this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_core::ReadinessCheck;
use tokio_util::sync::CancellationToken;

pub(crate) struct Readiness {
    checks: Vec<CheckedPart>,
    /// Cancelled when the server begins to stop.
    draining: CancellationToken,
}

struct CheckedPart {
    check: Arc<dyn ReadinessCheck>,
    /// The last result, so that a change is logged once.
    was_ready: AtomicBool,
}

impl Readiness {
    pub(crate) fn new(checks: Vec<Arc<dyn ReadinessCheck>>, draining: CancellationToken) -> Self {
        let part = |check| CheckedPart { check, was_ready: AtomicBool::new(true) };
        Readiness { checks: checks.into_iter().map(part).collect(), draining }
    }

    /// Each part with its name, and whether it works now.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.checks.iter().map(|part| (part.check.name(), part.check.is_up()))
    }

    /// Why it should get none; `None` if it should.
    pub(crate) fn problem(&self) -> Option<String> {
        // All parts are asked, so that the log names each of them.
        let problems: Vec<String> = self.checks.iter().filter_map(CheckedPart::problem).collect();
        let is_draining = self.draining.is_cancelled().then(|| "the server is stopping".to_owned());
        is_draining.or_else(|| (!problems.is_empty()).then(|| problems.join(" ")))
    }
}

impl CheckedPart {
    fn problem(&self) -> Option<String> {
        let problem = self.check.problem();
        let is_ready = problem.is_none();
        if self.was_ready.swap(is_ready, Ordering::Relaxed) != is_ready {
            match is_ready {
                true => tracing::info!(part = self.check.name(), "the server is ready for requests again"),
                false => tracing::warn!(
                    part = self.check.name(),
                    "the server is not ready for requests; GET /health/ready says why"
                ),
            }
        }
        problem
    }
}
