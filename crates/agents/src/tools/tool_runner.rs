//! The tools of one run. The one place that checks, runs and limits a call, and publishes its events.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use hob_core::{Effect, Event, Permit, RunEvents, ToolCall, ToolDefinition, ToolResult, ToolRunner};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::loop_guard::{LoopGuard, LoopVerdict};
use super::schema_check;
use super::taint::{AllowedAfterUntrusted, SETTING, Taint};
use super::tool_set::{Detail, ToolEntry, ToolSet, ToolSetError};
use super::truncate::{MAX_CHARACTERS, truncate};

/// The default timeout of a call.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The default number of calls to an engine by the tools of a run.
const DEFAULT_ENGINE_CALLS: u32 = 4;

/// What the calls belong to, in the words of a refusal.
const RUN: &str = "run";
const CONNECTION: &str = "connection";

/// The tools of one run, and its state.
pub struct PermittedTools {
    tools: Vec<Arc<ToolEntry>>,
    permit: Permit,
    events: RunEvents,
    allowed_after_untrusted: AllowedAfterUntrusted,
    /// The text that the owner wrote in the request.
    owner_words: String,
    max_engine_calls: u32,
    detail: Detail,
    /// [`RUN`] or [`CONNECTION`].
    scope: &'static str,
    /// All requests of a connection share it.
    taint: Arc<Mutex<Taint>>,
    progress: Mutex<RunState>,
}

#[derive(Default)]
struct RunState {
    guard: LoopGuard,
    /// Calls to an engine.
    engine_calls: u32,
}

impl ToolSet {
    /// The tools of one run. Its calls are counted, so every run needs its own.
    pub fn for_run(&self, permit: Permit, events: RunEvents) -> Result<PermittedTools, ToolSetError> {
        let unknown = permit.only.iter().flatten().find(|name| self.find(name).is_none());
        match unknown {
            Some(name) => Err(self.unknown(name)),
            None => {
                let allowed = self.allowed_after_untrusted.clone();
                Ok(PermittedTools::new(self.tools.clone(), permit, events, allowed))
            }
        }
    }
}

impl PermittedTools {
    fn new(
        tools: Vec<Arc<ToolEntry>>,
        permit: Permit,
        events: RunEvents,
        allowed_after_untrusted: AllowedAfterUntrusted,
    ) -> Self {
        let taint = if permit.tainted { Taint::initially_tainted() } else { Taint::default() };
        PermittedTools {
            tools,
            permit,
            events,
            allowed_after_untrusted,
            owner_words: String::new(),
            max_engine_calls: DEFAULT_ENGINE_CALLS,
            detail: Detail::Brief,
            scope: RUN,
            taint: Arc::new(Mutex::new(taint)),
            progress: Mutex::default(),
        }
    }

    /// Addresses in the owner's text may be used by tools that send or save, also in a tainted run.
    pub fn for_owner_words(self, owner_words: String) -> Self {
        PermittedTools { owner_words, ..self }
    }

    /// Sets the limit of calls to an engine.
    pub fn with_max_engine_calls(self, max_engine_calls: u32) -> Self {
        PermittedTools { max_engine_calls, ..self }
    }

    /// Uses complete definitions, for programs other than Hob's agents.
    pub fn with_full_definitions(self) -> Self {
        PermittedTools { detail: Detail::Full, ..self }
    }

    /// The same tools for one request of a client that keeps a connection, such as another program's agent. What one of its requests
    /// has read, its model may have seen before the next one. Calls are counted anew: the loop guard is for Hob's own agents.
    pub fn for_next_request(&self) -> Self {
        PermittedTools {
            tools: self.tools.clone(),
            permit: self.permit.clone(),
            events: self.events.clone(),
            allowed_after_untrusted: self.allowed_after_untrusted.clone(),
            owner_words: self.owner_words.clone(),
            max_engine_calls: self.max_engine_calls,
            detail: self.detail,
            scope: CONNECTION,
            taint: Arc::clone(&self.taint),
            progress: Mutex::default(),
        }
    }

    fn allowed(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.tools.iter().filter(|entry| self.permit.allows(entry.spec()))
    }

    /// Whether the model gets the tool. Of two names for one tool it gets one.
    fn is_offered(&self, entry: &ToolEntry) -> bool {
        entry.tool.alias_of().is_none_or(|first| !self.allowed().any(|other| other.spec().name == first))
    }

    /// The permit of a call, if it may run after what the run has read and called so far.
    fn admit(&self, entry: &ToolEntry, arguments: &Value) -> Result<Permit, String> {
        let spec = entry.spec();
        // Held until the end, so that calls at the same time are judged one after the other.
        let mut taint = self.taint.lock();
        let tainted = taint.source().is_some();
        if let Some(source) = taint.source()
            && spec.effect != Effect::None
            && !self.allowed_after_untrusted.allows(&spec.name, arguments)
            && !entry.tool.is_named_by_owner(arguments, &self.owner_words)
        {
            let scope = self.scope;
            tracing::info!(tool = %spec.name, %source, "refused a call: its {scope} has read untrusted text");
            return Err(format!(
                "{name} is not available, because this {scope} has read untrusted text ({source}); the owner can allow it with \
                 {SETTING} = [\"{name}\"]",
                name = spec.name
            ));
        }
        if entry.tool.asks_engine() {
            let mut progress = self.progress.lock();
            if progress.engine_calls >= self.max_engine_calls {
                return Err(format!(
                    "{} was called {} times, the limit of one run; use what you have",
                    spec.name, progress.engine_calls
                ));
            }
            progress.engine_calls += 1;
        }
        if spec.untrusted_output {
            taint.note_read(&spec.name);
        }
        // A task that a call creates inherits the taint of the run.
        Ok(Permit { tainted, ..self.permit.clone() })
    }

    /// The result of the tool, or the reason why it did not run, as text for the model.
    async fn run(&self, call: &ToolCall) -> Result<String, String> {
        let arguments = schema_check::parse(&call.arguments);
        // Text that is not JSON is compared as text.
        let compared = arguments.clone().unwrap_or_else(|_| Value::String(call.arguments.clone()));
        let verdict = self.progress.lock().guard.judge(&call.name, &compared);
        match verdict {
            LoopVerdict::Run => {}
            LoopVerdict::Warn => {
                return Err(format!(
                    "you called {} three times with the same arguments, and the result will not change; use what you have, \
                     or try something else",
                    call.name
                ));
            }
            LoopVerdict::Stop => return Err("stopped: the same call was repeated".to_owned()),
        }
        let entry = self.find(&call.name)?;
        let arguments = arguments?;
        let schema = entry.schema().map_err(|error| error.to_string())?;
        schema_check::check(schema, &entry.spec().parameters, &arguments)?;
        let permit = self.admit(entry, &arguments)?;
        finish_in_time(entry, arguments, &permit).await
    }

    fn find(&self, name: &str) -> Result<&ToolEntry, String> {
        match self.tools.iter().find(|entry| entry.spec().name == name) {
            Some(entry) if self.permit.allows(entry.spec()) => Ok(entry),
            Some(_) => Err(format!("the tool '{name}' is not available to this caller")),
            None => {
                let names: Vec<&str> = self.allowed().map(|entry| entry.spec().name.as_str()).collect();
                Err(match names.as_slice() {
                    [] => format!("there is no tool '{name}', and no other tool"),
                    names => format!("there is no tool '{name}'; the tools are {}", names.join(", ")),
                })
            }
        }
    }
}

async fn finish_in_time(entry: &ToolEntry, arguments: Value, permit: &Permit) -> Result<String, String> {
    let spec = entry.spec();
    let limit = spec.timeout.unwrap_or(DEFAULT_TIMEOUT);
    // After a panic, only what all calls share is used again.
    let call = AssertUnwindSafe(async { entry.tool.call_for(arguments, permit).await }).catch_unwind();
    match timeout(limit, call).await {
        Ok(Ok(Ok(output))) => Ok(output),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(_panic)) => {
            tracing::error!(
                tool = %spec.name,
                "a tool panicked because of a bug in Hob. Report this bug with the panic message on standard \
                 error"
            );
            Err(format!(
                "the tool '{}' crashed; this is an error of the tool, not of the arguments",
                spec.name
            ))
        }
        Err(_elapsed) => Err(format!("{} did not finish within {} s", spec.name, limit.as_secs_f32())),
    }
}

/// Publishes the start of a call, and its end when dropped, also for a cancelled run.
struct CallEvents<'a> {
    events: &'a RunEvents,
    call: &'a ToolCall,
    started: Instant,
    result: String,
    success: bool,
}

impl<'a> CallEvents<'a> {
    fn start(events: &'a RunEvents, call: &'a ToolCall) -> Self {
        events.publish(Event::ToolCallStart {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        CallEvents { events, call, started: Instant::now(), result: String::new(), success: false }
    }
}

impl Drop for CallEvents<'_> {
    fn drop(&mut self) {
        let (id, tool) = (self.call.id.clone(), self.call.name.clone());
        let result = std::mem::take(&mut self.result);
        let (success, latency) = (self.success, self.started.elapsed());
        self.events.publish(Event::ToolCallEnd { id, tool, result, success, latency });
    }
}

#[async_trait]
impl ToolRunner for PermittedTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.allowed()
            .filter(|entry| self.is_offered(entry))
            .map(|entry| entry.definition(self.detail))
            .collect()
    }

    fn begin_turn(&self) {
        self.taint.lock().begin_turn();
    }

    async fn execute(&self, call: &ToolCall) -> ToolResult {
        let mut events = CallEvents::start(&self.events, call);
        let result = self.run(call).await;
        events.success = result.is_ok();
        let content = truncate(result.unwrap_or_else(|reason| reason), MAX_CHARACTERS);
        if self.events.have_subscribers() {
            events.result.clone_from(&content);
        }
        ToolResult { tool_name: call.name.clone(), content, success: events.success }
    }

    fn stopped(&self) -> bool {
        self.progress.lock().guard.stopped()
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{Reach, Tool, ToolError, ToolSpec};
    use serde_json::json;

    use super::*;

    /// Does nothing.
    struct Idle {
        spec: ToolSpec,
        alias_of: Option<&'static str>,
        asks_engine: bool,
    }

    #[async_trait]
    impl Tool for Idle {
        fn spec(&self) -> &ToolSpec {
            &self.spec
        }

        fn alias_of(&self) -> Option<&str> {
            self.alias_of
        }

        fn asks_engine(&self) -> bool {
            self.asks_engine
        }

        async fn call(&self, _arguments: Value) -> Result<String, ToolError> {
            Ok("done".to_owned())
        }
    }

    fn tool(name: &str) -> Idle {
        let spec = ToolSpec::new(name, "It acts. Nothing else.", Reach::Act, json!({ "type": "object" }));
        Idle { spec, alias_of: None, asks_engine: false }
    }

    fn tools_of_run(tools: impl IntoIterator<Item = Idle>) -> PermittedTools {
        let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>);
        let tools = ToolSet::new(tools).unwrap();
        tools.for_run(Permit::up_to(Reach::Act), RunEvents::without_subscribers()).unwrap()
    }

    /// What a client gets when it connects: a tool that reads untrusted text, and one that sends something.
    fn connection() -> PermittedTools {
        let (mut reader, mut sender) = (tool("memory_search"), tool("channel_send"));
        reader.spec.untrusted_output = true;
        sender.spec.effect = Effect::Sends;
        tools_of_run([reader, sender])
    }

    async fn call(tools: &PermittedTools, name: &str) -> Result<String, String> {
        let call = ToolCall { id: "c".into(), name: name.into(), arguments: "{}".into() };
        let ToolResult { content, success, .. } = tools.execute(&call).await;
        if success { Ok(content) } else { Err(content) }
    }

    #[tokio::test]
    async fn what_a_connection_has_read_limits_its_later_requests_and_no_other_connection() {
        let done = || Ok::<_, String>("done".to_owned());
        let connected = connection();
        assert_eq!(call(&connected.for_next_request(), "channel_send").await, done());
        let earlier = connected.for_next_request();
        assert_eq!(call(&connected.for_next_request(), "memory_search").await, done());
        let refusal = "channel_send is not available, because this connection has read untrusted text (memory_search); the owner can \
                       allow it with [tools] allow_after_untrusted = [\"channel_send\"]";
        for tools in [&earlier, &connected.for_next_request()] {
            assert_eq!(call(tools, "channel_send").await, Err(refusal.to_owned()));
        }
        assert_eq!(call(&connection().for_next_request(), "channel_send").await, done());
    }

    #[tokio::test]
    async fn a_client_may_repeat_a_call() {
        let connected = connection();
        for _ in 0..6 {
            let tools = connected.for_next_request();
            assert_eq!(call(&tools, "memory_search").await, Ok("done".to_owned()));
            assert!(!tools.stopped());
        }
    }

    #[test]
    fn of_two_names_for_one_tool_the_model_gets_one() {
        let alias = || Idle { alias_of: Some("memory_search"), ..tool("retrieval") };
        let offered = |tools: PermittedTools| -> Vec<String> {
            tools.definitions().into_iter().map(|definition| definition.name).collect()
        };
        assert_eq!(offered(tools_of_run([tool("memory_search"), alias()])), ["memory_search"]);
        assert_eq!(offered(tools_of_run([alias(), tool("clock")])), ["retrieval", "clock"]);
    }

    #[test]
    fn other_programs_get_whole_descriptions() {
        let described = |tools: PermittedTools| tools.definitions().remove(0).description;
        assert_eq!(described(tools_of_run([tool("clock")])).as_deref(), Some("It acts."));
        let whole = tools_of_run([tool("clock")]).with_full_definitions();
        assert_eq!(described(whole).as_deref(), Some("It acts. Nothing else."));
    }

    #[tokio::test]
    async fn the_calls_of_an_engine_are_limited_as_set() {
        let tools = || tools_of_run([Idle { asks_engine: true, ..tool("llm") }]);
        let limited = tools().with_max_engine_calls(1);
        assert_eq!(call(&limited, "llm").await, Ok("done".to_owned()));
        let refusal = "llm was called 1 times, the limit of one run; use what you have";
        assert_eq!(call(&limited, "llm").await, Err(refusal.to_owned()));
        let usual = tools();
        assert!(call(&usual, "llm").await.is_ok() && call(&usual, "llm").await.is_ok());
    }
}
