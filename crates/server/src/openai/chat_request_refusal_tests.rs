//! Requests that are refused, with their field and the reason.

use super::*;

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
            with(r#""max_completion_tokens":9,"max_tokens":-5"#),
            "max_tokens",
            "max_tokens must be between 1 and 4294967295, got -5",
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
