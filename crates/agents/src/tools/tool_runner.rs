//! The tools of one run. The one place where a call is checked, run, bounded and told of.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use hob_core::{Effect, Event, Permit, RunEvents, ToolCall, ToolDefinition, ToolResult, Tools};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::loop_guard::{LoopGuard, Verdict};
use super::schema_check;
use super::taint::{AllowedAfterUntrusted, SETTING, Taint};
use super::tool_set::{Detail, Held};
use super::truncate::{MOST_CHARACTERS, truncate};

/// How long a call may take when its tool does not say.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// How often the tools of a run may ask an engine when nobody says otherwise.
const FEW_QUESTIONS: u32 = 4;

/// What one run may use, and how it did so far.
pub struct RunTools {
    tools: Vec<Arc<Held>>,
    permit: Permit,
    events: RunEvents,
    allowed_after_untrusted: AllowedAfterUntrusted,
    /// What the owner wrote in the request.
    owner_words: String,
    most_questions: u32,
    detail: Detail,
    progress: Mutex<Progress>,
}

/// How a run did so far.
#[derive(Default)]
struct Progress {
    guard: LoopGuard,
    taint: Taint,
    /// Calls that asked an engine.
    questions: u32,
}

impl RunTools {
    pub(super) fn new(
        tools: Vec<Arc<Held>>,
        permit: Permit,
        events: RunEvents,
        allowed_after_untrusted: AllowedAfterUntrusted,
    ) -> Self {
        let taint = if permit.tainted { Taint::from_the_start() } else { Taint::default() };
        RunTools {
            tools,
            permit,
            events,
            allowed_after_untrusted,
            owner_words: String::new(),
            most_questions: FEW_QUESTIONS,
            detail: Detail::Brief,
            progress: Mutex::new(Progress { taint, ..Progress::default() }),
        }
    }

    /// The same for a request that the owner wrote: what these words name may be sent and saved by a tainted run too.
    pub fn for_owner_words(self, owner_words: String) -> Self {
        RunTools { owner_words, ..self }
    }

    /// The same with another bound on how often its tools may ask an engine.
    pub fn with_most_questions(self, most_questions: u32) -> Self {
        RunTools { most_questions, ..self }
    }

    /// The same with definitions that tell everything, for programs other than our own agents.
    pub fn told_in_full(self) -> Self {
        RunTools { detail: Detail::Full, ..self }
    }

    fn allowed(&self) -> impl Iterator<Item = &Arc<Held>> {
        self.tools.iter().filter(|held| self.permit.allows(held.spec()))
    }

    /// Whether a model is told of it: not of two names for one tool.
    fn is_offered(&self, held: &Held) -> bool {
        held.tool.alias_of().is_none_or(|first| !self.allowed().any(|other| other.spec().name == first))
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may run after what the run has read and asked so far.
    fn admit(&self, held: &Held, arguments: &Value) -> Result<(), String> {
        let spec = held.spec();
        let mut progress = self.progress();
        if let Some(source) = progress.taint.source()
            && spec.effect != Effect::None
            && !self.allowed_after_untrusted.allows(&spec.name, arguments)
            && !held.tool.is_named_by_owner(arguments, &self.owner_words)
        {
            tracing::info!(tool = %spec.name, %source, "a call was refused: its run has read text from outside");
            return Err(format!(
                "{name} is not available after this run has read text from outside ({source}); the owner can allow it with \
                 {SETTING} = [\"{name}\"]",
                name = spec.name
            ));
        }
        if held.tool.asks_engine() {
            if progress.questions >= self.most_questions {
                return Err(format!(
                    "{} was called {} times, which is all that one run may; use what you have",
                    spec.name, progress.questions
                ));
            }
            progress.questions += 1;
        }
        if spec.untrusted_output {
            progress.taint.note_read(&spec.name);
        }
        Ok(())
    }

    /// What the tool says, or why it did not run, both in words for the model.
    async fn run(&self, call: &ToolCall) -> Result<String, String> {
        let arguments = schema_check::parse(&call.arguments);
        // Text that is no JSON is compared as it stands.
        let compared = arguments.clone().unwrap_or_else(|_| Value::String(call.arguments.clone()));
        let verdict = self.progress().guard.judge(&call.name, &compared);
        match verdict {
            Verdict::Run => {}
            Verdict::Warn => {
                return Err(format!(
                    "you have called {} three times with the same arguments, the result will not change; use what you have, \
                     or try something else",
                    call.name
                ));
            }
            Verdict::Stop => return Err("stopped: the same call was made again and again".to_owned()),
        }
        let held = self.find(&call.name)?;
        let arguments = arguments?;
        let schema = held.schema().map_err(|error| error.to_string())?;
        schema_check::check(schema, &arguments)?;
        // What a call has done later inherits what its run had read when it was chosen.
        let tainted = self.progress().taint.source().is_some();
        let permit = Permit { tainted, ..self.permit.clone() };
        self.admit(held, &arguments)?;
        finish_in_time(held, arguments, &permit).await
    }

    fn find(&self, name: &str) -> Result<&Held, String> {
        match self.tools.iter().find(|held| held.spec().name == name) {
            Some(held) if self.permit.allows(held.spec()) => Ok(held),
            Some(_) => Err(format!("the tool '{name}' is not available to this caller")),
            None => {
                let names: Vec<&str> = self.allowed().map(|held| held.spec().name.as_str()).collect();
                Err(match names.as_slice() {
                    [] => format!("there is no tool '{name}', nor any other"),
                    names => format!("there is no tool '{name}'; the tools are {}", names.join(", ")),
                })
            }
        }
    }
}

async fn finish_in_time(held: &Held, arguments: Value, permit: &Permit) -> Result<String, String> {
    let spec = held.spec();
    let limit = spec.timeout.unwrap_or(USUAL_TIMEOUT);
    // A tool that panics is done with: nothing of it is used again but what every call shares anyway.
    let call = AssertUnwindSafe(async { held.tool.call_for(arguments, permit).await }).catch_unwind();
    match timeout(limit, call).await {
        Ok(Ok(Ok(output))) => Ok(output),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(_panic)) => {
            tracing::error!(tool = %spec.name, "a tool panicked");
            Err(format!("the tool '{}' broke; this is a fault of the tool, not of the arguments", spec.name))
        }
        Err(_elapsed) => Err(format!("{} did not finish within {} s", spec.name, limit.as_secs_f32())),
    }
}

/// Tells of a call's start and, whatever becomes of it, of its end: a run that is cancelled drops it.
struct Told<'a> {
    events: &'a RunEvents,
    tool: &'a str,
    started: Instant,
    success: bool,
}

impl<'a> Told<'a> {
    fn start(events: &'a RunEvents, call: &'a ToolCall) -> Self {
        events.publish(Event::ToolCallStart { tool: call.name.clone(), arguments: call.arguments.clone() });
        Told { events, tool: &call.name, started: Instant::now(), success: false }
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        let (tool, latency) = (self.tool.to_owned(), self.started.elapsed());
        self.events.publish(Event::ToolCallEnd { tool, success: self.success, latency });
    }
}

#[async_trait]
impl Tools for RunTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.allowed().filter(|held| self.is_offered(held)).map(|held| held.definition(self.detail)).collect()
    }

    fn begin_turn(&self) {
        self.progress().taint.begin_turn();
    }

    async fn execute(&self, call: &ToolCall) -> ToolResult {
        let mut told = Told::start(&self.events, call);
        let result = self.run(call).await;
        told.success = result.is_ok();
        let content = result.unwrap_or_else(|reason| reason);
        ToolResult {
            tool_name: call.name.clone(),
            content: truncate(content, MOST_CHARACTERS),
            success: told.success,
        }
    }

    fn stopped(&self) -> bool {
        self.progress().guard.stopped()
    }
}
