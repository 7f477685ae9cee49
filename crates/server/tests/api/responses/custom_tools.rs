//! Custom tools: free text for the client, a function with one string for the engine. And tools in namespaces: one name for the engine.

use hob_core::{Message, Role, ToolCall, ToolChoice};
use serde_json::{Value, json};

use super::{StoringServer, calling, events_of, last_messages, types_of};

#[tokio::test]
async fn a_custom_tool_is_called_with_text() {
    let engine = calling("apply_patch", "{\"input\":\"*** Begin Patch\\n*** End Patch\"}");
    let server = StoringServer::start(engine.clone()).await;
    let tools = json!([{
        "type": "custom", "name": "apply_patch", "description": "Edits files.",
        "format": { "type": "grammar", "syntax": "lark", "definition": "start: begin end" },
    }]);
    let response = server.create(json!({ "tools": tools, "stream": true })).await;
    let events = events_of(&response.text().await.unwrap());
    let of_call: Vec<&Value> = events.iter().filter(|event| event["output_index"] == 1).collect();
    let names: Vec<&str> = of_call.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "response.output_item.added",
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done",
            "response.output_item.done",
        ]
    );
    assert_eq!(of_call[1]["delta"], "*** Begin Patch\n*** End Patch");
    let item = &of_call[3]["item"];
    assert_eq!(
        [&item["type"], &item["name"], &item["input"], &item["call_id"]],
        [
            &json!("custom_tool_call"),
            &json!("apply_patch"),
            &json!("*** Begin Patch\n*** End Patch"),
            &json!("c1")
        ]
    );
    let offered = &engine.requests()[0].tools[0];
    assert_eq!(
        offered.description.as_deref(),
        Some("Edits files.\n\nThe input follows this lark grammar:\nstart: begin end")
    );

    let input = json!([
        { "role": "user", "content": "hi" },
        item,
        { "type": "custom_tool_call_output", "call_id": "c1", "output": "Done!" },
    ]);
    let response = server.create(json!({ "input": input, "tools": tools, "stream": true })).await;
    let events = events_of(&response.text().await.unwrap());
    assert_eq!(types_of(&events).last(), Some(&"response.completed"));
    let arguments = json!({ "input": "*** Begin Patch\n*** End Patch" }).to_string();
    let called = ToolCall { id: "c1".into(), name: "apply_patch".into(), arguments };
    assert_eq!(
        last_messages(&engine)[1..],
        [
            Message { tool_calls: vec![called], ..Message::new(Role::Assistant, hob_core::Content::Empty) },
            Message::tool_result("c1", "Done!"),
        ]
    );
}

#[tokio::test]
async fn a_tool_of_a_namespace_is_called_by_both_names() {
    let engine = calling("mcp__docs__search", "{}");
    let server = StoringServer::start(engine.clone()).await;
    let tools = json!([
        { "type": "function", "name": "search" },
        { "type": "namespace", "name": "mcp__docs", "description": "d", "tools": [
            { "type": "function", "name": "search", "description": "Searches.", "parameters": { "type": "object" } },
        ] },
    ]);
    let called = |item: &Value| {
        assert_eq!(
            [&item["type"], &item["name"], &item["namespace"], &item["arguments"], &item["call_id"]],
            [&json!("function_call"), &json!("search"), &json!("mcp__docs"), &json!("{}"), &json!("c1")]
        );
    };
    let whole = server.created(json!({ "tools": tools })).await;
    called(&whole["output"][1]);
    let offered = engine.requests()[0].tools.clone();
    let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["search", "mcp__docs__search"]);
    assert_eq!(offered[1].description.as_deref(), Some("Searches."));

    let response = server.create(json!({ "tools": tools, "stream": true })).await;
    let events = events_of(&response.text().await.unwrap());
    let of_call = |kind: &str| {
        let found = events.iter().find(|event| event["type"] == kind && event["output_index"] == 1);
        found.unwrap()["item"].clone()
    };
    assert_eq!(of_call("response.output_item.added")["namespace"], "mcp__docs");
    let item = of_call("response.output_item.done");
    called(&item);

    // The call in the history is one of the tool that is offered.
    let input = json!([
        { "role": "user", "content": "hi" },
        item,
        { "type": "function_call_output", "call_id": "c1", "output": "found" },
    ]);
    let done = server.created(json!({ "input": input, "tools": tools })).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(last_messages(&engine)[1].tool_calls[0].name, "mcp__docs__search");

    let chosen = json!({ "type": "function", "namespace": "mcp__docs", "name": "search" });
    server.created(json!({ "tools": tools, "tool_choice": chosen })).await;
    let choice = engine.requests().pop().unwrap().tool_choice;
    assert_eq!(choice, Some(ToolChoice::Function("mcp__docs__search".into())));
}
