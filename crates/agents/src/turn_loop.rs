//! The loop of an agent: asks the engine, runs the requested tools, sends the results, until the model answers.
//!
//! Everything runs inside the future of the run, so dropping it cancels the engine and the tools.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hob_core::{
    Agent, AgentContext, AgentOutcome, AnswerWarning, Collector, Delta, EngineError, Event, FinishReason,
    GenerateRequest, Generation, GenerationStream, TextSink, ToolCall, ToolChoice, ToolResult, Usage,
};

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
            let (generation, forwarded) = run.ask().await?;
            let RequestedCalls { calls, said, so_far } = match self.0.read(&generation.answer, &tools) {
                ModelTurn::Answer(content) => {
                    run.forward_rest(&content, &forwarded).await;
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
                run.forward_rest(&so_far, &forwarded).await;
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

    /// Asks the engine for the next turn. Returns its answer and the forwarded text.
    async fn ask(&mut self) -> Result<(Generation, String), EngineError> {
        self.turns += 1;
        loop {
            let mut forwarded = String::new();
            let error = match self.ask_once(&mut forwarded).await {
                Ok(generation) => {
                    self.usage = Usage::sum(self.usage, generation.usage);
                    generation.warnings.iter().for_each(|warning| self.warn(warning.clone()));
                    self.has_forwarded |= !forwarded.is_empty();
                    return Ok((generation, forwarded));
                }
                Err(error) => error,
            };
            let again = error.is_context_overflow() && forwarded.is_empty() && self.history.remove_oldest();
            if !again {
                return Err(error);
            }
            tracing::info!(reason = %error, "the conversation exceeds the context of the model; removing results of tools");
            self.warn(AnswerWarning::ContextCompacted);
        }
    }

    async fn ask_once(&self, forwarded: &mut String) -> Result<Generation, EngineError> {
        let request = self.history.request();
        let Some(listener) = &self.context.listener else {
            return self.context.engine.generate(request).await;
        };
        let stream = self.context.engine.stream(request).await?;
        let mut text_filter = self.protocol.text_filter();
        let mut forwarder = TextForwarder {
            listener: listener.as_ref(),
            text_filter: text_filter.as_mut(),
            has_forwarded: self.has_forwarded,
            forwarded,
        };
        let generation = collect(stream, &request.model, &mut forwarder).await?;
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

    /// Forwards the rest of the text of a turn.
    async fn forward_rest(&self, content: &str, forwarded: &str) {
        let Some(listener) = &self.context.listener else { return };
        if let Some(rest) = content.strip_prefix(forwarded).filter(|rest| !rest.is_empty()) {
            let paragraph = if forwarded.is_empty() && self.has_forwarded { "\n\n" } else { "" };
            listener.text(&format!("{paragraph}{rest}")).await;
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

/// Forwards the text of a turn to the listener.
struct TextForwarder<'a> {
    listener: &'a dyn TextSink,
    text_filter: &'a mut dyn TextFilter,
    /// Whether an earlier turn was forwarded; a blank line then separates this one.
    has_forwarded: bool,
    forwarded: &'a mut String,
}

impl TextForwarder<'_> {
    async fn pass(&mut self, piece: &str) {
        let audible = self.text_filter.pass(piece);
        if audible.is_empty() {
            return;
        }
        if self.has_forwarded && self.forwarded.is_empty() {
            self.listener.text("\n\n").await;
        }
        self.forwarded.push_str(&audible);
        self.listener.text(&audible).await;
    }
}

/// Collects a stream and forwards its text; `None` if the stream broke.
async fn collect(
    stream: GenerationStream,
    model: &str,
    forwarder: &mut TextForwarder<'_>,
) -> Result<Option<Generation>, EngineError> {
    let GenerationStream { warnings, mut deltas } = stream;
    let mut collector = Collector::default();
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        if let Delta::Text(piece) = &delta
            && piece.choice == 0
        {
            forwarder.pass(&piece.text).await;
        }
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
