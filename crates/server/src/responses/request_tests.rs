use hob_core::{AnswerWarning, JsonSchema, ResponseFormat, Sampling, Temperature, ToolChoice};
use serde_json::{Map, json};

use super::*;
use crate::error::ApiError;
use crate::responses::ready_request::{NewResponse, ReadyRequest};

fn parsed(body: Value) -> Result<ReadyRequest, ApiError> {
    let mut request = CreateRequest::parse(body.to_string().as_bytes())?;
    let input = std::mem::take(&mut request.input);
    request.complete(&[], input, &new_response())
}

fn new_response() -> NewResponse {
    NewResponse { id: "resp_a".to_owned(), created: 0, has_store: true }
}

fn asking(fields: Value) -> Value {
    let mut body = json!({ "model": "m", "input": "hi" });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn warned(fields: Value) -> Vec<String> {
    let warnings = parsed(asking(fields)).map(|ready| ready.warnings).unwrap();
    warnings.iter().map(|warning| warning.text().into_owned()).collect()
}

fn refused(body: Value) -> (String, String) {
    let error = parsed(body).map(|_| ()).unwrap_err();
    (error.param().unwrap_or_default().to_owned(), error.message().to_owned())
}

#[test]
fn every_parameter_reaches_the_request() {
    let ready = parsed(asking(json!({
        "instructions": "be brief",
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 64.0,
        "parallel_tool_calls": false,
        "tools": [
            { "type": "function", "name": "f", "description": "d", "parameters": { "type": "object" }, "strict": true },
            { "type": "custom", "name": "c" },
        ],
        "tool_choice": "required",
        "text": { "format": { "type": "json_schema", "name": "n", "schema": { "type": "object" }, "strict": true }, "verbosity": "low" },
        "reasoning": { "effort": "high", "summary": "auto" },
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "top_logprobs": 3,
        "stream": true,
        "store": false,
        "truncation": "auto",
        "agent": "orchestrator",
        "user": "u",
        "top_k": 5,
    })))
    .unwrap();
    let request = &ready.request;
    let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((request.model.as_str(), tools), ("m", vec!["f", "c"]));
    assert_eq!((request.temperature.map(Temperature::get), request.max_tokens()), (Some(0.5), Some(64)));
    assert_eq!(request.parallel_tool_calls, Some(false));
    assert_eq!(request.tool_choice, Some(ToolChoice::Required));
    let schema = JsonSchema {
        name: "n".into(),
        description: None,
        schema: json!({ "type": "object" }),
        strict: Some(true),
    };
    assert_eq!(request.response_format, ResponseFormat::JsonSchema(schema));
    let sampling =
        Sampling { top_p: Some(0.9), logprobs: true, top_logprobs: Some(3), ..Sampling::default() };
    assert_eq!(request.sampling, sampling);
    assert_eq!(Value::Object(request.extra.clone()), json!({ "verbosity": "low", "user": "u", "top_k": 5 }));
    assert_eq!(Value::Object(request.hints.clone()), json!({ "reasoning_effort": "high" }));
    let form = OutputForm {
        summarizes_reasoning: true,
        seals_reasoning: true,
        custom: vec!["c".into()],
        ..OutputForm::default()
    };
    assert_eq!(ready.form, form);
    let options = ResponseOptions {
        mode: ReplyMode::Streamed,
        agent: AgentPreference::Named("orchestrator".into()),
        store: false,
        background: false,
        truncation: Truncation::Auto,
    };
    assert_eq!(ready.options, options);
    assert_eq!(ready.warnings, []);
}

#[test]
fn without_a_limit_an_answer_has_none() {
    assert_eq!(parsed(asking(json!({}))).unwrap().request.max_tokens(), None);
}

#[test]
fn what_has_no_effect_is_named() {
    assert_eq!(
        warned(json!({
            "client_metadata": { "a": "b" },
            "max_tool_calls": 3,
            "seed": 7,
            "messages": [],
            "include": ["file_search_call.results"],
            "reasoning": { "context": "all_turns" },
            "stream_options": { "include_obfuscation": true },
            "tools": [
                { "type": "function", "name": "f", "defer_loading": true },
                { "type": "web_search", "external_web_access": false },
                { "type": "namespace", "name": "multi_agent_v1", "tools": [] },
                { "type": "mcp", "server_label": "x" },
            ],
        })),
        [
            "ignored=include[]=file_search_call.results",
            "ignored=client_metadata",
            "ignored=max_tool_calls",
            "ignored=seed",
            "ignored=messages",
            "ignored=stream_options",
            "ignored=reasoning.context",
            "ignored=tools[].defer_loading",
            "ignored=tools[1].type=web_search",
            "ignored=tools[3].type=mcp",
        ]
    );
    assert_eq!(
        warned(
            json!({ "stream_options": { "include_obfuscation": false }, "metadata": { "a": "b" }, "seed": null })
        ),
        Vec::<String>::new()
    );
    let input = json!([{ "role": "user", "content": "hi" }, { "type": "web_search_call", "id": "ws_1" }]);
    assert_eq!(warned(json!({ "input": input })), ["ignored=input[].type=web_search_call"]);
}

#[test]
fn a_choice_among_allowed_tools_takes_the_others_away() {
    let tools = json!([{ "type": "function", "name": "a" }, { "type": "custom", "name": "b" }, { "type": "web_search" }]);
    let choose = |choice: Value| {
        let ready = parsed(asking(json!({ "tools": tools, "tool_choice": choice })));
        ready.map(|ready| {
            let names: Vec<String> = ready.request.tools.iter().map(|tool| tool.name.clone()).collect();
            (names, ready.request.tool_choice, ready.form.custom)
        })
    };
    let allowed = |mode: &str, name: &str| json!({ "type": "allowed_tools", "mode": mode, "tools": [{ "type": "function", "name": name }, { "type": "web_search" }] });
    assert_eq!(
        choose(allowed("required", "a")).unwrap(),
        (vec!["a".into()], Some(ToolChoice::Required), vec![])
    );
    assert_eq!(
        choose(allowed("auto", "b")).unwrap(),
        (vec!["b".into()], Some(ToolChoice::Auto), vec!["b".into()])
    );
    assert_eq!(
        choose(json!({ "type": "custom", "name": "b" })).unwrap().1,
        Some(ToolChoice::Function("b".into()))
    );
    for (choice, param) in [
        (allowed("auto", "x"), "tool_choice.tools"),
        (allowed("never", "a"), "tool_choice.mode"),
        (json!({ "type": "allowed_tools" }), "tool_choice.tools"),
        (
            json!({ "type": "allowed_tools", "tools": vec![json!({ "type": "function", "name": "a" }); 1_025] }),
            "tool_choice.tools",
        ),
        (json!({ "type": "allowed_tools", "mode": "required", "tools": [] }), "tool_choice.tools"),
        (json!({ "type": "function", "name": "x" }), "tool_choice"),
        (json!({ "type": "file_search" }), "tool_choice"),
        (json!({ "type": "mcp", "server_label": "x" }), "tool_choice"),
        (json!("maybe"), "tool_choice"),
        (json!(7), "tool_choice"),
    ] {
        assert_eq!(choose(choice.clone()).unwrap_err().param(), Some(param), "{choice}");
    }
}

#[test]
fn codex_brings_tools_in_an_item() {
    let input = json!([
        { "type": "additional_tools", "role": "developer", "tools": [
            { "type": "namespace", "name": "functions", "description": "", "tools": [{ "type": "custom", "name": "exec" }] },
            { "type": "namespace", "name": "web", "description": "", "tools": [
                { "type": "function", "name": "exec" }, { "type": "namespace", "name": "x", "tools": [] },
            ] },
        ] },
        { "role": "user", "content": "hi" },
    ]);
    let ready = parsed(asking(json!({ "input": input }))).unwrap();
    assert_eq!(ready.form.custom, ["exec"]);
    let names: Vec<&str> = ready.request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["exec", "web__exec"]);
    let ignored = "additional_tools[1].tools[1].type=namespace";
    assert_eq!(ready.warnings, [AnswerWarning::Ignored(ignored.into())]);
}

#[test]
fn an_error_names_the_field() {
    let long = "x".repeat(513);
    let many: Map<String, Value> = (0..17).map(|number| (number.to_string(), json!("x"))).collect();
    for (fields, param) in [
        (json!({ "model": "" }), "model"),
        (json!({ "input": null }), "input"),
        (json!({ "input": [] }), "input"),
        (json!({ "input": 7 }), "input"),
        (json!({ "input": [7] }), "input[0]"),
        (json!({ "prompt": { "id": "p" } }), "prompt"),
        (json!({ "temperature": 3 }), "temperature"),
        (json!({ "top_p": 2 }), "top_p"),
        (json!({ "max_output_tokens": 0 }), "max_output_tokens"),
        (json!({ "max_output_tokens": "x" }), "max_output_tokens"),
        (json!({ "top_logprobs": 21 }), "top_logprobs"),
        (json!({ "truncation": "some" }), "truncation"),
        (json!({ "text": { "format": { "type": "xml" } } }), "text.format.type"),
        (json!({ "text": { "format": { "type": "json_schema" } } }), "text.format.schema"),
        (json!({ "text": { "format": { "type": "json_schema", "schema": 7 } } }), "text.format.schema"),
        (json!({ "reasoning": { "summary": "long" } }), "reasoning.summary"),
        (json!({ "metadata": { "a": 7 } }), "metadata"),
        (json!({ "metadata": { "a": long } }), "metadata"),
        (json!({ "metadata": many }), "metadata"),
        (json!({ "background": true, "store": false }), "background"),
        (json!({ "previous_response_id": "a", "conversation": "b" }), "previous_response_id"),
        (json!({ "conversation": 7 }), "conversation"),
        (json!({ "tools": [{}] }), "tools[0].type"),
        (json!({ "tools": [{ "type": "function" }] }), "tools[0].name"),
        (json!({ "tools": [{ "type": "function", "name": "f", "parameters": [] }] }), "tools[0].parameters"),
        (
            json!({ "tools": [{ "type": "custom", "name": "f", "format": { "type": "x" } }] }),
            "tools[0].format.type",
        ),
        (json!({ "tools": [7] }), "tools[0]"),
        (json!({ "tool_choice": "required" }), "tool_choice"),
    ] {
        assert_eq!(refused(asking(fields.clone())).0, param, "{fields}");
    }
    let (param, message) = refused(json!({ "model": "m", "messages": [] }));
    assert_eq!(
        (param.as_str(), message.as_str()),
        ("input", "'input' is required. 'messages' belongs to /v1/chat/completions")
    );
}

/// The ids and arguments of the calls that the engine gets.
fn calls_of(ready: &ReadyRequest) -> Vec<(&str, &str)> {
    let calls = ready.request.messages.iter().flat_map(|message| &message.tool_calls);
    calls.map(|call| (&*call.id, &*call.arguments)).collect()
}

fn warnings_of(ready: &ReadyRequest) -> Vec<String> {
    ready.warnings.iter().map(|warning| warning.text().into_owned()).collect()
}

#[test]
fn a_call_that_was_cut_off_is_left_out_unless_it_was_answered() {
    let call = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{\"a", "status": "incomplete" });
    let before = [json!({ "role": "user", "content": "hi" }), call("a"), call("b")];
    let input = vec![
        json!({ "type": "function_call_output", "call_id": "b", "output": "1" }),
        json!({ "role": "user", "content": "and?" }),
    ];
    let request = CreateRequest::parse(asking(json!({})).to_string().as_bytes()).unwrap();
    let ready = request.complete(&before, input, &new_response()).unwrap();
    assert_eq!(calls_of(&ready), [("b", "{}")], "engines refuse half of a JSON text");
    assert_eq!(warnings_of(&ready), ["ignored=input[].status=incomplete"]);
}

#[test]
fn broken_arguments_spoil_no_conversation_if_the_client_sends_no_status() {
    let call = |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": arguments });
    let output =
        |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": "that is no JSON" });
    let input = vec![
        json!({ "role": "user", "content": "hi" }),
        call("unanswered", "{\"a"),
        call("cut", "{\"a"),
        call("list", "[1]"),
        call("blank", ""),
        call("good", "{\"a\": 1}"),
        call("half", r#"{"a": "\ud83d"}"#),
        output("half"),
        output("cut"),
        output("list"),
        output("blank"),
        output("good"),
    ];
    let request = CreateRequest::parse(asking(json!({})).to_string().as_bytes()).unwrap();
    let ready = request.complete(&[], input, &new_response()).unwrap();
    assert_eq!(
        calls_of(&ready),
        [
            ("cut", "{}"),
            ("list", "{}"),
            ("blank", ""),
            ("good", "{\"a\": 1}"),
            ("half", r#"{"a": "\ufffd"}"#),
        ]
    );
    assert_eq!(warnings_of(&ready), ["ignored=input[].arguments"]);
}
