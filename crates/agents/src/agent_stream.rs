//! The run of an agent as a stream of deltas: text, reasoning, steps, and the finish.
//!
//! The reader of the stream polls the run, so dropping the stream cancels the run.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures::Stream;
use hob_core::{
    AgentOutcome, AgentStep, Delta, EngineError, EventBus, PublishedEvent, Subscription, TextSink,
};
use tokio::sync::mpsc;

/// Deltas that may wait for the reader. Text waits for space in the queue; a step that finds none is dropped.
const QUEUE_CAPACITY: usize = 64;

pub type RunFuture = Pin<Box<dyn Future<Output = Result<AgentOutcome, EngineError>> + Send>>;

/// Forwards the answer of an agent to the stream.
pub struct DeltaSink(mpsc::Sender<Delta>);

#[async_trait]
impl TextSink for DeltaSink {
    async fn text(&self, piece: &str) {
        self.delta(Delta::text(piece)).await;
    }

    async fn delta(&self, delta: Delta) {
        // Fails only if the reader was dropped, and the run with it.
        let _ = self.0.send(delta).await;
    }
}

/// A channel from an agent to the reader of its stream. The steps of the run `run` come from the bus.
pub fn delta_channel(bus: &EventBus, run: &str) -> (DeltaSink, DeltaReceiver) {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    let steps = sender.clone();
    let subscription = bus.subscribe_run(run, move |event| {
        if let Some(step) = step(event) {
            let _ = steps.try_send(Delta::Step(step));
        }
    });
    (DeltaSink(sender), DeltaReceiver { receiver, _subscription: subscription })
}

/// The steps that a reader gets: the tool calls. The first one also shows that the engine has answered.
fn step(event: &PublishedEvent) -> Option<Box<AgentStep>> {
    let tool = event.event.tool_step()?;
    Some(Box::new(AgentStep { name: event.event.name(), data: event.event.data(), tool: Some(tool) }))
}

pub struct DeltaReceiver {
    receiver: mpsc::Receiver<Delta>,
    _subscription: Subscription,
}

pub struct AgentStream {
    /// `None` once it has ended.
    run: Option<RunFuture>,
    pieces: DeltaReceiver,
    ending: VecDeque<Result<Delta, EngineError>>,
}

impl AgentStream {
    pub fn new(run: RunFuture, pieces: DeltaReceiver) -> Self {
        AgentStream { run: Some(run), pieces, ending: VecDeque::new() }
    }

    /// Queued deltas come before the finish.
    fn end(&mut self, outcome: Result<AgentOutcome, EngineError>) {
        while let Ok(piece) = self.pieces.receiver.try_recv() {
            self.ending.push_back(Ok(piece));
        }
        match outcome {
            Ok(AgentOutcome { generation, .. }) => {
                // The head of the answer was already sent.
                for warning in &generation.warnings {
                    self.ending.push_back(Ok(Delta::Step(Box::new(AgentStep::warning(warning)))));
                }
                for (choice, answer) in (0..).zip(generation.answers()) {
                    let reason = answer.finish_reason.clone();
                    self.ending.push_back(Ok(Delta::Finish { choice, reason }));
                }
                self.ending.push_back(Ok(Delta::Done { usage: generation.usage }));
            }
            Err(error) => self.ending.push_back(Err(error)),
        }
    }
}

impl Stream for AgentStream {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(run) = &mut this.run {
            // The run comes first, because it fills the queue.
            if let Poll::Ready(outcome) = run.as_mut().poll(context) {
                this.run = None;
                this.end(outcome);
            } else {
                return this.pieces.receiver.poll_recv(context).map(|piece| piece.map(Ok));
            }
        }
        Poll::Ready(this.ending.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{Event, RunEvents};

    use super::*;

    #[test]
    fn a_stream_gets_the_steps_of_its_own_run_only() {
        let bus = EventBus::new();
        let (_sink, mut pieces) = delta_channel(&bus, "mine");
        let [mine, other] = ["mine", "other"].map(|run| RunEvents::new(bus.clone(), run));
        assert!(!other.have_subscribers(), "no event is created for it");
        let call =
            || Event::ToolCallStart { id: "call-1".into(), tool: "think".into(), arguments: "{}".into() };
        other.publish(call());
        mine.publish(call());
        assert!(matches!(pieces.receiver.try_recv(), Ok(Delta::Step(_))));
        assert!(pieces.receiver.try_recv().is_err());
        drop(pieces);
        assert!(!mine.have_subscribers());
    }
}
