use axum::response::IntoResponse;
use hob_core::{
    Content, ContentPart, Image, JsonSchema, Message, Role, ToolCall, ToolChoice, ToolDefinition,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(body: &str) -> ChatRequest {
    ChatRequest::parse(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error:?}"))
}

/// A small good request with `fields` added to it.
fn with(fields: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],{fields}}}"#)
}

/// A request with these messages.
fn saying(messages: &str) -> String {
    format!(r#"{{"model":"m","messages":[{messages}]}}"#)
}

/// What [`with`] asks for before anything is added.
fn plain() -> ChatRequest {
    ChatRequest {
        request: GenerateRequest {
            model: "m".into(),
            messages: vec![Message::new(Role::User, "hi")],
            ..GenerateRequest::default()
        },
        mode: ResponseMode::Whole,
        agent: AgentPreference::Configured,
        calls: CallForm::Tools,
        documents: None,
        steps: false,
        agent_tools: None,
        warnings: Vec::new(),
    }
}

#[test]
fn documents_and_steps_are_hobs_own_fields_and_no_engine_gets_them() {
    let wanting = |documents: Option<&[&str]>, steps| {
        let documents = documents.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        ChatRequest { documents, steps, ..plain() }
    };
    for (fields, expected) in [
        (r#""documents":true"#, wanting(Some(&[]), false)),
        (r#""documents":["team","home"],"steps":true"#, wanting(Some(&["team", "home"]), true)),
        (r#""documents":false,"steps":false"#, wanting(None, false)),
        (r#""documents":null,"steps":null"#, wanting(None, false)),
    ] {
        assert_eq!(parse(&with(fields)), expected, "{fields}");
    }
    let (param, message) = refusal(with(r#""documents":"all""#).as_bytes());
    assert_eq!(param.as_deref(), Some("documents"));
    assert!(message.contains("true, false or an array of collections"), "{message}");
}

fn plain_with(change: impl FnOnce(&mut GenerateRequest)) -> ChatRequest {
    let mut expected = plain();
    change(&mut expected.request);
    expected
}

/// The field and the words of a refusal, which is always a 400.
fn refusal(body: &[u8]) -> (Option<String>, String) {
    let error = ChatRequest::parse(body).expect_err(&String::from_utf8_lossy(body));
    let event: Value = serde_json::from_slice(&error.event(crate::error::ErrorFormat::OpenAi)).unwrap();
    assert_eq!(error.into_response().status(), 400);
    let text = |field: &str| event["error"][field].as_str().map(str::to_owned);
    (text("param"), text("message").unwrap())
}

#[test]
fn the_smallest_request_leaves_everything_to_the_defaults() {
    assert_eq!(parse(&saying(r#"{"role":"user","content":"hi"}"#)), plain());
}

#[test]
fn null_means_absent_in_every_field() {
    let nulls = [
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "stop",
        "seed",
        "top_p",
        "n",
        "presence_penalty",
        "frequency_penalty",
        "logprobs",
        "top_logprobs",
        "user",
    ];
    let fields: Vec<String> = nulls.iter().map(|field| format!(r#""{field}":null"#)).collect();
    assert_eq!(parse(&with(&fields.join(","))), plain());

    let message =
        r#"{"role":"user","content":"hi","name":null,"tool_calls":null,"tool_call_id":null,"refusal":null}"#;
    assert_eq!(parse(&saying(message)), plain());
}

#[test]
fn every_parameter_reaches_the_request() {
    let body = with(
        r#""temperature":0.2,"max_tokens":7,"top_p":0.9,"seed":-4,"n":2,"presence_penalty":-2,
           "frequency_penalty":1.5,"logprobs":true,"top_logprobs":3,"parallel_tool_calls":false"#,
    );
    let expected = plain_with(|request| {
        request.temperature = Some(Temperature::new(0.2).unwrap());
        request.max_tokens = Some(MaxTokens::new(7).unwrap());
        request.parallel_tool_calls = Some(false);
        request.sampling = Sampling {
            top_p: Some(0.9),
            stop: Vec::new(),
            seed: Some(-4),
            presence_penalty: Some(-2.0),
            frequency_penalty: Some(1.5),
            n: NonZeroU32::new(2),
            logprobs: true,
            top_logprobs: Some(3),
        };
    });
    assert_eq!(parse(&body), expected);
}

#[test]
fn the_newer_name_of_max_tokens_wins() {
    let expected = plain_with(|request| request.max_tokens = Some(MaxTokens::new(9).unwrap()));
    assert_eq!(parse(&with(r#""max_completion_tokens":9"#)), expected);
    assert_eq!(parse(&with(r#""max_completion_tokens":9,"max_tokens":5"#)), expected);
}

#[test]
fn whole_numbers_are_temperatures_too() {
    for (written, meant) in [("0", 0.0), ("2", 2.0), ("1e0", 1.0)] {
        let expected = plain_with(|request| request.temperature = Some(Temperature::new(meant).unwrap()));
        assert_eq!(parse(&with(&format!(r#""temperature":{written}"#))), expected);
    }
}

#[test]
fn a_whole_number_may_be_written_as_a_fraction() {
    let expected = plain_with(|request| {
        request.max_tokens = Some(MaxTokens::new(20).unwrap());
        request.sampling.n = NonZeroU32::new(1);
        request.sampling.seed = Some(-7);
        request.sampling.top_logprobs = Some(3);
    });
    assert_eq!(parse(&with(r#""max_tokens":20.0,"n":1.0,"seed":-7.0,"top_logprobs":3.0"#)), expected);
}

#[test]
fn a_field_that_says_what_holds_anyway_reaches_no_engine() {
    assert_eq!(parse(&with(r#""logit_bias":{},"modalities":["text"]"#)), plain());
    let with_effect = parse(&with(r#""logit_bias":{"5":1},"modalities":["text","audio"]"#)).request.extra;
    assert_eq!(
        Value::Object(with_effect),
        json!({ "logit_bias": { "5": 1 }, "modalities": ["text", "audio"] })
    );
}

#[test]
fn what_no_engine_will_see_is_named() {
    let body = r#"{"model":"m","messages":[
            {"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},
                {"type":"text","text":"there","cache_control":null},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","format":"png"}}]},
            {"role":"assistant","tool_calls":[
                {"id":"a","type":"function","index":0,"extra_content":{},"function":{"name":"f"}},
                {"id":"b","type":"function","index":1,"extra_content":{},"function":{"name":"f"}}]}],
        "stream_options":{"include_usage":true,"include_obfuscation":false},
        "tools":[{"function":{"name":"f","deferred":true},"cache_control":{}}],
        "response_format":{"type":"json_schema","json_schema":{"schema":{},"title":"x"},"schema":{}}}"#;
    let named: Vec<String> = parse(body).warnings.iter().map(|warning| warning.text().into_owned()).collect();
    assert_eq!(
        named,
        [
            "ignored=messages[].content[].cache_control",
            "ignored=messages[].content[].image_url.format",
            "ignored=messages[].tool_calls[].extra_content",
            "ignored=tools[].cache_control",
            "ignored=tools[].function.deferred",
            "ignored=response_format.schema",
            "ignored=response_format.json_schema.title",
            "ignored=stream_options.include_obfuscation",
        ]
    );
    let many: Vec<String> = (0..1_000).map(|at| format!(r#""f{at}":1"#)).collect();
    let many = parse(&with(&format!(r#""stream_options":{{{}}}"#, many.join(","))));
    assert_eq!(many.warnings.len(), 17, "16 names, and the number of the others");
}

#[test]
fn content_that_only_some_engines_take_is_passed_on_as_it_came() {
    let parts = json!([
        { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } },
        { "type": "file", "file": { "file_id": "f" }, "cache_control": { "type": "ephemeral" } },
        { "type": "video_url", "video_url": { "url": "data:video/mp4;base64,AAAA" } },
        { "type": "text", "text": "What is this?" },
    ]);
    let chat = parse(&saying(&format!(r#"{{"role":"user","content":{parts}}}"#)));
    let mut expected: Vec<ContentPart> =
        parts.as_array().unwrap()[..3].iter().cloned().map(ContentPart::Other).collect();
    expected.push(ContentPart::Text("What is this?".into()));
    assert_eq!(chat, plain_with(|request| request.messages[0].content = Content::Parts(expected)));
}

#[test]
fn functions_are_tools_by_their_older_name() {
    let definition = |name: &str| ToolDefinition {
        name: name.into(),
        description: None,
        parameters: Some(json!({ "type": "object" })),
        strict: None,
    };
    let functions = r#""functions":[{"name":"f","parameters":{"type":"object"}}]"#;
    for (choice, meant) in [
        ("null", None),
        (r#""auto""#, Some(ToolChoice::Auto)),
        (r#""none""#, Some(ToolChoice::None)),
        (r#"{"name":"f"}"#, Some(ToolChoice::Function("f".into()))),
    ] {
        let mut expected = plain_with(|request| {
            request.tools = vec![definition("f")];
            request.tool_choice = meant;
        });
        expected.calls = CallForm::Function;
        assert_eq!(parse(&with(&format!(r#"{functions},"function_call":{choice}"#))), expected);
    }
    assert_eq!(parse(&with(r#""functions":[],"function_call":null"#)), plain());
}

#[test]
fn a_conversation_of_functions_is_one_of_tools() {
    let body = saying(
        r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}},
           {"role":"function","name":"f","content":"7"},
           {"role":"assistant","function_call":{"name":"f","arguments":"{}"}},
           {"role":"function","name":"f","content":null},
           {"role":"tool","tool_call_id":"x"}"#,
    );
    let calling = |id: &str, arguments: &str| Message {
        content: Content::Empty,
        tool_calls: vec![ToolCall { id: id.into(), name: "f".into(), arguments: arguments.into() }],
        ..Message::new(Role::Assistant, "")
    };
    let messages = vec![
        calling("function_call_0", r#"{"a":1}"#),
        Message::tool_result("function_call_0", "7"),
        calling("function_call_2", "{}"),
        Message::tool_result("function_call_2", ""),
        Message::tool_result("x", ""),
    ];
    assert_eq!(parse(&body), plain_with(|request| request.messages = messages));
}

#[test]
fn what_is_over_the_budget_is_named_as_the_caller_wrote_it() {
    let stops = vec!["x"; 65];
    let long_name = "f".repeat(300);
    for (fields, param, message) in [
        (json!({ "stop": stops }), "stop", "stop has 65 sequences; the limit is 64"),
        (
            json!({ "tools": [{ "function": { "name": long_name } }] }),
            "tools[0].function.name",
            "tools[0].function.name has 300 characters; the limit is 256",
        ),
        (
            json!({ "functions": [{ "name": long_name }] }),
            "functions[0].name",
            "functions[0].name has 300 characters; the limit is 256",
        ),
    ] {
        let fields = fields.to_string();
        let body = with(&fields[1..fields.len() - 1]);
        assert_eq!(refusal(body.as_bytes()), (Some(param.to_owned()), message.to_owned()));
    }
}

#[test]
fn stop_is_one_word_or_several() {
    let stopping = |words: &[&str]| {
        plain_with(|request| request.sampling.stop = words.iter().map(|word| (*word).to_owned()).collect())
    };
    assert_eq!(parse(&with(r#""stop":"END""#)), stopping(&["END"]));
    assert_eq!(parse(&with(r#""stop":["a","b"]"#)), stopping(&["a", "b"]));
    assert_eq!(parse(&with(r#""stop":[]"#)), stopping(&[]));
}

#[test]
fn a_stream_is_asked_for_with_or_without_its_usage() {
    for (fields, include_usage) in [
        (r#""stream":true"#, false),
        (r#""stream":true,"stream_options":{}"#, false),
        (r#""stream":true,"stream_options":{"include_usage":null,"include_obfuscation":false}"#, false),
        (r#""stream":true,"stream_options":{"include_usage":true}"#, true),
    ] {
        assert_eq!(parse(&with(fields)).mode, ResponseMode::Streamed { include_usage }, "{fields}");
    }
    let whole = parse(&with(r#""stream":false,"stream_options":{"include_usage":true}"#));
    assert_eq!(whole, plain());
}

#[test]
fn fields_we_give_no_meaning_to_are_kept_for_the_engine() {
    let body = r#"{"model":"m","top_k":40,"messages":[{"role":"user","content":"hi","cache":{"ttl":5}}],
                   "chat_template_kwargs":{"enable_thinking":false}}"#;
    let mut expected = plain_with(|request| {
        request.extra = json!({ "top_k": 40, "chat_template_kwargs": { "enable_thinking": false } })
            .as_object()
            .unwrap()
            .clone();
    });
    expected.request.messages[0].extra.insert("cache".into(), json!({ "ttl": 5 }));
    assert_eq!(parse(body), expected);
}

#[test]
fn a_conversation_with_tools_is_read_whole() {
    let body = saying(
        r#"{"role":"developer","content":"Be brief."},
           {"role":"user","name":"ann","content":[{"type":"text","text":"look"},
               {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}]},
           {"role":"assistant","content":null,"tool_calls":[
               {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
               {"id":"c2","type":"function","function":{"name":"g","arguments":{"b":2}}},
               {"id":"c3","function":{"name":"h"}}]},
           {"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"7"}]},
           {"role":"assistant","tool_calls":[{"id":"c4","function":{"name":"h","arguments":""}}]},
           {"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},
           {"role":"user","content":[]}"#,
    );
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let picture = Image { url: "data:image/png;base64,AAAA".into(), detail: Some("low".into()) };
    let look = Content::Parts(vec![ContentPart::Text("look".into()), ContentPart::Image(picture)]);
    let calling =
        |tool_calls| Message { content: Content::Empty, tool_calls, ..Message::new(Role::Assistant, "") };
    let messages = vec![
        Message::new(Role::System, "Be brief."),
        Message { name: Some("ann".into()), content: look, ..Message::new(Role::User, "") },
        calling(vec![call("c1", "f", r#"{"a":1}"#), call("c2", "g", r#"{"b":2}"#), call("c3", "h", "{}")]),
        Message::tool_result("c1", "7"),
        calling(vec![call("c4", "h", "")]),
        Message::new(Role::Assistant, "no"),
        Message::new(Role::User, ""),
    ];
    assert_eq!(parse(&body), plain_with(|request| request.messages = messages));
}

#[test]
fn tools_and_the_choice_among_them_are_read_in_every_form() {
    let tools = r#""tools":[{"type":"function","function":{"name":"f","description":"d",
                   "parameters":{"type":"object"},"strict":true}},{"function":{"name":"g"}}]"#;
    let definitions = vec![
        ToolDefinition {
            name: "f".into(),
            description: Some("d".into()),
            parameters: Some(json!({ "type": "object" })),
            strict: Some(true),
        },
        ToolDefinition { name: "g".into(), description: None, parameters: None, strict: None },
    ];
    for (written, meant) in [
        ("null", None),
        (r#""auto""#, Some(ToolChoice::Auto)),
        (r#""none""#, Some(ToolChoice::None)),
        (r#""required""#, Some(ToolChoice::Required)),
        (r#"{"type":"function","function":{"name":"g"}}"#, Some(ToolChoice::Function("g".into()))),
    ] {
        let expected = plain_with(|request| {
            request.tools = definitions.clone();
            request.tool_choice = meant;
        });
        assert_eq!(parse(&with(&format!(r#"{tools},"tool_choice":{written}"#))), expected);
    }
}

#[test]
fn a_choice_among_allowed_tools_takes_the_others_away() {
    let tools = r#""tools":[{"function":{"name":"f"}},{"function":{"name":"g"}}]"#;
    let asked = |allowed: &str| {
        let choice = format!(r#"{{"type":"allowed_tools","allowed_tools":{allowed}}}"#);
        ChatRequest::parse(with(&format!(r#"{tools},"tool_choice":{choice}"#)).as_bytes())
    };
    let g = r#"[{"type":"function","function":{"name":"g"}}]"#;
    for (mode, meant) in [("auto", ToolChoice::Auto), ("required", ToolChoice::Required)] {
        let request = asked(&format!(r#"{{"mode":"{mode}","tools":{g}}}"#)).unwrap().request;
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!((names, request.tool_choice), (vec!["g"], Some(meant)));
    }
    for (allowed, param) in [
        ("{}", "tool_choice.allowed_tools.tools"),
        (r#"{"mode":"required","tools":[]}"#, "tool_choice.allowed_tools.tools"),
        (r#"{"tools":[{"type":"function","function":{"name":"h"}}]}"#, "tool_choice.allowed_tools.tools"),
        (r#"{"mode":"never","tools":[]}"#, "tool_choice.allowed_tools.mode"),
    ] {
        assert_eq!(asked(allowed).unwrap_err().param(), Some(param), "{allowed}");
    }
}

#[test]
fn a_choice_without_tools_is_about_those_of_the_agent_that_was_named() {
    for (written, meant) in [
        (r#""required""#, ToolChoice::Required),
        (
            r#"{"type":"function","function":{"name":"calculator"}}"#,
            ToolChoice::Function("calculator".into()),
        ),
    ] {
        let asked = |agent: &str| {
            ChatRequest::parse(with(&format!(r#""agent":"{agent}","tool_choice":{written}"#)).as_bytes())
        };
        assert_eq!(asked("orchestrator").unwrap().request.tool_choice, Some(meant));
        assert!(asked("none").is_err());
    }
}

#[test]
fn the_form_of_the_answer_is_read_in_every_form() {
    let schema = |name: &str, description: Option<&str>, strict| {
        ResponseFormat::JsonSchema(JsonSchema {
            name: name.into(),
            description: description.map(str::to_owned),
            schema: json!({ "type": "array" }),
            strict,
        })
    };
    for (written, meant) in [
        (r#"{"type":"text"}"#, ResponseFormat::Text),
        (r#"{"type":"json_object"}"#, ResponseFormat::JsonObject),
        (
            r#"{"type":"json_schema","json_schema":{"name":"l","description":"d","strict":true,"schema":{"type":"array"}}}"#,
            schema("l", Some("d"), Some(true)),
        ),
        (r#"{"type":"json_schema","json_schema":{"schema":{"type":"array"}}}"#, schema("answer", None, None)),
    ] {
        let expected = plain_with(|request| request.response_format = meant);
        assert_eq!(parse(&with(&format!(r#""response_format":{written}"#))), expected);
    }
}

#[test]
fn an_error_names_the_wrong_field_and_the_reason() {
    let user = r#"{"role":"user","content":"hi"}"#;
    let table: &[(String, &str, &str)] = &[
        // What must be there.
        (
            format!(r#"{{"messages":[{user}]}}"#),
            "model",
            "'model' is required: the id of a model, or 'default'",
        ),
        (
            format!(r#"{{"model":" ","messages":[{user}]}}"#),
            "model",
            "'model' is required: the id of a model, or 'default'",
        ),
        (r#"{"model":"m"}"#.into(), "messages", "'messages' is required"),
        (saying(""), "messages", "'messages' must not be empty"),
        // Messages.
        (
            saying(&format!(r#"{user},{user},{{"role":"robot","content":"x"}}"#)),
            "messages[2].role",
            "'robot' is not a role. Roles are system, developer, user, assistant, tool and function",
        ),
        (saying(r#"{"content":"x"}"#), "messages[0].role", "a message needs a 'role'"),
        (
            saying(r#"{"role":"user"}"#),
            "messages[0].content",
            "a message with the role 'user' needs 'content'",
        ),
        (
            saying(r#"{"role":"system","content":null}"#),
            "messages[0].content",
            "a message with the role 'system' needs 'content'",
        ),
        (
            saying(r#"{"role":"function","content":"7"}"#),
            "messages[0].name",
            "a message with the role 'function' needs 'name'",
        ),
        (
            saying(r#"{"role":"function","name":"f","content":"7"}"#),
            "messages[0].name",
            "no message before it calls the function 'f'",
        ),
        (saying(&format!("{user},7")), "messages[1]", "messages[1]: expected an object, got the number 7"),
        (
            saying(r#"{"role":"user","content":7}"#),
            "messages[0].content",
            "messages[0].content: expected a string, null or an array of content parts, got the number 7",
        ),
        (
            saying(r#"{"role":["user"],"content":"x"}"#),
            "messages[0].role",
            "messages[0].role: expected a string, got an array",
        ),
        (
            saying(r#"{"role":"user","content":[{"type":"hologram"}]}"#),
            "messages[0].content[0].type",
            "'hologram' is not a supported type of content. Supported are 'text', 'image_url', 'input_audio', 'audio_url', 'file', 'video_url'",
        ),
        (
            saying(r#"{"role":"user","content":[{"type":"input_audio","input_audio":"AAAA"}]}"#),
            "messages[0].content[0].input_audio",
            "a part of type 'input_audio' needs 'input_audio'",
        ),
        (
            saying(r#"{"role":"user","content":[{"text":"x"}]}"#),
            "messages[0].content[0].type",
            "messages[0].content[0].type is missing",
        ),
        (
            saying(r#"{"role":"user","content":[{"type":"text"}]}"#),
            "messages[0].content[0].text",
            "a part of type 'text' needs 'text'",
        ),
        (
            saying(
                r#"{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{}}]}"#,
            ),
            "messages[0].content[1].image_url.url",
            "messages[0].content[1].image_url.url is missing",
        ),
        (
            saying(r#"{"role":"user","content":[{"type":"image_url","image_url":"data:x"}]}"#),
            "messages[0].content[0].image_url",
            "messages[0].content[0].image_url: expected an object, got the string \"data:x\"",
        ),
        (
            saying(r#"{"role":"assistant","tool_calls":[{"id":"c","function":{"arguments":"{}"}}]}"#),
            "messages[0].tool_calls[0].function.name",
            "messages[0].tool_calls[0].function.name is missing",
        ),
        // Numbers and their ranges.
        (with(r#""temperature":2.5"#), "temperature", "temperature must be between 0.0 and 2.0, got 2.5"),
        (
            with(r#""temperature":"hot""#),
            "temperature",
            "temperature: expected a number, got the string \"hot\"",
        ),
        (with(r#""max_tokens":0"#), "max_tokens", "max_tokens must be between 1 and 4294967295, got 0"),
        (with(r#""max_tokens":-1"#), "max_tokens", "max_tokens must be between 1 and 4294967295, got -1"),
        (
            with(r#""max_tokens":1.5"#),
            "max_tokens",
            "max_tokens: expected a whole number, got the number 1.5",
        ),
        (
            with(r#""max_tokens":5000000000"#),
            "max_tokens",
            "max_tokens must be between 1 and 4294967295, got 5000000000",
        ),
        (
            with(r#""max_completion_tokens":0"#),
            "max_completion_tokens",
            "max_completion_tokens must be between 1 and 4294967295, got 0",
        ),
        (with(r#""n":0"#), "n", "n must be between 1 and 128, got 0"),
        (with(r#""n":1000"#), "n", "n must be between 1 and 128, got 1000"),
        (with(r#""top_p":2"#), "top_p", "top_p must be between 0 and 1, got 2"),
        (
            with(r#""presence_penalty":-3"#),
            "presence_penalty",
            "presence_penalty must be between -2 and 2, got -3",
        ),
        (
            with(r#""frequency_penalty":2.1"#),
            "frequency_penalty",
            "frequency_penalty must be between -2 and 2, got 2.1",
        ),
        (with(r#""top_logprobs":21"#), "top_logprobs", "top_logprobs must be between 0 and 20, got 21"),
        (with(r#""seed":1e30"#), "seed", "seed: expected a whole number, got the number 1e+30"),
        (with(r#""stream":"yes""#), "stream", "stream: expected true or false, got the string \"yes\""),
        (
            with(r#""stream_options":{"include_usage":1}"#),
            "stream_options.include_usage",
            "stream_options.include_usage: expected true or false, got the number 1",
        ),
        (with(r#""stop":7"#), "stop", "stop: expected a string or an array of strings"),
        (with(r#""model":"again""#), "model", "model occurs twice"),
        // Tools.
        (with(r#""tools":{}"#), "tools", "tools: expected an array, got an object"),
        (with(r#""tools":[{"type":"function"}]"#), "tools[0].function", "a tool needs a 'function'"),
        (with(r#""tools":[{"function":{"name":""}}]"#), "tools[0].function.name", "a tool needs a name"),
        (with(r#""tools":[{"function":{}}]"#), "tools[0].function.name", "tools[0].function.name is missing"),
        (
            with(r#""tools":[{"type":"web_search"}]"#),
            "tools[0].type",
            "'web_search' is not a supported type of tool. Supported is 'function'",
        ),
        (
            with(
                r#""tools":[{"function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}"#,
            ),
            "tool_choice",
            "tool 'g' is not in 'tools'",
        ),
        (
            with(r#""tool_choice":"perhaps""#),
            "tool_choice",
            "'perhaps' is not a choice. Choices are auto, none, required, a function by name, and allowed_tools",
        ),
        (with(r#""tool_choice":"required""#), "tool_choice", "a tool is required but 'tools' is empty"),
        (
            with(r#""tool_choice":{"type":"function"}"#),
            "tool_choice",
            "a chosen function is written {\"type\": \"function\", \"function\": {\"name\": \"…\"}}",
        ),
        (with(r#""tool_choice":7"#), "tool_choice", "expected a word or an object"),
        (
            with(r#""tools":[{"function":{"name":"f","parameters":7}}]"#),
            "tools[0].function.parameters",
            "tools[0].function.parameters: expected a JSON Schema, which is an object",
        ),
        (with(r#""functions":[{"name":""}]"#), "functions[0].name", "a tool needs a name"),
        (
            with(r#""functions":[{"name":"f"}],"tools":[{"function":{"name":"f"}}]"#),
            "functions",
            "'functions' is the older name of 'tools'; send one of them",
        ),
        (
            with(r#""functions":[{"name":"f"}],"function_call":{"name":"g"}"#),
            "function_call",
            "function 'g' is not in 'functions'",
        ),
        (
            with(r#""functions":[{"name":"f"}],"function_call":"required""#),
            "function_call",
            "expected auto, none, or a function by name",
        ),
        // Formats.
        (
            with(r#""response_format":{"type":"json_schema"}"#),
            "response_format.json_schema",
            "a response format of type 'json_schema' needs 'json_schema' with a 'schema'",
        ),
        (
            with(r#""response_format":{"type":"json_schema","json_schema":{"name":"x"}}"#),
            "response_format.json_schema",
            "a response format of type 'json_schema' needs 'json_schema' with a 'schema'",
        ),
        (
            with(r#""response_format":{"type":"xml"}"#),
            "response_format.type",
            "'xml' is not a response format. Formats are text, json_object and json_schema",
        ),
        (with(r#""response_format":{}"#), "response_format.type", "response_format.type is missing"),
    ];
    for (body, param, message) in table {
        assert_eq!(refusal(body.as_bytes()), (Some((*param).to_owned()), (*message).to_owned()), "{body}");
    }
}

#[test]
fn invalid_json_is_an_error_without_a_field() {
    let bomb = with(&format!(r#""x":{}"#, "[".repeat(50_000)));
    let whole_bomb = with(&format!(r#""x":{}0{}"#, r#"{"x":"#.repeat(1000), "}".repeat(1000)));
    let table: &[(&[u8], &str)] = &[
        (b"", "the request body is not valid JSON: EOF while parsing a value"),
        (b"{\"model\":", "the request body is not valid JSON: EOF while parsing a value"),
        (b"model=m", "the request body is not valid JSON: expected value"),
        (b"{\"model\":\"m\"} {}", "the request body is not valid JSON: trailing characters"),
        (
            b"{\"model\":\"a\0b\"}",
            "the request body is not valid JSON: control character (\\u0000-\\u001F) found while parsing a string",
        ),
        (b"{\"model\":\"\\ud800\"}", "the request body is not valid JSON: unexpected end of hex escape"),
        (b"{\"model\":\"\xff\"}", "the request body is not valid JSON: invalid unicode code point"),
        (b"{\"temperature\":1e999}", "the request body is not valid JSON: number out of range"),
        (bomb.as_bytes(), "the request body is nested too deep; the limit is 127"),
        (whole_bomb.as_bytes(), "the request body is nested too deep; the limit is 127"),
        (b"[]", "the request body is wrong: expected an object, got an array"),
        (b"null", "the request body is wrong: expected an object, got null"),
        (b"\"hi\"", "the request body is wrong: expected an object, got the string \"hi\""),
    ];
    for (body, message) in table {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let (param, told) = refusal(body);
        // Where exactly is the parser's business.
        let told = told.split(" at line ").next().unwrap_or_default();
        assert_eq!((param, told), (None, *message), "{shown}");
    }
}

#[test]
fn a_long_wrong_value_does_not_come_back_whole() {
    let body = with(&format!(r#""temperature":"{}""#, "x".repeat(100_000)));
    let (param, message) = refusal(body.as_bytes());
    assert_eq!(param.as_deref(), Some("temperature"));
    assert!(message.len() < 300, "{} characters", message.len());
}

#[test]
fn an_escaped_nul_and_a_pair_of_surrogates_are_text() {
    let request = parse(&saying(r#"{"role":"user","content":"a\u0000b \ud83d\ude00"}"#)).request;
    assert_eq!(request.messages[0].content.text(), "a\0b \u{1f600}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = ChatRequest::parse(&bytes);
    }

    #[test]
    fn anything_that_looks_like_a_request_is_read_or_refused(
        pieces in proptest::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "null", "true", "1", "-2.5", "\"m\"", "\"model\":", "\"messages\":",
                "\"role\":", "\"user\"", "\"content\":", "\"tools\":", "\"function\":", "\"name\":", "\"stop\":",
                "\"tool_choice\":", "\"response_format\":", "\"type\":", "\"json_schema\"",
            ]),
            0..40,
        ),
    ) {
        let _ = ChatRequest::parse(pieces.concat().as_bytes());
    }

    #[test]
    fn the_text_of_messages_arrives_as_it_was_sent(
        texts in proptest::collection::vec((prop::sample::select(vec!["system", "user", "assistant"]), ".*"), 1..6),
    ) {
        let messages: Vec<Value> = texts
            .iter()
            .map(|(role, text)| json!({ "role": role, "content": text }))
            .collect();
        let body = json!({ "model": "m", "messages": messages }).to_string();
        let read: Vec<(String, String)> = parse(&body)
            .request
            .messages
            .into_iter()
            .map(|message| (message.role.as_str().to_owned(), message.content.text().into_owned()))
            .collect();
        let sent: Vec<(String, String)> =
            texts.iter().map(|(role, text)| ((*role).to_owned(), text.clone())).collect();
        prop_assert_eq!(read, sent);
    }
}
