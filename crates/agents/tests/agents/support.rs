//! What the tests share: scripts for the engine, tools, and listeners.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use hob_agents::{AgentStream, PermittedTools, ToolSet, agent, delta_channel};
use hob_core::{
    AgentContext, AgentOutcome, Answer, AnswerWarning, Collector, Delta, Effect, EngineError, EventBus,
    FinishReason, GenerateRequest, Generation, Message, Permit, Reach, Role, RunEvents, Subscription,
    TextSink, Tool, ToolCall, ToolCallDelta, ToolDefinition, ToolError, ToolResult, ToolSpec, Usage,
};
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

pub type Turn = Vec<Result<Delta, EngineError>>;

pub const USAGE: Usage = Usage {
    prompt_tokens: 10,
    completion_tokens: 2,
    cached_tokens: None,
    reasoning_tokens: None,
    load_time: None,
};

/// A turn that ends for this reason.
pub fn finished(mut deltas: Turn, reason: FinishReason) -> Turn {
    deltas.push(Ok(Delta::Finish { choice: 0, reason }));
    deltas.push(Ok(Delta::Done { usage: Some(USAGE) }));
    deltas
}

/// A turn of text in these pieces.
pub fn says(pieces: &[&str]) -> Turn {
    finished(pieces.iter().map(|piece| Ok(Delta::text(*piece))).collect(), FinishReason::Stop)
}

pub fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

/// A turn that says something and makes calls.
pub fn calls(text: &str, calls: &[ToolCall]) -> Turn {
    let mut deltas: Turn = Vec::new();
    if !text.is_empty() {
        deltas.push(Ok(Delta::text(text)));
    }
    deltas.extend(calls.iter().cloned().zip(0..).map(|(call, index)| {
        Ok(Delta::ToolCall(ToolCallDelta {
            choice: 0,
            index,
            id: Some(call.id),
            name: Some(call.name),
            arguments: call.arguments,
        }))
    }));
    finished(deltas, FinishReason::ToolCalls)
}

pub fn refuses(status: u16, message: &str) -> Turn {
    vec![Err(EngineError::Refused {
        engine: "scripted".into(),
        status,
        message: message.into(),
        code: None,
        param: None,
        retry_after: None,
    })]
}

/// An engine that gives these turns, one after the other.
pub fn script(turns: impl IntoIterator<Item = Turn>) -> ScriptedEngine {
    let turns: Mutex<VecDeque<Turn>> = Mutex::new(turns.into_iter().collect());
    ScriptedEngine::new(move |_| {
        turns.lock().unwrap().pop_front().expect("the agent asks more often than the script has turns")
    })
}

pub fn spec(name: &str, reach: Reach) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("Does {name}."),
        parameters: json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] }),
        reach,
        effect: Effect::None,
        untrusted_output: false,
        timeout: None,
    }
}

/// Repeats its text, with its own name; some names do something else.
pub struct TestTool(ToolSpec);

#[async_trait]
impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let text = arguments["text"].as_str().unwrap_or_default();
        match self.0.name.as_str() {
            "fail" => Err(ToolError::new("the well is dry")),
            "panic" => panic!("a tool that panics"),
            // Each waits as many seconds as its text says.
            "wait" => {
                tokio::time::sleep(Duration::from_secs(text.parse().unwrap())).await;
                Ok(format!("waited {text} s"))
            }
            "long" => Ok("x".repeat(5_000)),
            name => Ok(format!("{name}: {text}")),
        }
    }
}

pub fn tool(name: &str) -> Arc<dyn Tool> {
    Arc::new(TestTool(spec(name, Reach::Pure)))
}

/// A tool named `code_interpreter` that gives back its code in capitals.
pub struct Interpreter(ToolSpec);

impl Interpreter {
    pub fn tool() -> Arc<dyn Tool> {
        let string = json!({ "type": "string" });
        let parameters = json!({
            "type": "object",
            "properties": { "language": string, "code": string },
            "required": ["language", "code"],
        });
        Arc::new(Interpreter(ToolSpec { parameters, ..spec("code_interpreter", Reach::Act) }))
    }
}

#[async_trait]
impl Tool for Interpreter {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let [language, code] = ["language", "code"].map(|field| arguments[field].as_str().unwrap());
        Ok(format!("{language} {}", code.trim().to_uppercase()))
    }
}

/// Records the pieces of the text of an answer.
#[derive(Default)]
pub struct PieceLog(Mutex<Vec<String>>);

impl PieceLog {
    pub fn pieces(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl TextSink for PieceLog {
    async fn text(&self, piece: &str) {
        self.0.lock().unwrap().push(piece.to_owned());
    }
}

/// The answer of an agent, put together from its stream.
pub async fn streamed(name: &'static str, test: TestRun, request: GenerateRequest) -> Option<Generation> {
    let (sink, pieces) = delta_channel(&EventBus::new(), "run-1");
    let context = AgentContext { listener: Some(Arc::new(sink)), ..test.context };
    let run = Box::pin(async move { agent(name).unwrap().run(&request, &context).await });
    let mut collector = Collector::default();
    AgentStream::new(run, pieces)
        .for_each(|delta| {
            collector.push(delta.unwrap());
            ready(())
        })
        .await;
    collector.finish("m")
}

/// An engine, tools, and everything that listens.
pub struct TestRun {
    pub engine: Arc<ScriptedEngine>,
    pub context: AgentContext,
    pub received: Arc<PieceLog>,
    events: Arc<Mutex<Vec<String>>>,
    _subscription: Subscription,
}

impl TestRun {
    pub fn new(engine: ScriptedEngine, tools: &[Arc<dyn Tool>]) -> Self {
        let tool_set = ToolSet::new(tools.iter().cloned()).unwrap();
        Self::with_tools(engine, |run| tool_set.for_run(Permit::up_to(Reach::Act), run).unwrap())
    }

    /// A run whose tools are not those of every run.
    pub fn with_tools(engine: ScriptedEngine, tools: impl FnOnce(RunEvents) -> PermittedTools) -> Self {
        let bus = EventBus::new();
        let events: Arc<Mutex<Vec<String>>> = Arc::default();
        let writer = Arc::clone(&events);
        let subscription = bus.subscribe(move |event| {
            writer.lock().unwrap().push(format!("{} {}", event.event.name(), event.event.data()));
        });
        let engine = Arc::new(engine);
        let run = RunEvents::new(bus, "run-1");
        let tools = tools(run.clone());
        let context = AgentContext {
            engine: Arc::clone(&engine) as _,
            tools: Arc::new(tools),
            events: run,
            max_turns: 10,
            listener: None,
        };
        TestRun { engine, context, received: Arc::default(), events, _subscription: subscription }
    }

    /// The same run with a listener.
    pub fn listening(mut self) -> Self {
        self.context.listener = Some(Arc::clone(&self.received) as _);
        self
    }

    pub fn max_turns(mut self, max_turns: u32) -> Self {
        self.context.max_turns = max_turns;
        self
    }

    pub async fn run(&self, name: &str, request: &GenerateRequest) -> Result<AgentOutcome, EngineError> {
        agent(name).unwrap().run(request, &self.context).await
    }

    pub fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    /// The messages of a turn, with their roles.
    pub fn messages(&self, turn: usize) -> Vec<String> {
        let spoken = |message: &Message| format!("{}: {}", message.role.as_str(), message.content.text());
        self.engine.requests()[turn].messages.iter().map(spoken).collect()
    }
}

pub fn asking(question: &str) -> GenerateRequest {
    GenerateRequest {
        model: "m".into(),
        messages: vec![Message::new(Role::User, question)],
        ..GenerateRequest::default()
    }
}

/// An outcome of so many turns, each of which used [`USAGE`].
pub fn outcome(content: &str, turns: u32, tool_results: Vec<ToolResult>) -> AgentOutcome {
    let usage = Usage {
        prompt_tokens: USAGE.prompt_tokens * u64::from(turns),
        completion_tokens: USAGE.completion_tokens * u64::from(turns),
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    };
    AgentOutcome {
        generation: Generation {
            model: "m".into(),
            answer: Answer {
                content: content.into(),
                reasoning: None,
                tool_calls: Vec::new(),
                finish_reason: FinishReason::Stop,
                sealed_reasoning: Vec::new(),
                later_thoughts: Vec::new(),
                logprobs: None,
            },
            alternatives: Vec::new(),
            usage: Some(usage),
            warnings: Vec::new(),
        },
        turns,
        tool_results,
    }
}

/// The same outcome, ended early.
pub fn cut_short(mut outcome: AgentOutcome, warnings: &[AnswerWarning]) -> AgentOutcome {
    outcome.generation.answer.finish_reason = FinishReason::Length;
    outcome.generation.warnings = warnings.to_vec();
    outcome
}

pub fn worked(tool: &str, content: &str) -> ToolResult {
    ToolResult { tool_name: tool.into(), content: content.into(), success: true }
}

pub fn failed(tool: &str, content: &str) -> ToolResult {
    ToolResult { tool_name: tool.into(), content: content.into(), success: false }
}

pub fn definition(name: &str) -> ToolDefinition {
    spec(name, Reach::Pure).definition()
}
