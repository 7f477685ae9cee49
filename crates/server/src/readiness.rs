//! Whether a load balancer should send requests to this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_app::ReadinessCheck;
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

    pub(crate) fn is_ready(&self) -> bool {
        // All parts are asked, so that the log names each of them.
        let ready_parts = self.checks.iter().filter(|part| part.is_ready()).count();
        ready_parts == self.checks.len() && !self.draining.is_cancelled()
    }
}

impl CheckedPart {
    fn is_ready(&self) -> bool {
        let is_ready = self.check.is_ready();
        if self.was_ready.swap(is_ready, Ordering::Relaxed) != is_ready {
            match is_ready {
                true => tracing::info!(part = self.check.name(), "ready for requests again"),
                false => tracing::warn!(part = self.check.name(), "not ready for requests"),
            }
        }
        is_ready
    }
}
