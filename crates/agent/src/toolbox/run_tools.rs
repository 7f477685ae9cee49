//! The tools of one run. The one place where a call is checked, run, bounded and told of.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use hob_core::{Event, Permit, RunEvents, ToolCall, ToolDefinition, ToolResult, Tools};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::cut::{MOST_CHARACTERS, cut};
use super::loop_guard::{LoopGuard, Verdict};
use super::{Held, arguments};

/// How long a call may take when its tool does not say.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// What one run may use, and how it did so far.
pub struct RunTools {
    tools: Vec<Arc<Held>>,
    permit: Permit,
    events: RunEvents,
    guard: Mutex<LoopGuard>,
}

impl RunTools {
    pub(super) fn new(tools: Vec<Arc<Held>>, permit: Permit, events: RunEvents) -> Self {
        RunTools { tools, permit, events, guard: Mutex::default() }
    }

    fn allowed(&self) -> impl Iterator<Item = &Arc<Held>> {
        self.tools.iter().filter(|held| self.permit.allows(held.spec()))
    }

    fn guard(&self) -> MutexGuard<'_, LoopGuard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the tool says, or why it did not run, both in words for the model.
    async fn run(&self, call: &ToolCall) -> Result<String, String> {
        let arguments = arguments::parse(&call.arguments);
        // Text that is no JSON is compared as it stands.
        let compared = arguments.clone().unwrap_or_else(|_| Value::String(call.arguments.clone()));
        let verdict = self.guard().judge(&call.name, &compared);
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
        arguments::check(schema, &arguments)?;
        finish_in_time(held, arguments, &self.permit).await
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
        self.allowed().map(|held| held.spec().definition()).collect()
    }

    async fn execute(&self, call: &ToolCall) -> ToolResult {
        let mut told = Told::start(&self.events, call);
        let result = self.run(call).await;
        told.success = result.is_ok();
        let content = result.unwrap_or_else(|reason| reason);
        ToolResult {
            tool_name: call.name.clone(),
            content: cut(content, MOST_CHARACTERS),
            success: told.success,
        }
    }

    fn stopped(&self) -> bool {
        self.guard().stopped()
    }
}
