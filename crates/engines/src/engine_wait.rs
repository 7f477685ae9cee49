//! Waits for an engine on other machines that does not answer when the server starts. Knows nothing of requests.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hob_core::{Backoff, Engine, ReadinessCheck};
use tokio_util::sync::CancellationToken;

use crate::selection::probe_all;

/// How often the engine is asked.
const RETRY: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(5) };

/// Asks the engine until it answers for the first time.
pub struct EngineWait {
    /// Why the server is not ready; `None` once the engine has answered. Later failures do not change it: all replicas share their
    /// engines, and a load balancer with no ready server would not answer the requests that need no engine either.
    problem: Arc<ArcSwapOption<String>>,
    stop: CancellationToken,
}

impl EngineWait {
    pub fn start(engine: Arc<dyn Engine>) -> Self {
        let (key, address) = (engine.key(), engine.address());
        tracing::warn!(
            engine = key,
            address,
            "the engine does not answer; the server is not ready until it does. Start the engine, or correct \
             its address"
        );
        let problem = format!("The engine {key} at {address} has not answered since the start.");
        let problem = Arc::new(ArcSwapOption::from_pointee(problem));
        let stop = CancellationToken::new();
        // Ends with its token.
        tokio::spawn(stop.clone().run_until_cancelled_owned(wait(engine, Arc::clone(&problem))));
        EngineWait { problem, stop }
    }

    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Another engine answers in its place.
    pub fn end(&self) {
        self.stop();
        self.problem.store(None);
    }
}

impl ReadinessCheck for EngineWait {
    fn name(&self) -> &'static str {
        "engine"
    }

    fn problem(&self) -> Option<String> {
        self.problem.load().as_deref().cloned()
    }
}

async fn wait(engine: Arc<dyn Engine>, problem: Arc<ArcSwapOption<String>>) {
    let mut delays = RETRY.delays();
    while probe_all(std::slice::from_ref(&engine)).await != [true] {
        tokio::time::sleep(delays.next_delay()).await;
    }
    problem.store(None);
    tracing::info!(engine = engine.key(), "the engine answers");
}

#[cfg(test)]
mod tests {
    use hob_testkit::ScriptedEngine;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_server_is_ready_once_the_engine_has_answered() {
        let engine = Arc::new(ScriptedEngine::saying(&["hi"]).called("vllm"));
        engine.set_healthy(false);
        let wait = EngineWait::start(Arc::clone(&engine) as Arc<dyn Engine>);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(wait.problem().is_some_and(|problem| problem.contains("vllm")), "{:?}", wait.problem());
        engine.set_healthy(true);
        tokio::time::sleep(RETRY.longest).await;
        assert_eq!(wait.problem(), None);
        engine.set_healthy(false);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(wait.problem(), None, "replicas share their engines");
    }
}
