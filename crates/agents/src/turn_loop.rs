//! The loop of an agent: asks the engine, runs the requested tools, sends the results, until the model answers.
//!
//! Everything runs inside the future of the run, so dropping it cancels the engine and the tools.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hob_core::{
    Agent, AgentContext, AgentOutcome, AnswerWarning, Collector, Delta, EngineError, Event, FinishReason,
    GenerateRequest, Generation, GenerationStream, TextDelta, TextSink, ToolCall, ToolChoice, ToolResult,
    Usage,
};
use serde_json::{Value, json};

use crate::protocol::{ModelTurn, Protocol, RequestedCalls, TextFilter};
use crate::run_history::RunHistory;

/// Calls of one turn that are run.
const MAX_CALLS: usize = 32;

pub(crate) struct TurnLoop<P>(pub(crate) P);

#[async_trait]
impl<P: Protocol> Agent for TurnLoop<P> {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn run(
        &self,
        request: &GenerateRequest,
        context: &AgentContext,
    ) -> Result<AgentOutcome, EngineError> {
        let tools = context.tools.definitions();
        let mut request = request.clone();
        self.0.prepare(&mut request, &tools)?;
        let mut run = AgentRun::new(&self.0, RunHistory::new(request), context);
        loop {
            let mut turn = TurnEvents::start(run.turns + 1, self.0.name(), context);
            let (generation, forwarder) = run.ask().await?;
            let RequestedCalls { calls, said, so_far } = match self.0.read(&generation.answer, &tools) {
                ModelTurn::Answer(content) => {
                    forwarder.finish(&content).await;
                    return Ok(run.finish(generation, content));
                }
                ModelTurn::Calls(calls) => *calls,
            };
            turn.tool_calls = calls.len();
            // Calls of the last turn are not run, because the model could not read the results.
            let last = run.turns >= context.max_turns;
            if !last {
                run.history.say(said);
                run.execute(&calls).await;
            }
            if last || context.tools.stopped() {
                forwarder.finish(&so_far).await;
                return Ok(run.cut_short(generation, so_far));
            }
            run.last_text = Some(so_far).filter(|words| !words.is_empty()).or(run.last_text);
        }
    }
}

struct AgentRun<'a, P> {
    protocol: &'a P,
    history: RunHistory,
    context: &'a AgentContext,
    turns: u32,
    usage: Option<Usage>,
    warnings: Vec<AnswerWarning>,
    tool_results: Vec<ToolResult>,
    /// The last text of the model in earlier turns.
    last_text: Option<String>,
    /// Whether text of an earlier turn was forwarded.
    has_forwarded: bool,
}

impl<'a, P: Protocol> AgentRun<'a, P> {
    fn new(protocol: &'a P, history: RunHistory, context: &'a AgentContext) -> Self {
        AgentRun {
            protocol,
            history,
            context,
            turns: 0,
            usage: None,
            warnings: Vec::new(),
            tool_results: Vec::new(),
            last_text: None,
            has_forwarded: false,
        }
    }

    /// Asks the engine for the next turn.
    async fn ask(&mut self) -> Result<(Generation, TurnForwarder<'a>), EngineError> {
        self.turns += 1;
        loop {
            let mut forwarder = TurnForwarder {
                listener: self.context.listener.as_deref(),
                text_filter: self.protocol.text_filter(),
                follows_text: self.has_forwarded,
                forwarded: String::new(),
                reasoning: Vec::new(),
                logprobs: Vec::new(),
            };
            let error = match self.ask_once(&mut forwarder).await {
                Ok(generation) => {
                    self.usage = Usage::sum(self.usage, generation.usage);
                    generation.warnings.iter().for_each(|warning| self.warn(warning.clone()));
                    self.has_forwarded |= !forwarder.forwarded.is_empty();
                    return Ok((generation, forwarder));
                }
                Err(error) => error,
            };
            let again =
                error.is_context_overflow() && forwarder.forwarded.is_empty() && self.history.remove_oldest();
            if !again {
                return Err(error);
            }
            tracing::info!(reason = %error, "the conversation exceeds the context of the model; removing results of tools or reasoning");
            self.warn(AnswerWarning::ContextCompacted);
        }
    }

    async fn ask_once(&self, forwarder: &mut TurnForwarder<'_>) -> Result<Generation, EngineError> {
        let request = self.history.request();
        if self.context.listener.is_none() {
            return self.context.engine.generate(request).await;
        }
        let stream = self.context.engine.stream(request).await?;
        let generation = collect(stream, &request.model, forwarder).await?;
        generation.ok_or_else(|| EngineError::Interrupted {
            engine: self.context.engine.key().to_owned(),
            reason: "it ended without a finish".to_owned(),
        })
    }

    /// Runs the calls of a turn concurrently, and adds the results in order, also for calls beyond the limit.
    async fn execute(&mut self, calls: &[ToolCall]) {
        self.context.tools.begin_turn();
        let (run, too_many) = calls.split_at(calls.len().min(MAX_CALLS));
        let wanted: Vec<_> = run.iter().map(|call| self.context.tools.execute(call)).collect();
        let mut results: Vec<ToolResult> =
            stream::iter(wanted).buffered(self.protocol.max_parallel()).collect().await;
        results.extend(too_many.iter().map(not_run));
        for shown in self.protocol.show(calls, &results) {
            self.history.show(shown);
        }
        self.tool_results.extend(results);
        let choice = &mut self.history.request_mut().tool_choice;
        if matches!(choice, Some(ToolChoice::Required | ToolChoice::Function(_))) {
            // A call that is forced in every turn would prevent an answer.
            *choice = None;
        }
    }

    fn warn(&mut self, warning: AnswerWarning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn finish(self, mut generation: Generation, content: String) -> AgentOutcome {
        generation.answer.content = content;
        generation.usage = self.usage;
        generation.warnings = self.warnings;
        AgentOutcome { generation, turns: self.turns, tool_results: self.tool_results }
    }

    /// Ends the run with the answer so far.
    fn cut_short(mut self, mut generation: Generation, so_far: String) -> AgentOutcome {
        if self.context.tools.stopped() {
            self.warn(AnswerWarning::LoopStopped);
        }
        // The caller does not know the agent's tools.
        generation.answer.tool_calls.clear();
        generation.answer.finish_reason = FinishReason::Length;
        let content = if so_far.is_empty() { self.last_text.take().unwrap_or_default() } else { so_far };
        self.finish(generation, content)
    }
}

/// Forwards a turn to the listener.
struct TurnForwarder<'a> {
    listener: Option<&'a dyn TextSink>,
    /// `None` forwards all pieces.
    text_filter: Option<Box<dyn TextFilter>>,
    /// Whether text of an earlier turn was forwarded; a blank line then separates this one.
    follows_text: bool,
    /// The forwarded text.
    forwarded: String,
    /// Reasoning that waits for text: a turn without any may not belong to the answer.
    reasoning: Vec<Delta>,
    /// The token probabilities of text that was not forwarded yet.
    logprobs: Vec<Value>,
}

impl TurnForwarder<'_> {
    async fn pass(&mut self, delta: &Delta) {
        let Some(listener) = self.listener else { return };
        match (&mut self.text_filter, delta) {
            // The end of the run.
            (_, Delta::Finish { .. } | Delta::Done { .. }) => {}
            (None, piece) => {
                if let Delta::Text(TextDelta { choice: 0, text, .. }) = piece {
                    self.forwarded.push_str(text);
                }
                listener.delta(piece.clone()).await;
            }
            (Some(text_filter), Delta::Text(piece)) if piece.choice == 0 => {
                let tokens = piece.logprobs.as_ref().and_then(|logprobs| logprobs["content"].as_array());
                self.logprobs.extend(tokens.into_iter().flatten().cloned());
                let audible = text_filter.pass(&piece.text);
                self.forward(audible).await;
            }
            (Some(_), Delta::Reasoning { choice: 0, .. } | Delta::ReasoningSeal { choice: 0, .. }) => {
                self.reasoning.push(delta.clone());
            }
            (Some(_), _) => {}
        }
    }

    /// Forwards text, with what belongs before it.
    async fn forward(&mut self, text: String) {
        let Some(listener) = self.listener.filter(|_| !text.is_empty()) else { return };
        if self.follows_text && self.forwarded.is_empty() {
            listener.text("\n\n").await;
        }
        self.forward_reasoning().await;
        self.forwarded.push_str(&text);
        let tokens = std::mem::take(&mut self.logprobs);
        let logprobs = (!tokens.is_empty()).then(|| Box::new(json!({ "content": tokens })));
        listener.delta(Delta::Text(TextDelta { choice: 0, text, logprobs })).await;
    }

    async fn forward_reasoning(&mut self) {
        let Some(listener) = self.listener else { return };
        for piece in self.reasoning.drain(..) {
            listener.delta(piece).await;
        }
    }

    /// Forwards the rest of the answer.
    async fn finish(mut self, content: &str) {
        if let Some(rest) = content.strip_prefix(self.forwarded.as_str()) {
            self.forward(rest.to_owned()).await;
        }
        // An answer may consist of reasoning alone.
        self.forward_reasoning().await;
    }
}

/// Collects a stream and forwards it; `None` if the stream broke.
async fn collect(
    stream: GenerationStream,
    model: &str,
    forwarder: &mut TurnForwarder<'_>,
) -> Result<Option<Generation>, EngineError> {
    let GenerationStream { warnings, mut deltas } = stream;
    let mut collector = Collector::default();
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        forwarder.pass(&delta).await;
        let done = matches!(delta, Delta::Done { .. });
        collector.push(delta);
        if done {
            return Ok(collector.finish(model).map(|generation| Generation { warnings, ..generation }));
        }
    }
    Ok(None)
}

/// Publishes the start of a turn, and its end when dropped, also for a failed or cancelled run.
struct TurnEvents<'a> {
    number: u32,
    agent: &'static str,
    context: &'a AgentContext,
    tool_calls: usize,
}

impl<'a> TurnEvents<'a> {
    fn start(number: u32, agent: &'static str, context: &'a AgentContext) -> Self {
        context.events.publish(Event::AgentTurnStart { agent: agent.to_owned(), turn: number });
        TurnEvents { number, agent, context, tool_calls: 0 }
    }
}

impl Drop for TurnEvents<'_> {
    fn drop(&mut self) {
        let (agent, turn) = (self.agent.to_owned(), self.number);
        self.context.events.publish(Event::AgentTurnEnd { agent, turn, tool_calls: self.tool_calls });
    }
}

fn not_run(call: &ToolCall) -> ToolResult {
    ToolResult {
        tool_name: call.name.clone(),
        content: format!("not run: the limit is {MAX_CALLS} calls in one turn; make fewer calls at a time"),
        success: false,
    }
}
