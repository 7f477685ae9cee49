//! The health of engines, known without waiting for them: a report that is read every few seconds must not take as long as an
//! engine that hangs.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use hob_core::Engine;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a result is used before the engine is checked again.
const FRESH_FOR: Duration = Duration::from_secs(4);

/// How long a reader waits for the first result of an engine.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Whether any of these checks finds an engine that answers. Does not wait for the others.
pub(crate) async fn is_any_healthy(checks: Vec<impl Future<Output = bool>>) -> bool {
    let checks: FuturesUnordered<_> = checks.into_iter().collect();
    checks.any(std::future::ready).await
}

/// The last known health of several engines.
pub struct HealthCache {
    engines: Vec<EngineHealth>,
}

impl HealthCache {
    /// The first engine is the chosen one. Starts no check after `stopping` is cancelled.
    pub fn new<'a>(
        engines: impl IntoIterator<Item = &'a Arc<dyn Engine>>,
        stopping: &CancellationToken,
    ) -> Self {
        let health = |engine: &Arc<dyn Engine>| EngineHealth {
            engine: Arc::clone(engine),
            state: Arc::default(),
            stopping: stopping.clone(),
        };
        HealthCache { engines: engines.into_iter().map(health).collect() }
    }

    /// Whether the chosen engine answered its last check; `None` before the first result.
    pub async fn is_healthy(&self) -> Option<bool> {
        self.engines.first()?.is_healthy().await
    }

    /// The engines with several hosts, or with hosts that DNS lists.
    pub fn hosts(&self) -> Vec<EngineHosts<'_>> {
        let hosts = self.engines.iter().map(|health| EngineHosts {
            engine: health.engine.key(),
            hosts: health.engine.members().iter().map(|host| host.address().to_owned()).collect(),
        });
        hosts.filter(|engine| !engine.hosts.is_empty()).collect()
    }

    /// The health of every engine that has a result, by its key.
    pub async fn all(&self) -> Vec<(&str, bool)> {
        let results = join_all(self.engines.iter().map(EngineHealth::is_healthy)).await;
        let keys = self.engines.iter().map(|health| health.engine.key());
        keys.zip(results).filter_map(|(key, healthy)| Some((key, healthy?))).collect()
    }
}

/// The addresses of the hosts of an engine that has several.
pub struct EngineHosts<'a> {
    pub engine: &'a str,
    pub hosts: Vec<String>,
}

/// The last known health of one engine.
struct EngineHealth {
    engine: Arc<dyn Engine>,
    state: Arc<watch::Sender<HealthState>>,
    stopping: CancellationToken,
}

#[derive(Debug, Clone, Copy, Default)]
struct HealthState {
    /// The last result, and when it came.
    last: Option<(bool, Instant)>,
    /// Whether a check is running.
    checking: bool,
}

impl EngineHealth {
    /// Whether the engine answered its last check. A stale result is returned as well, and starts the next check.
    async fn is_healthy(&self) -> Option<bool> {
        self.check_if_stale();
        let mut state = self.state.subscribe();
        let first = tokio::time::timeout(FIRST_WAIT, state.wait_for(|state| state.last.is_some())).await;
        first.ok()?.ok()?.last.map(|(healthy, _)| healthy)
    }

    fn check_if_stale(&self) {
        let starts_check = self.state.send_if_modified(|state| {
            let is_stale = state.last.is_none_or(|(_, at)| at.elapsed() >= FRESH_FOR);
            let start = is_stale && !state.checking;
            state.checking |= start;
            start
        });
        if !starts_check {
            return;
        }
        let (engine, state, stopping) =
            (Arc::clone(&self.engine), Arc::clone(&self.state), self.stopping.clone());
        tokio::spawn(async move {
            let running = RunningCheck(state);
            if let Some(healthy) = stopping.run_until_cancelled(engine.health()).await {
                running.0.send_modify(|state| state.last = Some((healthy, Instant::now())));
            }
        });
    }
}

/// Allows the next check when it is dropped, also by a check that panicked.
struct RunningCheck(Arc<watch::Sender<HealthState>>);

impl Drop for RunningCheck {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.checking = false);
    }
}

#[cfg(test)]
mod tests {
    use hob_testkit::ScriptedEngine;

    use super::*;

    fn engine(key: &str) -> Arc<ScriptedEngine> {
        Arc::new(ScriptedEngine::saying(&["hi"]).called(key))
    }

    fn cache_of(engines: &[&Arc<ScriptedEngine>]) -> HealthCache {
        let engines: Vec<Arc<dyn Engine>> = engines.iter().map(|engine| Arc::clone(engine) as _).collect();
        HealthCache::new(&engines, &CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_becomes_unhealthy_is_noticed_at_the_second_read() {
        let engine = engine("ollama");
        let cache = cache_of(&[&engine]);
        assert_eq!(cache.is_healthy().await, Some(true));
        engine.set_healthy(false);
        assert_eq!(cache.is_healthy().await, Some(true), "not checked again at once");
        tokio::time::advance(FRESH_FOR).await;
        assert_eq!(cache.is_healthy().await, Some(true), "the last result, while the next check runs");
        tokio::task::yield_now().await;
        assert_eq!(cache.is_healthy().await, Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn every_engine_has_its_own_health() {
        let (ollama, vllm) = (engine("ollama"), engine("vllm"));
        vllm.set_healthy(false);
        let cache = cache_of(&[&ollama, &vllm]);
        assert_eq!(cache.all().await, [("ollama", true), ("vllm", false)]);
        assert_eq!(cache.is_healthy().await, Some(true), "the first engine's");
    }
}
