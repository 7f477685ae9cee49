//! Reports the outcome of an answer. A dropped reporter reports nothing: the caller did not wait for the answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures::Stream;
use hob_core::{
    AgentOutcome, AnswerWarning, AskError, Delta, DeltaStream, EngineError, FinishReason, GenerationStream,
    Usage,
};

use crate::in_flight::InFlightGuard;
use crate::records::RoutingDecision;
use crate::reward::{AnswerEffort, AnswerOutcome, is_models_fault};
use crate::service::RoutingService;

/// The step that ends a tool call.
const TOOL_ENDED: &str = "TOOL_CALL_END";

pub struct OutcomeReporter {
    run: Arc<str>,
    engine: String,
    model: String,
    began: Instant,
    service: RoutingService,
    _in_flight: InFlightGuard,
}

impl OutcomeReporter {
    pub(crate) fn new(decision: &RoutingDecision, service: RoutingService, in_flight: InFlightGuard) -> Self {
        OutcomeReporter {
            run: Arc::clone(&decision.run),
            engine: decision.engine.clone(),
            model: decision.model.clone(),
            began: Instant::now(),
            service,
            _in_flight: in_flight,
        }
    }

    /// Reports a complete answer.
    pub fn report(self, outcome: &Result<AgentOutcome, AskError>) {
        match outcome {
            Ok(AgentOutcome { generation, tool_results, .. }) => {
                let failed = tool_results.iter().filter(|result| !result.success).count();
                let signs = AnswerSigns {
                    tool_calls: count(tool_results.len()),
                    failed_tool_calls: count(failed),
                    cut_short: generation.answer.finish_reason == FinishReason::Length
                        || generation.warnings.contains(&AnswerWarning::LoopStopped),
                };
                self.answered(signs, generation.usage);
            }
            Err(error) => self.report_error(error),
        }
    }

    /// Reports a failure before the answer.
    pub fn report_error(self, error: &AskError) {
        if let AskError::Engine(error) = error {
            self.failed(error);
        }
    }

    /// Withdraws the choice, because another model has answered.
    pub fn withdraw(self) {
        self.service.withdraw(Arc::clone(&self.run));
    }

    /// Reports the end of a stream.
    pub fn watch(self, stream: GenerationStream) -> GenerationStream {
        let GenerationStream { warnings, deltas } = stream;
        let deltas = Box::pin(ReportedStream { deltas, reporter: Some(self), signs: AnswerSigns::default() });
        GenerationStream { warnings, deltas }
    }

    fn answered(self, signs: AnswerSigns, usage: Option<Usage>) {
        let effort = AnswerEffort {
            seconds: self.began.elapsed().as_secs_f64(),
            dollars: self.service.price(&self.engine, &self.model, usage),
            tool_calls: signs.tool_calls,
            failed_tool_calls: signs.failed_tool_calls,
            cut_short: signs.cut_short,
        };
        self.service.record_outcome(Arc::clone(&self.run), AnswerOutcome::Answered(effort));
    }

    fn failed(self, error: &EngineError) {
        if is_models_fault(error) {
            self.service.record_outcome(Arc::clone(&self.run), AnswerOutcome::Failed);
        }
    }
}

/// The observed properties of an answer.
#[derive(Debug, Clone, Copy, Default)]
struct AnswerSigns {
    tool_calls: u32,
    failed_tool_calls: u32,
    cut_short: bool,
}

impl AnswerSigns {
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

struct ReportedStream {
    deltas: DeltaStream,
    /// `None` after the report.
    reporter: Option<OutcomeReporter>,
    signs: AnswerSigns,
}

impl Stream for ReportedStream {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = std::task::ready!(this.deltas.as_mut().poll_next(context));
        match &next {
            Some(Ok(Delta::Done { usage })) => {
                if let Some(reporter) = this.reporter.take() {
                    reporter.answered(this.signs, *usage);
                }
            }
            Some(Ok(delta)) => this.signs.note(delta),
            Some(Err(error)) => {
                if let Some(reporter) = this.reporter.take() {
                    reporter.failed(error);
                }
            }
            None => {}
        }
        Poll::Ready(next)
    }
}
