//! What becomes of a choice: whoever holds the ticket says how the answer ended. A ticket that is dropped says nothing, because
//! nobody waited for the answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures::Stream;
use hob_core::{
    AgentOutcome, AnswerWarning, AskError, Delta, DeltaStream, EngineError, FinishReason, GenerationStream,
    Usage,
};

use crate::in_flight::AtWork;
use crate::records::RoutingDecision;
use crate::reward::{AnswerOutcome, Effort, is_models_fault};
use crate::service::RouterBook;

/// The event that ends a call of a tool.
const TOOL_ENDED: &str = "TOOL_CALL_END";

/// A choice whose end is still to come.
pub struct Ticket {
    run: Arc<str>,
    engine: String,
    model: String,
    began: Instant,
    book: RouterBook,
    /// Ends with the ticket.
    _at_work: AtWork,
}

impl Ticket {
    pub(crate) fn new(decision: &RoutingDecision, book: RouterBook, at_work: AtWork) -> Self {
        Ticket {
            run: Arc::clone(&decision.run),
            engine: decision.engine.clone(),
            model: decision.model.clone(),
            began: Instant::now(),
            book,
            _at_work: at_work,
        }
    }

    /// Says how a whole answer ended.
    pub fn conclude(self, outcome: &Result<AgentOutcome, AskError>) {
        match outcome {
            Ok(AgentOutcome { generation, tool_results, .. }) => {
                let failed = tool_results.iter().filter(|result| !result.success).count();
                let signs = Signs {
                    tool_calls: count(tool_results.len()),
                    failed_tool_calls: count(failed),
                    cut_short: generation.answer.finish_reason == FinishReason::Length
                        || generation.warnings.contains(&AnswerWarning::LoopStopped),
                };
                self.answered(signs, generation.usage);
            }
            Err(error) => self.give_up(error),
        }
    }

    /// The same for an answer that did not even begin.
    pub fn give_up(self, error: &AskError) {
        if let AskError::Engine(error) = error {
            self.failed(error);
        }
    }

    /// Another model has answered instead, so that nothing of the answer is this one's.
    pub fn withdraw(self) {
        self.book.withdrawn(Arc::clone(&self.run));
    }

    /// Sees to it that the end of a stream is told.
    pub fn watch(self, stream: GenerationStream) -> GenerationStream {
        let GenerationStream { warnings, deltas } = stream;
        let deltas = Box::pin(RoutedStream { deltas, ticket: Some(self), signs: Signs::default() });
        GenerationStream { warnings, deltas }
    }

    fn answered(self, signs: Signs, usage: Option<Usage>) {
        let effort = Effort {
            seconds: self.began.elapsed().as_secs_f64(),
            dollars: self.book.price(&self.engine, &self.model, usage),
            tool_calls: signs.tool_calls,
            failed_tool_calls: signs.failed_tool_calls,
            cut_short: signs.cut_short,
        };
        self.book.ended(Arc::clone(&self.run), AnswerOutcome::Answered(effort));
    }

    fn failed(self, error: &EngineError) {
        if is_models_fault(error) {
            self.book.ended(Arc::clone(&self.run), AnswerOutcome::Failed);
        }
    }
}

/// What was seen of an answer on its way.
#[derive(Debug, Clone, Copy, Default)]
struct Signs {
    tool_calls: u32,
    failed_tool_calls: u32,
    cut_short: bool,
}

impl Signs {
    fn note(&mut self, delta: &Delta) {
        match delta {
            Delta::Step(step) if step.name == TOOL_ENDED => {
                self.tool_calls += 1;
                self.failed_tool_calls += u32::from(step.data["success"] != true);
            }
            Delta::Finish { reason: FinishReason::Length, .. } => self.cut_short = true,
            _ => {}
        }
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A stream whose end is told.
struct RoutedStream {
    deltas: DeltaStream,
    /// `None` once it has been.
    ticket: Option<Ticket>,
    signs: Signs,
}

impl Stream for RoutedStream {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = std::task::ready!(this.deltas.as_mut().poll_next(context));
        match &next {
            Some(Ok(Delta::Done { usage })) => {
                if let Some(ticket) = this.ticket.take() {
                    ticket.answered(this.signs, *usage);
                }
            }
            Some(Ok(delta)) => this.signs.note(delta),
            Some(Err(error)) => {
                if let Some(ticket) = this.ticket.take() {
                    ticket.failed(error);
                }
            }
            None => {}
        }
        Poll::Ready(next)
    }
}
