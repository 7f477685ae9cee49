//! Tools, functions and the choice among them.

use hob_core::{Image, ToolCall, ToolChoice, ToolDefinition};

use super::*;

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
