use hob_core::{
    Content, ContentPart, Image, JsonSchema, Message, Role, ToolCall, ToolChoice, ToolDefinition,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(body: &Value) -> MessagesRequest {
    MessagesRequest::parse(body.to_string().as_bytes()).unwrap_or_else(|error| panic!("{body}: {error:?}"))
}

/// A small good request with `fields` added to it.
fn with(fields: Value) -> Value {
    let mut body =
        json!({ "model": "m", "max_tokens": 16, "messages": [{ "role": "user", "content": "hi" }] });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// The messages that engines get.
fn messages(messages: Value) -> Vec<Message> {
    parse(&with(json!({ "messages": messages }))).request.messages
}

/// The names of fields without effect.
fn ignored(body: &Value) -> Vec<String> {
    parse(body).warnings.iter().map(|warning| warning.text().into_owned()).collect()
}

fn refused(body: &Value) -> String {
    let error = MessagesRequest::parse(body.to_string().as_bytes()).expect_err("it is refused");
    error.message().to_owned()
}

fn user(text: &str) -> Message {
    Message::new(Role::User, text)
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "look".into(), arguments: arguments.into() }
}

#[test]
fn the_smallest_request_says_what_it_must() {
    let expected = MessagesRequest {
        request: GenerateRequest {
            model: "m".into(),
            messages: vec![user("hi")],
            max_tokens: MaxTokens::new(16).ok(),
            is_max_tokens_soft: true,
            ..GenerateRequest::default()
        },
        is_streamed: false,
        agent: AgentPreference::Configured,
        display: ThinkingDisplay::Absent,
        warnings: Vec::new(),
    };
    assert_eq!(parse(&with(json!({}))), expected);
}

#[test]
fn every_field_reaches_the_engine() {
    let schema = json!({ "type": "object", "properties": { "b": { "type": "string" }, "a": {} } });
    let body = with(json!({
        "system": [{ "type": "text", "text": "be" }, { "type": "text", "text": "kind" }],
        "stream": true,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "stop_sequences": ["END"],
        "tools": [{ "name": "look", "description": "looks", "input_schema": schema, "strict": true }],
        "tool_choice": { "type": "tool", "name": "look", "disable_parallel_tool_use": true },
        "thinking": { "type": "adaptive" },
        "output_config": { "effort": "high", "format": { "type": "json_schema", "schema": { "type": "object" } } },
        "metadata": { "user_id": "ann" },
        "service_tier": "auto",
        "agent": "none",
        "min_p": 0.1,
    }));
    let expected = MessagesRequest {
        request: GenerateRequest {
            model: "m".into(),
            messages: vec![Message::new(Role::System, "be\nkind"), user("hi")],
            temperature: Temperature::new(0.5).ok(),
            max_tokens: MaxTokens::new(16).ok(),
            sampling: Sampling { top_p: Some(0.9), stop: vec!["END".into()], ..Sampling::default() },
            tools: vec![ToolDefinition {
                name: "look".into(),
                description: Some("looks".into()),
                parameters: Some(schema),
                strict: Some(true),
            }],
            tool_choice: Some(ToolChoice::Function("look".into())),
            parallel_tool_calls: Some(false),
            response_format: ResponseFormat::JsonSchema(JsonSchema {
                name: "answer".into(),
                description: None,
                schema: json!({ "type": "object" }),
                strict: Some(true),
            }),
            extra: json!({ "min_p": 0.1 }).as_object().unwrap().clone(),
            hints: json!({ "reasoning_effort": "high", "top_k": 40 }).as_object().unwrap().clone(),
            anthropic: json!({
                "output_config": { "effort": "high" }, "thinking": { "type": "adaptive" },
                "metadata": { "user_id": "ann" }, "service_tier": "auto",
            })
            .as_object()
            .unwrap()
            .clone(),
            is_max_tokens_soft: true,
            ..GenerateRequest::default()
        },
        is_streamed: true,
        agent: AgentPreference::None,
        display: ThinkingDisplay::Shown,
        warnings: Vec::new(),
    };
    assert_eq!(parse(&body), expected);
}

#[test]
fn a_turn_with_tools_becomes_calls_and_results() {
    let conversation = messages(json!([
        { "role": "user", "content": "what is there?" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "let me look", "signature": "hob." },
            { "type": "text", "text": "I look." },
            { "type": "tool_use", "id": "t1", "name": "look", "input": { "z": 1, "a": [2] } },
            { "type": "tool_use", "id": "t2", "name": "look" },
        ] },
        { "role": "user", "content": [
            { "type": "text", "text": "and hurry" },
            { "tool_use_id": "t1", "type": "tool_result", "content": "a cat" },
            { "type": "tool_result", "tool_use_id": "t2", "is_error": true, "content": [{ "type": "text", "text": "no light" }] },
        ] },
    ]));
    let mut assistant = Message::new(Role::Assistant, "I look.");
    assistant.tool_calls = vec![call("t1", r#"{"z":1,"a":[2]}"#), call("t2", "{}")];
    assistant.extra.insert("reasoning_content".into(), json!("let me look"));
    assert_eq!(
        conversation,
        [
            user("what is there?"),
            assistant,
            Message::tool_result("t1", "a cat"),
            Message::tool_result("t2", "Error: no light"),
            user("and hurry"),
        ]
    );
}

#[test]
fn messages_of_one_role_in_a_row_become_one_with_all_their_reasoning() {
    let thought =
        |text: &str, signature: &str| json!({ "type": "thinking", "thinking": text, "signature": signature });
    let conversation = messages(json!([
        { "role": "user", "content": "2+2?" },
        { "role": "user", "content": [{ "type": "text", "text": "Hurry." }, { "type": "text", "text": "Please." }] },
        { "role": "assistant", "content": [thought("2 and 2", "EqQB"), { "type": "text", "text": "It" }] },
        { "role": "assistant", "content": [thought("is 4", "FrRC"), { "type": "text", "text": "is 4." }] },
    ]));
    let mut assistant = Message::new(Role::Assistant, "It\nis 4.");
    assistant.extra.insert("reasoning_content".into(), json!("2 and 2\nis 4"));
    assistant
        .extra
        .insert("thinking_blocks".into(), json!([thought("2 and 2", "EqQB"), thought("is 4", "FrRC")]));
    assert_eq!(conversation, [user("2+2?\nHurry.\nPlease."), assistant]);
}

#[test]
fn reasoning_that_a_provider_sealed_keeps_its_seal() {
    let conversation = messages(json!([
        { "role": "user", "content": "2+2?" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "2 and 2", "signature": "EqQB" },
            { "type": "redacted_thinking", "data": "Emw" },
            { "type": "thinking", "thinking": "is 4", "signature": "hob." },
            { "type": "text", "text": "4" },
        ] },
    ]));
    let mut assistant = Message::new(Role::Assistant, "4");
    assistant.extra.insert("reasoning_content".into(), json!("2 and 2\nis 4"));
    assistant.extra.insert(
        "thinking_blocks".into(),
        json!([
            { "type": "thinking", "thinking": "2 and 2", "signature": "EqQB" },
            { "type": "redacted_thinking", "data": "Emw" },
        ]),
    );
    assert_eq!(conversation, [user("2+2?"), assistant]);
}

#[test]
fn the_picture_of_a_result_follows_it() {
    let picture =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } });
    let conversation = messages(json!([
        { "role": "user", "content": "look" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "look", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": [picture] }] },
    ]));
    let image = ContentPart::Image(Image { url: "data:image/png;base64,AAAA".into(), detail: None });
    let label = ContentPart::Text("From the result of look (t1):".into());
    assert_eq!(
        conversation[2..],
        [
            Message::tool_result("t1", "The result is in the next message."),
            Message::new(Role::User, Content::Parts(vec![label, image])),
        ]
    );
}

#[test]
fn images_and_documents_are_content() {
    let conversation = messages(json!([{ "role": "user", "content": [
        { "type": "text", "text": "compare" },
        { "type": "image", "source": { "type": "url", "url": "https://example.org/cat.png" } },
        { "type": "document", "title": "notes.txt", "context": "of 2020", "source": { "type": "text", "media_type": "text/plain", "data": "cats purr" } },
        { "type": "document", "source": { "type": "content", "content": [{ "type": "text", "text": "dogs bark" }] } },
        { "type": "document", "title": "a.pdf", "source": { "type": "base64", "media_type": "application/pdf", "data": "JVBE" } },
        { "type": "search_result", "source": "https://example.org", "title": "Birds", "content": [{ "type": "text", "text": "birds sing" }] },
    ] }]));
    let text = |text: &str| ContentPart::Text(text.into());
    let file = json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE" } });
    let parts = vec![
        text("compare"),
        ContentPart::Image(Image { url: "https://example.org/cat.png".into(), detail: None }),
        text("File notes.txt:\n\nof 2020\ncats purr\n\nEnd of file notes.txt."),
        text("File Document:\n\ndogs bark\n\nEnd of file Document."),
        ContentPart::Other(file),
        text("File Birds:\n\nhttps://example.org\nbirds sing\n\nEnd of file Birds."),
    ];
    assert_eq!(conversation, [Message::new(Role::User, Content::Parts(parts))]);
}

#[test]
fn the_texts_of_a_document_are_marked_once_each() {
    let nested = json!({ "type": "document", "title": "Inner", "source": { "type": "text", "media_type": "text/plain", "data": "b" } });
    let image = json!({ "type": "image", "source": { "type": "url", "url": "https://example.org/cat.png" } });
    let content = json!([{ "type": "text", "text": "a" }, nested, image, { "type": "text", "text": "c" }]);
    let outer =
        json!({ "type": "document", "title": "Outer", "source": { "type": "content", "content": content } });
    let content = json!([outer, { "type": "text", "text": "Why?" }]);
    let message = messages(json!([{ "role": "user", "content": content }])).remove(0);
    let Content::Parts(parts) = message.content else { panic!("it has an image") };
    let text = |text: &str| ContentPart::Text(text.into());
    let expected = [
        text("File Outer:\n\na\nInner\nb\n\nEnd of file Outer."),
        ContentPart::Image(Image { url: "https://example.org/cat.png".into(), detail: None }),
        text("File Document, continued:\n\nc\n\nEnd of file Document, continued."),
        text("Why?"),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn there_is_one_system_message_and_it_is_first() {
    let conversation = parse(&with(json!({
        "system": [
            { "type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.325.0c0;" },
            { "type": "text", "text": "You are kind.", "cache_control": { "type": "ephemeral" } },
        ],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "hi" }, { "type": "text", "text": "you" }] },
            { "role": "system", "content": [{ "type": "text", "text": "It is Monday." }] },
            { "role": "user", "content": "well?" },
            { "role": "assistant", "content": "Yes" },
            { "role": "assistant", "content": [{ "type": "text", "text": "it is." }] },
        ],
    })));
    assert_eq!(
        conversation.request.messages,
        [
            Message::new(Role::System, "You are kind.\nBe brief."),
            user("hi\nyou\n<system>\nIt is Monday.\n</system>\nwell?"),
            Message::new(Role::Assistant, "Yes\nit is."),
        ]
    );
    assert_eq!(
        conversation.warnings,
        [
            AnswerWarning::Ignored("cache_control".into()),
            AnswerWarning::Ignored("system[].x-anthropic-billing-header".into()),
        ]
    );
}

#[test]
fn a_deferred_tool_is_offered_once_it_was_found() {
    let tool = |name: &str, deferred: bool| json!({ "name": name, "input_schema": { "type": "object" }, "defer_loading": deferred });
    let tools = json!([tool("search", false), tool("far", true), tool("farther", true)]);
    let offered = |messages: Value| -> Vec<String> {
        let request = parse(&with(json!({ "tools": tools, "messages": messages }))).request;
        request.tools.into_iter().map(|tool| tool.name).collect()
    };
    assert_eq!(offered(json!([{ "role": "user", "content": "hi" }])), ["search"]);
    let found = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "search", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": [{ "type": "tool_reference", "tool_name": "far" }] }] },
    ]);
    assert_eq!(offered(found), ["search", "far"]);
}

#[test]
fn what_has_no_effect_is_named() {
    let body = with(json!({
        "system": [{ "type": "text", "text": "a", "cache_control": { "type": "ephemeral" } }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" }, "citations": null }] },
            { "role": "assistant", "content": [
                { "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} },
                { "type": "web_search_tool_result", "tool_use_id": "s1", "content": [] },
                { "type": "text", "text": "4", "citations": [] },
            ] },
            { "role": "user", "content": [{ "type": "document", "source": { "type": "text", "media_type": "text/plain", "data": "x" }, "citations": { "enabled": true } }] },
        ],
        "tools": [{ "type": "web_search_20250305", "name": "web_search", "max_uses": 8 }, { "type": "bash_20250124", "name": "bash" }],
        "context_management": { "edits": [] },
        "mcp_servers": [{ "type": "url", "url": "https://example.org", "name": "x" }],
        "container": "c",
        "future_field": 1,
        "output_config": { "task_budget": { "type": "tokens", "total": 1 } },
        "store": null,
    }));
    assert_eq!(
        ignored(&body),
        [
            "cache_control",
            "messages[].content[].server_tool_use",
            "messages[].content[].web_search_tool_result",
            "messages[].content[].citations",
            "tools[].web_search_20250305",
            "tools[].bash_20250124",
            "output_config.task_budget",
            "context_management",
            "mcp_servers",
            "container",
            "future_field",
        ]
        .map(|field| format!("ignored={field}"))
    );
}

#[test]
fn a_wrong_field_is_refused_by_its_name() {
    let block = |block: Value| json!({ "messages": [{ "role": "user", "content": [block] }] });
    let said = |block: Value| json!({ "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": [block] }] });
    for (fields, beginning) in [
        (json!({ "model": null }), "'model' is required"),
        (json!({ "max_tokens": null }), "max_tokens: this field is required"),
        (json!({ "max_tokens": 0 }), "max_tokens: it must be between"),
        (json!({ "max_tokens": "16" }), "max_tokens: expected a whole number"),
        (json!({ "messages": null }), "messages: this field is required"),
        (json!({ "messages": [] }), "messages: at least one"),
        (json!({ "messages": [{ "content": "a" }] }), "messages[0].role"),
        (json!({ "messages": [{ "role": "robot", "content": "a" }] }), "messages[0].role: 'robot'"),
        (json!({ "messages": [{ "role": "user" }] }), "messages[0].content"),
        (json!({ "messages": [{ "role": "user", "content": 5 }] }), "messages[0].content"),
        (json!({ "messages": [{ "role": "user", "content": [5] }] }), "messages[0].content[0]"),
        (block(json!({ "text": "a" })), "messages[0].content[0].type is missing"),
        (block(json!({ "type": "text" })), "messages[0].content[0].text: a block of type 'text' needs it"),
        (block(json!({ "type": "poem" })), "messages[0].content[0].type: 'poem'"),
        (
            block(json!({ "type": "image" })),
            "messages[0].content[0].source: a block of type 'image' needs it",
        ),
        (block(json!({ "type": "image", "source": { "type": "base64" } })), "messages[0].content[0].source:"),
        (
            block(json!({ "type": "image", "source": { "type": "text", "data": "a" } })),
            "messages[0].content[0].source.type",
        ),
        (
            block(json!({ "type": "document", "source": { "type": "file", "file_id": "f" } })),
            "messages[0].content[0].source.file_id",
        ),
        (
            block(json!({ "type": "tool_result", "content": "a" })),
            "messages[0].content[0].tool_use_id: a block of type 'tool_result' needs it",
        ),
        (
            block(json!({ "type": "tool_result", "tool_use_id": "t", "content": [{ "type": "poem" }] })),
            "messages[0].content[0].content[0].type",
        ),
        (
            block(json!({ "type": "tool_result", "tool_use_id": "t", "content": 7 })),
            "messages[0].content[0].content:",
        ),
        (
            said(json!({ "type": "tool_use", "name": "f" })),
            "messages[1].content[0].id: a block of type 'tool_use' needs it",
        ),
        (
            said(json!({ "type": "tool_use", "id": "t", "name": "f", "input": "x" })),
            "messages[1].content[0].input",
        ),
        (said(json!({ "type": "image", "source": {} })), "messages[1].content[0].type: 'image'"),
        (json!({ "system": [{ "type": "image" }] }), "system[0].type"),
        (json!({ "system": 5 }), "system: "),
        (json!({ "temperature": 1.5 }), "temperature must be between 0 and 1"),
        (json!({ "top_p": -1 }), "top_p"),
        (json!({ "top_k": -1 }), "top_k"),
        (json!({ "stop_sequences": "END" }), "stop_sequences: expected an array"),
        (json!({ "tools": [{ "name": "f" }] }), "tools[0].input_schema"),
        (json!({ "tools": [{ "name": "f", "input_schema": [] }] }), "tools[0].input_schema"),
        (json!({ "tools": [{ "input_schema": {} }] }), "tools[0].name"),
        (json!({ "tool_choice": { "type": "any" } }), "tool_choice: a tool is required"),
        (json!({ "tool_choice": { "type": "tool", "name": "f" } }), "tool_choice: tool 'f'"),
        (json!({ "tool_choice": { "type": "tool" } }), "tool_choice: the type 'tool' needs"),
        (json!({ "tool_choice": { "type": "perhaps" } }), "tool_choice: 'perhaps'"),
        (json!({ "tool_choice": "auto" }), "tool_choice: expected an object"),
        (json!({ "output_config": { "format": { "type": "xml" } } }), "output_config.format.type"),
        (json!({ "output_format": { "type": "json_schema" } }), "output_format.schema"),
        (json!({ "thinking": { "type": "enabled" } }), "thinking.budget_tokens"),
    ] {
        let message = refused(&with(fields.clone()));
        assert!(message.starts_with(beginning), "{fields}: {message}");
    }
}

#[test]
fn a_limit_is_named_as_the_caller_wrote_the_field() {
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
    let block = json!({ "type": "text", "text": "a" });
    let image = json!({ "type": "image", "source": { "type": "url", "url": "https://example.org" } });
    let mut many = vec![block; 5_000];
    many.push(image);
    let system_and_many = json!({
        "system": "be kind",
        "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }, { "role": "user", "content": many }],
    });
    for (fields, beginning) in [
        (json!({ "tools": [{ "name": "f", "input_schema": deep }] }), "tools[0].input_schema"),
        (json!({ "tools": [{ "name": "f".repeat(300), "input_schema": {} }] }), "tools[0].name"),
        (
            json!({ "output_config": { "format": { "type": "json_schema", "schema": deep } } }),
            "output_config.format.schema",
        ),
        (json!({ "stop_sequences": vec!["a"; 100] }), "stop_sequences has"),
        (json!({ "stop_sequences": ["a".repeat(2_000)] }), "stop_sequences[0]"),
        (json!({ "model": "m".repeat(600) }), "model"),
        (system_and_many, "messages[2].content"),
    ] {
        let message = refused(&with(fields));
        assert!(message.starts_with(beginning), "{message}");
    }
}

#[test]
fn counting_needs_no_limit_of_an_answer() {
    let mut body = with(json!({}));
    body.as_object_mut().unwrap().remove("max_tokens");
    let counted = MessagesRequest::parse_count(body.to_string().as_bytes()).unwrap();
    assert_eq!(counted.request.messages, [user("hi")]);
    assert_eq!(refused(&body), "max_tokens: this field is required");
}

fn any_block() -> impl Strategy<Value = Value> {
    let text = "[a-z <>\u{e9}]{0,8}";
    prop_oneof![
        text.prop_map(|text| json!({ "type": "text", "text": text })),
        (text, prop::bool::ANY).prop_map(|(text, is_error)| {
            json!({ "type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": is_error })
        }),
        text.prop_map(|url| json!({ "type": "image", "source": { "type": "url", "url": url } })),
    ]
}

proptest! {
    /// Whatever the blocks of the turns are, engines get alternating turns and nothing that was said is lost.
    #[test]
    fn turns_alternate_and_no_text_is_lost(turns in prop::collection::vec((prop::sample::select(vec!["user", "assistant", "system"]), prop::collection::vec(any_block(), 1..4)), 1..8)) {
        let turns: Vec<Value> = turns.into_iter().map(|(role, blocks)| {
            let texts_only = blocks.iter().filter(|block| role == "user" || block["type"] == "text").cloned().collect::<Vec<_>>();
            json!({ "role": role, "content": texts_only })
        }).collect();
        let said = messages(json!(turns));
        for pair in said.windows(2) {
            prop_assert!(pair[0].role != pair[1].role || pair[0].role == Role::Tool, "{said:?}");
        }
        prop_assert!(said.iter().skip(1).all(|message| message.role != Role::System));
        let everything: String = said.iter().map(|message| message.content.text().into_owned() + "\n").collect();
        for block in turns.iter().flat_map(|turn| turn["content"].as_array().unwrap()) {
            let text = block["text"].as_str().or(block["content"].as_str()).unwrap_or_default();
            prop_assert!(everything.contains(text), "{text:?} in {everything:?}");
        }
    }
}
