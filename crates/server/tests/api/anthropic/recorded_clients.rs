//! Requests as real clients send them, shortened: Claude Code 2.1.325.

use serde_json::{Value, json};

use super::{asking, events, post, saying_hello, warnings};

/// The first request of `claude -p`, with its texts cut.
fn first_request() -> Value {
    asking(json!({
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "<system-reminder>\nAttribution…\n</system-reminder>" },
                { "type": "text", "text": "Fix the bug", "cache_control": { "type": "ephemeral" } },
            ] },
            { "role": "system", "content": [{ "type": "text", "text": "# Environment\n - Platform: linux" }] },
        ],
        "system": [
            { "type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.325.0c0; cc_entrypoint=sdk-cli;" },
            { "type": "text", "text": "You are a Claude agent.", "cache_control": { "type": "ephemeral" } },
            { "type": "text", "text": "\nYou are an agent working with the user." },
        ],
        "tools": [
            { "name": "Bash", "description": "Executes a bash command.", "input_schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                "properties": { "command": { "type": "string" } }, "required": ["command"], "additionalProperties": false } },
            { "name": "DeferredToolPlaceholder", "description": "never call this tool", "input_schema": { "type": "object", "properties": {} }, "defer_loading": true },
        ],
        "metadata": { "user_id": "{\"device_id\":\"b17c\",\"account_uuid\":\"\",\"session_id\":\"a34a\"}" },
        "max_tokens": 32000,
        "thinking": { "type": "adaptive", "display": "omitted" },
        "context_management": { "edits": [{ "type": "clear_thinking_20251015", "keep": "all" }] },
        "output_config": { "effort": "high" },
        "stream": true,
    }))
}

#[tokio::test]
async fn claude_code_is_answered() {
    let (engine, server) = saying_hello().await;
    let response = post(&server, "/v1/messages?beta=true", &first_request()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        warnings(&response),
        [
            "ignored=cache_control",
            "ignored=system[].x-anthropic-billing-header",
            "ignored=context_management"
        ]
    );
    assert_eq!(events(response).await.last().unwrap()["type"], "message_stop");
    let request = &engine.requests()[0];
    let said: Vec<(&str, String)> = request
        .messages
        .iter()
        .map(|message| (message.role.as_str(), message.content.text().into_owned()))
        .collect();
    assert_eq!(
        said,
        [
            ("system", "You are a Claude agent.\n\nYou are an agent working with the user.".to_owned()),
            (
                "user",
                "<system-reminder>\nAttribution…\n</system-reminder>\nFix the bug\n<system>\n# Environment\n - Platform: linux\n</system>"
                    .to_owned()
            ),
        ]
    );
    let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["Bash"]);
    assert_eq!(Value::Object(request.extra.clone()), json!({ "reasoning_effort": "high" }));
}
