//! Whether engines answer, known without waiting for them: a report that is read every few seconds must not take as long as an
//! engine that hangs.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hob_core::Engine;
use hob_system::EnginePool;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(4);

/// How long somebody waits for the first answer there ever is.
const FIRST_LOOK: Duration = Duration::from_millis(250);

/// What is known of the health of all engines that may be asked.
pub(crate) struct Pulse {
    /// The chosen one first.
    beats: Vec<Beat>,
}

impl Pulse {
    /// Asks no more once `stopping`.
    pub(crate) fn new(pool: &EnginePool, stopping: &CancellationToken) -> Self {
        let beat = |engine: &Arc<dyn Engine>| Beat {
            engine: Arc::clone(engine),
            felt: Arc::default(),
            stopping: stopping.clone(),
        };
        Pulse { beats: pool.engines().map(beat).collect() }
    }

    /// Whether the chosen engine answered when it was last asked; `None` when it has not been heard of yet.
    pub(crate) async fn feel(&self) -> Option<bool> {
        self.beats.first()?.feel().await
    }

    /// The same of every engine that has been heard of, by its key.
    pub(crate) async fn feel_each(&self) -> Vec<(&str, bool)> {
        let felt =
            join_all(self.beats.iter().map(|beat| async { (beat.engine.key(), beat.feel().await) })).await;
        felt.into_iter().filter_map(|(key, healthy)| Some((key, healthy?))).collect()
    }
}

/// What is known of one engine's health.
struct Beat {
    engine: Arc<dyn Engine>,
    felt: Arc<watch::Sender<Felt>>,
    stopping: CancellationToken,
}

#[derive(Debug, Clone, Copy, Default)]
struct Felt {
    /// The last answer, and when it came.
    last: Option<(bool, Instant)>,
    /// Whether somebody is asking.
    asking: bool,
}

impl Beat {
    /// Whether the engine answered when it was last asked. An answer that is no longer fresh is still given, and a new one asked
    /// for.
    async fn feel(&self) -> Option<bool> {
        self.ask_if_stale();
        let mut felt = self.felt.subscribe();
        let heard = tokio::time::timeout(FIRST_LOOK, felt.wait_for(|felt| felt.last.is_some())).await;
        heard.ok()?.ok()?.last.map(|(healthy, _)| healthy)
    }

    fn ask_if_stale(&self) {
        let is_mine_to_ask = self.felt.send_if_modified(|felt| {
            let is_stale = felt.last.is_none_or(|(_, at)| at.elapsed() >= FRESH);
            let ask = is_stale && !felt.asking;
            felt.asking |= ask;
            ask
        });
        if !is_mine_to_ask {
            return;
        }
        let (engine, felt, stopping) =
            (Arc::clone(&self.engine), Arc::clone(&self.felt), self.stopping.clone());
        tokio::spawn(async move {
            let asking = Asking(felt);
            if let Some(healthy) = stopping.run_until_cancelled(engine.health()).await {
                asking.0.send_modify(|felt| felt.last = Some((healthy, Instant::now())));
            }
        });
    }
}

/// Lets others ask when it is dropped, also by a probe that panicked.
struct Asking(Arc<watch::Sender<Felt>>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.send_modify(|felt| felt.asking = false);
    }
}

#[cfg(test)]
mod tests {
    use hob_testkit::ScriptedEngine;

    use super::*;

    fn engine(key: &str) -> Arc<ScriptedEngine> {
        Arc::new(ScriptedEngine::saying(&["hi"]).called(key))
    }

    fn pulse_of(chosen: &Arc<ScriptedEngine>, others: &[&Arc<ScriptedEngine>]) -> Pulse {
        let others = others.iter().map(|engine| Arc::clone(engine) as _).collect();
        Pulse::new(&EnginePool::new(Arc::clone(chosen) as _, others), &CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_falls_ill_is_noticed_at_the_second_look() {
        let engine = engine("ollama");
        let pulse = pulse_of(&engine, &[]);
        assert_eq!(pulse.feel().await, Some(true));
        engine.set_healthy(false);
        assert_eq!(pulse.feel().await, Some(true), "not asked again at once");
        tokio::time::advance(FRESH).await;
        assert_eq!(pulse.feel().await, Some(true), "what was known, while it is asked anew");
        tokio::task::yield_now().await;
        assert_eq!(pulse.feel().await, Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn every_engine_of_the_pool_has_a_pulse_of_its_own() {
        let (ollama, vllm) = (engine("ollama"), engine("vllm"));
        vllm.set_healthy(false);
        let pulse = pulse_of(&ollama, &[&vllm]);
        assert_eq!(pulse.feel_each().await, [("ollama", true), ("vllm", false)]);
        assert_eq!(pulse.feel().await, Some(true), "the chosen one's");
    }
}
