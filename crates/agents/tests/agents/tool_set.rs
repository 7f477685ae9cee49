//! The tool set: which caller may use which tool, and how a call runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hob_agents::{PermittedTools, ToolSet, ToolSetError};
use hob_core::{
    Effect, Event, EventBus, Permit, Reach, RunEvents, Tool, ToolCall, ToolError, ToolResult, ToolRunner,
    ToolSpec,
};
use serde_json::{Value, json};

/// Returns how often it was called, or a given text.
struct Counter {
    spec: ToolSpec,
    calls: AtomicUsize,
}

impl Counter {
    fn new(name: &str, reach: Reach) -> Arc<Self> {
        Self::with_schema(name, reach, json!({ "type": "object" }))
    }

    fn with_schema(name: &str, reach: Reach, parameters: Value) -> Arc<Self> {
        let spec = ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters,
            reach,
            effect: Effect::None,
            untrusted_output: false,
            timeout: (name == "hasty").then_some(Duration::from_millis(1500)),
        };
        Arc::new(Counter { spec, calls: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Tool for Counter {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        match self.spec.name.as_str() {
            "hasty" | "slow" => std::future::pending().await,
            "wordy" => Ok("ü".repeat(10_001)),
            "complains" => Err(ToolError::new("no ".repeat(6_000))),
            _ => Ok(format!("call {calls} with {arguments}")),
        }
    }
}

fn tool_set() -> ToolSet {
    let tools: [(&str, Reach); 4] = [
        ("calculator", Reach::Pure),
        ("memory_search", Reach::Read),
        ("file_read", Reach::Read),
        ("send", Reach::Act),
    ];
    ToolSet::new(tools.map(|(name, reach)| Counter::new(name, reach) as Arc<dyn Tool>)).unwrap()
}

fn offered(permit: Permit) -> Vec<String> {
    let tools = tool_set().for_run(permit, RunEvents::without_subscribers()).unwrap();
    tools.definitions().into_iter().map(|tool| tool.name).collect()
}

fn only(tool: Arc<Counter>) -> PermittedTools {
    let tool_set = ToolSet::new([tool as Arc<dyn Tool>]).unwrap();
    tool_set.for_run(Permit::up_to(Reach::Act), RunEvents::without_subscribers()).unwrap()
}

async fn execute(tools: &PermittedTools, name: &str, arguments: &str) -> ToolResult {
    tools.execute(&ToolCall { id: "c".into(), name: name.into(), arguments: arguments.into() }).await
}

fn result(tool: &str, content: &str, success: bool) -> ToolResult {
    ToolResult { tool_name: tool.into(), content: content.into(), success }
}

#[test]
fn a_caller_is_offered_what_the_permit_reaches() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    assert_eq!(offered(Permit::up_to(Reach::Pure)), ["calculator"]);
    assert_eq!(offered(Permit::up_to(Reach::Read)), ["calculator", "memory_search", "file_read"]);
    assert_eq!(offered(Permit::up_to(Reach::Act)), ["calculator", "memory_search", "file_read", "send"]);

    let also = names(&["memory_search", "not_there"]);
    let channel = Permit { also, ..Permit::up_to(Reach::Pure) };
    assert_eq!(offered(channel.clone()), ["calculator", "memory_search"]);
    let selection = Permit { only: Some(names(&["memory_search", "send"])), ..channel };
    assert_eq!(offered(selection), ["memory_search"]);
    assert_eq!(offered(Permit { only: Some(vec![]), ..Permit::up_to(Reach::Act) }), names(&[]));
}

#[tokio::test]
async fn a_tool_beyond_the_permit_is_not_run() {
    let send = Counter::new("send", Reach::Act);
    let tool_set = ToolSet::new([Arc::clone(&send) as Arc<dyn Tool>]).unwrap();
    let tools = tool_set.for_run(Permit::up_to(Reach::Read), RunEvents::without_subscribers()).unwrap();
    let refused = result("send", "the tool 'send' is not available to this caller", false);
    assert_eq!(execute(&tools, "send", "{}").await, refused);
    let unknown = result("post", "there is no tool 'post', and no other tool", false);
    assert_eq!(execute(&tools, "post", "{}").await, unknown);
    assert_eq!(send.calls.load(Ordering::SeqCst), 0);
}

#[test]
fn a_selection_of_unknown_tools_is_an_error_that_helps() {
    let select = |name: &str| {
        let permit = Permit { only: Some(vec![name.into()]), ..Permit::up_to(Reach::Act) };
        tool_set().for_run(permit, RunEvents::without_subscribers()).err().map(|error| error.to_string())
    };
    assert_eq!(select("calculator"), None);
    assert_eq!(
        select("Calclator").as_deref(),
        Some("there is no tool 'Calclator'; did you mean calculator?")
    );
    assert_eq!(
        select("telescope").as_deref(),
        Some("there is no tool 'telescope'; the tools are calculator, memory_search, file_read, send")
    );
}

#[test]
fn two_tools_of_one_name_and_broken_schemas_are_refused() {
    let mut tool_set = tool_set();
    let again = tool_set.add_foreign(Counter::new("send", Reach::Pure));
    assert_eq!(again, Err(ToolSetError::Duplicate { name: "send".into() }));
    let broken = tool_set.add_foreign(Counter::with_schema("odd", Reach::Pure, json!({ "type": "strnig" })));
    let message = broken.unwrap_err().to_string();
    assert!(message.starts_with("the schema of the tool 'odd' is not a JSON schema: "), "{message}");
    let distant = json!({ "$ref": "http://example.org/schema.json" });
    assert!(tool_set.add_foreign(Counter::with_schema("distant", Reach::Pure, distant)).is_err());
    assert_eq!(tool_set.specs().count(), 4);
}

/// Definitions that each name the next one twice. Arguments would be checked 2^60 times.
fn doubling(name: impl Fn(usize) -> Value, definition: impl Fn(usize, Value) -> Value) -> Value {
    let definitions: serde_json::Map<String, Value> = (0..60)
        .map(|at| (format!("d{at}"), definition(at, json!({ "allOf": [name(at + 1), name(at + 1)] }))))
        .chain([("d60".to_owned(), definition(60, json!({})))])
        .collect();
    json!({ "type": "object", "allOf": [name(0)], "$defs": definitions })
}

#[test]
fn a_schema_of_a_server_that_would_be_followed_without_end_is_refused() {
    let path = |prefix: &str| {
        let prefix = prefix.to_owned();
        move |at: usize| json!({ "$ref": format!("{prefix}{at}") })
    };
    let with_anchor = |at: usize, mut schema: Value| {
        schema["$anchor"] = json!(format!("d{at}"));
        schema
    };
    let mut tool_set = tool_set();
    for (schema, reason) in [
        (doubling(path("#/$defs/d"), |_, schema| schema), "it has too many values when its '$ref's"),
        (doubling(path("#/%24defs/d"), |_, schema| schema), "it has too many values when its '$ref's"),
        (doubling(path("#d"), with_anchor), "it has a '$ref' to an '$anchor'"),
    ] {
        let refused = tool_set.add_foreign(Counter::with_schema("doubling", Reach::Pure, schema));
        let message = refused.unwrap_err().to_string();
        let expected = format!("the schema of the tool 'doubling' cannot be used: {reason}");
        assert!(message.starts_with(&expected), "{message}");
    }
    assert_eq!(tool_set.specs().count(), 4);
}

#[test]
fn schemas_of_usual_servers_are_accepted() {
    let mut tool_set = tool_set();
    let schemas = [
        json!({}),
        json!(true),
        // As pydantic writes them.
        json!({
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "filter": { "anyOf": [{ "$ref": "#/$defs/Filter" }, { "type": "null" }], "default": null },
            },
            "$defs": {
                "Filter": {
                    "type": "object",
                    "properties": {
                        "and": { "type": "array", "items": { "$ref": "#/$defs/Filter" } },
                        "not": { "$ref": "#/$defs/Filter" },
                        "value": { "$ref": "#/$defs/Any" },
                    },
                },
                "Any": { "anyOf": [
                    { "type": ["string", "number", "boolean", "null"] },
                    { "type": "array", "items": { "$ref": "#/$defs/Any" } },
                    { "type": "object", "additionalProperties": { "$ref": "#/$defs/Any" } },
                ] },
            },
        }),
        // As zod writes them: references lead to the place where a schema occurs first.
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "from": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
                "to": { "$ref": "#/properties/from" },
                "cc": { "type": "array", "items": { "$ref": "#/properties/from/properties/name" } },
            },
            "additionalProperties": false,
        }),
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/Map%3Cstring%3E",
            "definitions": { "Map<string>": { "type": "object", "additionalProperties": { "type": "string" } } },
        }),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://example.org/tool",
            "type": "object",
            "properties": { "x": { "$ref": "#/$defs/x" } },
            "$defs": { "x": true },
        }),
    ];
    for (at, schema) in schemas.into_iter().enumerate() {
        let tool = Counter::with_schema(&format!("usual_{at}"), Reach::Pure, schema);
        assert_eq!(tool_set.add_foreign(tool), Ok(()), "{at}");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_tool() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = Counter::with_schema("count", Reach::Pure, schema);
    let tools = only(Arc::clone(&tool));
    for (arguments, words) in [
        ("{", "the arguments are not JSON (EOF while parsing an object at line 1 column 1)"),
        ("{\"n\": \"one\"}", "'n': \"one\" is not of type \"integer\""),
        ("", "\"n\" is a required property"),
    ] {
        let told = execute(&tools, "count", arguments).await;
        assert!(!told.success && told.content.contains(words), "{told:?}");
    }
    assert_eq!(tool.calls.load(Ordering::SeqCst), 0);
    assert_eq!(execute(&tools, "count", "{\"n\":1}").await, result("count", "call 1 with {\"n\":1}", true));
}

#[tokio::test(start_paused = true)]
async fn a_call_has_a_timeout() {
    for (name, words, seconds) in [
        ("slow", "slow did not finish within 30 s", 30.0),
        ("hasty", "hasty did not finish within 1.5 s", 1.5),
    ] {
        let started = tokio::time::Instant::now();
        assert_eq!(
            execute(&only(Counter::new(name, Reach::Pure)), name, "{}").await,
            result(name, words, false)
        );
        assert_eq!(started.elapsed().as_secs_f32(), seconds);
    }
}

#[tokio::test]
async fn a_long_result_is_cut_with_a_mark() {
    let told = execute(&only(Counter::new("wordy", Reach::Pure)), "wordy", "{}").await;
    assert_eq!(told.content, format!("{}\n[cut here: 1 more characters]", "ü".repeat(10_000)));
    let told = execute(&only(Counter::new("complains", Reach::Pure)), "complains", "{}").await;
    assert!(!told.success && told.content.ends_with("\n[cut here: 8000 more characters]"));
}

#[tokio::test]
async fn the_same_call_runs_twice_and_is_stopped_at_the_fourth() {
    let tool = Counter::new("look", Reach::Pure);
    let tools = only(Arc::clone(&tool));
    let mut told = Vec::new();
    for arguments in ["{\"a\":1,\"b\":2}", "{\"b\":2, \"a\":1}", "{\"a\":1,\"b\":2}"] {
        told.push(execute(&tools, "look", arguments).await.success);
    }
    assert_eq!((told, tools.stopped()), (vec![true, true, false], false));
    assert!(!execute(&tools, "look", "{\"a\":1,\"b\":2}").await.success);
    assert!(tools.stopped());
    assert!(!execute(&tools, "look", "{\"other\":true}").await.success);
    assert_eq!(tool.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn every_run_counts_its_own_calls() {
    let tool_set = tool_set();
    for _ in 0..5 {
        let tools = tool_set.for_run(Permit::up_to(Reach::Pure), RunEvents::without_subscribers()).unwrap();
        assert!(execute(&tools, "calculator", "{}").await.success);
        assert!(execute(&tools, "calculator", "{}").await.success);
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_is_published_even_one_that_did_not_run() {
    let bus = EventBus::new();
    let forwarded: Arc<Mutex<Vec<Event>>> = Arc::default();
    let writer = Arc::clone(&forwarded);
    let _subscription = bus.subscribe(move |event| {
        assert_eq!(&*event.run, "run-1");
        writer.lock().unwrap().push(event.event.clone());
    });
    let tool_set = ToolSet::new([Counter::new("slow", Reach::Pure) as Arc<dyn Tool>]).unwrap();
    let tools = tool_set.for_run(Permit::up_to(Reach::Pure), RunEvents::new(bus, "run-1")).unwrap();
    execute(&tools, "slow", "{}").await;
    execute(&tools, "other", "{").await;

    let start = |tool: &str, arguments: &str| Event::ToolCallStart {
        id: "c".into(),
        tool: tool.into(),
        arguments: arguments.into(),
    };
    let end = |tool: &str, result: &str, seconds| Event::ToolCallEnd {
        id: "c".into(),
        tool: tool.into(),
        result: result.into(),
        success: false,
        latency: Duration::from_secs(seconds),
    };
    assert_eq!(
        *forwarded.lock().unwrap(),
        [
            start("slow", "{}"),
            end("slow", "slow did not finish within 30 s", 30),
            start("other", "{"),
            end("other", "there is no tool 'other'; the tools are slow", 0),
        ]
    );
}
