//! One call to an engine while it runs: counts what it writes, settles its reservation, ends its span and writes its record, once,
//! however it ends. Knows no engine.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use futures::Stream;
use hob_core::token_estimate::tokens_of;
use hob_core::{
    Answer, CallReservation, CallTally, Delta, DeltaStream, EngineError, Event, FinishReason, Generation,
    GenerationStream, KeyGrant, MediaStream, ReasoningSeal, RequestSource, RunEvents, SealedReasoning,
    TraceParent, Usage,
};
use hob_net::chosen_host::{HostNote, noting_host};
use hob_net::trace_context::within;

use crate::energy::EnergyShare;
use crate::inference::{CallDetails, Inference, InferenceEnd};
use crate::recorder::Recorder;
use crate::trace::{Span, error_type};

/// The context of the inferences of one run.
#[derive(Clone)]
pub struct RecordContext {
    pub run: Arc<str>,
    pub source: RequestSource,
    pub agent: Option<String>,
    pub events: RunEvents,
    pub recorder: Arc<Recorder>,
    /// The parent span; `None` for the current one.
    pub trace_parent: Option<TraceParent>,
    /// The key that pays.
    pub key: Option<Arc<KeyGrant>>,
    /// Whom the request is for, in the words of the client.
    pub end_user: Option<Arc<str>>,
    /// Counts what the request uses.
    pub tally: Option<Arc<CallTally>>,
    /// Where the request came from; without a host.
    pub details: CallDetails,
}

/// The codes of errors by which a provider says that it read the prompt and withholds the answer.
const FILTERED: [&str; 2] = ["content_filter", "content_policy_violation"];

/// Bytes of an answer: text, reasoning, also that which only its provider can read, and calls.
fn written(answer: &Answer) -> u64 {
    let thought = answer.reasoning.as_ref().map_or(0, String::len);
    let hidden = answer.sealed_reasoning.iter().map(|sealed| match sealed {
        SealedReasoning::Redacted { data } => data.len(),
        SealedReasoning::Signed { .. } => 0,
    });
    let calls = answer.tool_calls.iter().map(|call| call.arguments.len());
    (answer.content.len() + thought + hidden.chain(calls).sum::<usize>()) as u64
}

/// An inference in progress. If dropped before it is settled, it was cancelled.
pub(crate) struct InferenceInProgress {
    pub(crate) context: Arc<RecordContext>,
    pub(crate) engine: String,
    pub(crate) model: String,
    pub(crate) streamed: bool,
    pub(crate) started: SystemTime,
    pub(crate) clock: Instant,
    pub(crate) first_token: Option<Duration>,
    /// The estimated prompt tokens, if the engine reports none.
    pub(crate) prompt_estimate: u64,
    pub(crate) written: u64,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish_reason: Option<FinishReason>,
    pub(crate) settled: bool,
    /// The host that got the question; `None` if the engine has only one.
    pub(crate) host: Option<HostNote>,
    /// What is reserved of the limits of its key.
    pub(crate) reservation: Option<Box<dyn CallReservation>>,
    /// Its share of the energy.
    pub(crate) share: Option<EnergyShare>,
    pub(crate) span: Span,
}

impl InferenceInProgress {
    /// Waits for a whole answer, and records it.
    pub(crate) async fn whole(
        mut self,
        answer: impl Future<Output = Result<Generation, EngineError>>,
    ) -> Result<Generation, EngineError> {
        match within(self.span.trace_parent(), noting_host(self.host.clone(), answer)).await {
            Ok(mut generation) => {
                self.written = generation.answers().map(written).sum();
                self.usage = generation.usage;
                generation.usage = Some(self.counted().0);
                self.span.set("gen_ai.response.model", generation.model.as_str());
                self.settle(InferenceEnd::Complete(generation.answer.finish_reason.clone()));
                Ok(generation)
            }
            Err(error) => {
                self.fail(&error);
                Err(error)
            }
        }
    }

    /// Waits for a stream, which is recorded at its end.
    pub(crate) async fn streamed(
        mut self,
        stream: impl Future<Output = Result<GenerationStream, EngineError>>,
    ) -> Result<GenerationStream, EngineError> {
        match within(self.span.trace_parent(), noting_host(self.host.clone(), stream)).await {
            Ok(GenerationStream { warnings, deltas }) => Ok(GenerationStream {
                warnings,
                deltas: Box::pin(RecordedStream { deltas, inference: self }),
            }),
            Err(error) => {
                self.fail(&error);
                Err(error)
            }
        }
    }

    /// Records an inference that wrote nothing, and gives its count of tokens where the engine gave none.
    pub(crate) fn read_only(&mut self, prompt_tokens: &mut Option<u64>) {
        self.usage = prompt_tokens.map(|prompt_tokens| Usage {
            prompt_tokens,
            completion_tokens: 0,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        });
        *prompt_tokens = Some(self.counted().0.prompt_tokens);
        self.settle(InferenceEnd::Complete(FinishReason::Stop));
    }

    /// The usage, and whether it is an estimate. An engine that reports no tokens at all for a prompt has not counted.
    fn counted(&self) -> (Usage, bool) {
        match self.usage {
            Some(usage) if usage.total_tokens() > 0 || self.prompt_estimate == 0 => {
                (usage.plausible(), false)
            }
            uncounted => {
                let usage = Usage {
                    prompt_tokens: self.prompt_estimate,
                    completion_tokens: tokens_of(self.written),
                    cached_tokens: None,
                    reasoning_tokens: None,
                    load_time: uncounted.and_then(|usage| usage.load_time),
                };
                (usage.plausible(), true)
            }
        }
    }

    pub(crate) fn fail(&mut self, error: &EngineError) {
        self.span.fail(error_type(error));
        match error {
            EngineError::Timeout { .. } | EngineError::Interrupted { .. } | EngineError::Malformed { .. } => {
                self.keep_reservation()
            }
            EngineError::Refused { code: Some(code), .. } if FILTERED.contains(&code.as_str()) => {
                let (usage, _) = self.counted();
                if let Some(reservation) = self.reservation.take() {
                    reservation.settle(usage);
                }
            }
            _ => {}
        }
        self.settle(InferenceEnd::Failed(error.to_string()));
    }

    /// Whether the question went out and nothing says how much of an answer there is: a provider may have written one, and charges for it.
    fn is_unanswered(&self) -> bool {
        self.written == 0 && self.usage.is_none()
    }

    /// Counts all that is reserved for a question without an answer.
    fn keep_reservation(&mut self) {
        if self.is_unanswered()
            && let Some(reservation) = self.reservation.take()
        {
            reservation.keep();
        }
    }

    fn settle(&mut self, ending: InferenceEnd) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        let latency = self.clock.elapsed();
        let (usage, estimated) = self.counted();
        self.end_span(&ending, usage);
        if let Some(reservation) = self.reservation.take() {
            match (&ending, self.first_token, self.usage) {
                // An engine that refused, or that was not reached, used nothing.
                (InferenceEnd::Failed(_), None, None) => drop(reservation),
                (InferenceEnd::Cancelled, ..) if self.is_unanswered() => reservation.keep(),
                _ => reservation.settle(usage),
            }
        }
        let ended = self.context.events.have_subscribers().then(|| Event::InferenceEnd {
            engine: self.engine.clone(),
            model: self.model.clone(),
            success: matches!(ending, InferenceEnd::Complete(_)),
            latency,
        });
        if let Some(tally) = &self.context.tally {
            tally.add(&self.model, usage);
        }
        self.context.recorder.log.record(Inference {
            started: self.started,
            run: Arc::clone(&self.context.run),
            source: self.context.source,
            engine: std::mem::take(&mut self.engine),
            model: std::mem::take(&mut self.model),
            agent: self.context.agent.clone(),
            key: self.context.key.as_ref().map(|key| Arc::clone(&key.name)),
            end_user: self.context.end_user.clone(),
            streamed: self.streamed,
            usage,
            estimated,
            latency,
            first_token: self.first_token,
            energy: self.share.take().and_then(EnergyShare::end),
            ending,
            details: CallDetails {
                host: self.host.as_ref().and_then(HostNote::get),
                ..self.context.details.clone()
            },
        });
        // After the record, which a page reads when it hears of the end.
        if let Some(ended) = ended {
            self.context.events.publish(ended);
        }
    }

    fn end_span(&mut self, ending: &InferenceEnd, usage: Usage) {
        self.span.set("gen_ai.usage.input_tokens", usage.prompt_tokens);
        self.span.set("gen_ai.usage.output_tokens", usage.completion_tokens);
        match ending {
            InferenceEnd::Complete(reason) => self.span.set("gen_ai.response.finish_reasons", reason),
            InferenceEnd::Cancelled => self.span.fail("cancelled"),
            // The kind of failure is already set.
            InferenceEnd::Failed(_) => {}
        }
        self.span.end();
    }

    /// Notes a delta, and adds the usage to `Done` if the engine reported none.
    fn note(&mut self, delta: &mut Delta) {
        if self.first_token.is_none() {
            self.first_token = Some(self.clock.elapsed());
        }
        match delta {
            Delta::Text(piece) => self.written += piece.text.len() as u64,
            Delta::Reasoning { text, .. } => self.written += text.len() as u64,
            Delta::ToolCall(piece) => self.written += piece.arguments.len() as u64,
            Delta::ReasoningSeal { seal: ReasoningSeal::Redacted(data), .. } => {
                self.written += data.len() as u64;
            }
            Delta::Step(_) | Delta::ReasoningSeal { .. } => {}
            Delta::Finish { reason, .. } => self.finish_reason = Some(reason.clone()),
            Delta::Done { usage } => {
                self.usage = *usage;
                *usage = Some(self.counted().0);
                let reason = self.finish_reason.take().unwrap_or(FinishReason::Stop);
                self.settle(InferenceEnd::Complete(reason));
            }
        }
    }
}

impl Drop for InferenceInProgress {
    fn drop(&mut self) {
        self.settle(InferenceEnd::Cancelled);
    }
}

pub(crate) struct RecordedMedia {
    pub(crate) body: MediaStream,
    pub(crate) inference: InferenceInProgress,
}

impl Stream for RecordedMedia {
    type Item = Result<Vec<u8>, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = std::task::ready!(this.body.as_mut().poll_next(context));
        match &next {
            Some(Ok(_)) => {}
            Some(Err(error)) => this.inference.fail(error),
            None => this.inference.settle(InferenceEnd::Complete(FinishReason::Stop)),
        }
        Poll::Ready(next)
    }
}

struct RecordedStream {
    deltas: DeltaStream,
    inference: InferenceInProgress,
}

impl Stream for RecordedStream {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut next = std::task::ready!(this.deltas.as_mut().poll_next(context));
        match &mut next {
            Some(Ok(delta)) => this.inference.note(delta),
            Some(Err(error)) => this.inference.fail(error),
            None => {
                this.inference.span.fail("interrupted");
                this.inference.keep_reservation();
                this.inference.settle(InferenceEnd::Failed("it ended without a finish".to_owned()));
            }
        }
        Poll::Ready(next)
    }
}
