//! Whether the engine answers, known without waiting for it: a report that is read every few seconds must not take as long
//! as an engine that hangs.

use std::sync::Arc;
use std::time::Duration;

use hob_system::System;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(4);

/// How long somebody waits for the first answer there ever is.
const FIRST_LOOK: Duration = Duration::from_millis(250);

/// What is known of the engine's health.
pub(crate) struct Pulse {
    system: Arc<System>,
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

impl Pulse {
    /// Asks no more once `stopping`.
    pub(crate) fn new(system: Arc<System>, stopping: CancellationToken) -> Self {
        Pulse { system, felt: Arc::new(watch::Sender::default()), stopping }
    }

    /// Whether the engine answered when it was last asked; `None` when it has not been heard of yet. An answer that is no
    /// longer fresh is still given, and a new one asked for.
    pub(crate) async fn feel(&self) -> Option<bool> {
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
        let (system, felt, stopping) =
            (Arc::clone(&self.system), Arc::clone(&self.felt), self.stopping.clone());
        tokio::spawn(async move {
            let asking = Asking(felt);
            if let Some(healthy) = stopping.run_until_cancelled(system.healthy()).await {
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
    use hob_core::{EventBus, Unrecorded};
    use hob_system::{SystemParts, ToolBox};
    use hob_testkit::ScriptedEngine;

    use super::*;

    fn pulse_of(engine: &Arc<ScriptedEngine>) -> Pulse {
        let system = System::new(SystemParts {
            engine: Arc::clone(engine) as _,
            default_model: None,
            agent: None,
            tools: ToolBox::default(),
            max_turns: 1,
            bus: EventBus::new(),
            log: Arc::new(Unrecorded),
        });
        Pulse::new(Arc::new(system), CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_falls_ill_is_noticed_at_the_second_look() {
        let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
        let pulse = pulse_of(&engine);
        assert_eq!(pulse.feel().await, Some(true));
        engine.set_healthy(false);
        assert_eq!(pulse.feel().await, Some(true), "not asked again at once");
        tokio::time::advance(FRESH).await;
        assert_eq!(pulse.feel().await, Some(true), "what was known, while it is asked anew");
        tokio::task::yield_now().await;
        assert_eq!(pulse.feel().await, Some(false));
    }
}
