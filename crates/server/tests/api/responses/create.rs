//! `POST /v1/responses`: whole and streamed, and continued.

use std::sync::Arc;

use hob_core::{Delta, FinishReason, Message, ReasoningSeal, Role, ToolCall};
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::{
    StoringServer, call, calling, error_of, events_of, finish, giving, json_of, last_messages, thought,
    types_of, warnings_of,
};
use crate::fixtures::usage;

/// The response with its random and changing parts checked and replaced.
fn fixed(mut response: Value) -> Value {
    let id = response["id"].as_str().unwrap().to_owned();
    let suffix = id.strip_prefix("resp_").unwrap().to_owned();
    assert!(suffix.len() == 24 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for field in ["created_at", "completed_at"] {
        assert!(response[field].as_u64().unwrap().abs_diff(now) < 60, "{field}");
        response[field] = 0.into();
    }
    serde_json::from_str(&response.to_string().replace(&suffix, "SUFFIX")).unwrap()
}

#[tokio::test]
async fn a_whole_answer_has_the_documented_body() {
    let server = StoringServer::saying(&["Hel", "lo"]).await;
    let response = server.create(json!({ "instructions": "be brief", "metadata": { "a": "b" } })).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["x-hob-engine"], "scripted");
    assert_eq!(warnings_of(&response), Vec::<String>::new());
    insta::assert_json_snapshot!(fixed(json_of(response).await), @r#"
    {
      "id": "resp_SUFFIX",
      "object": "response",
      "created_at": 0,
      "status": "completed",
      "completed_at": 0,
      "error": null,
      "incomplete_details": null,
      "model": "m",
      "output": [
        {
          "id": "msg_SUFFIX0",
          "status": "completed",
          "type": "message",
          "role": "assistant",
          "content": [
            {
              "type": "output_text",
              "annotations": [],
              "logprobs": [],
              "text": "Hello"
            }
          ]
        }
      ],
      "usage": {
        "input_tokens": 3,
        "input_tokens_details": {
          "cached_tokens": 0,
          "cache_write_tokens": 0
        },
        "output_tokens": 2,
        "output_tokens_details": {
          "reasoning_tokens": 0
        },
        "total_tokens": 5
      },
      "background": false,
      "instructions": "be brief",
      "max_output_tokens": null,
      "metadata": {
        "a": "b"
      },
      "parallel_tool_calls": true,
      "previous_response_id": null,
      "prompt_cache_key": null,
      "reasoning": {
        "effort": null,
        "summary": null
      },
      "safety_identifier": null,
      "service_tier": null,
      "temperature": null,
      "text": {
        "format": {
          "type": "text"
        }
      },
      "tool_choice": "auto",
      "tools": [],
      "top_logprobs": 0,
      "top_p": null,
      "truncation": "disabled",
      "user": null,
      "store": true
    }
    "#);
}

#[tokio::test]
async fn a_stream_has_the_documented_events_and_the_same_response_at_its_end() {
    let server = StoringServer::saying(&["Hel", "lo"]).await;
    let response = server.create(json!({ "stream": true })).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let events = events_of(&response.text().await.unwrap());
    assert_eq!(
        types_of(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    let whole = server.created(json!({})).await;
    assert_eq!(fixed(events[9]["response"].clone()), fixed(whole));
    let id = events[0]["response"]["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/responses/{id}")).await, events[9]["response"]);
}

#[tokio::test]
async fn a_tool_call_and_its_output_go_there_and_back_with_the_reasoning() {
    let engine = calling("weather", "{\"town\":\"Ulm\"}");
    let server = StoringServer::start(engine.clone()).await;
    let tools = json!([{ "type": "function", "name": "weather", "parameters": { "type": "object" }, "strict": false }]);
    let question =
        json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "rain?" }] });
    // As Codex asks: everything is in the request, nothing is stored.
    let fields = |input: Value| {
        json!({
            "input": input, "tools": tools, "tool_choice": "auto", "parallel_tool_calls": true, "stream": true, "store": false,
            "reasoning": { "summary": "auto" }, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k",
            "client_metadata": { "session": "s" },
        })
    };
    let response = server.create(fields(json!([question]))).await;
    assert_eq!(warnings_of(&response), ["ignored=client_metadata"]);
    let events = events_of(&response.text().await.unwrap());
    let mut input = vec![question.clone()];
    let items = events.iter().filter(|event| event["type"] == "response.output_item.done");
    input.extend(items.map(|event| event["item"].clone()));
    assert_eq!(input[1]["summary"][0]["text"], "I need it");
    // A client that shows the summary sends only the seal back.
    input[1]["summary"] = json!([]);
    input.push(json!({ "type": "function_call_output", "id": "fco_1", "call_id": "c1", "output": "no" }));
    let response = server.create(fields(json!(input))).await;
    let events = events_of(&response.text().await.unwrap());
    assert_eq!(events.last().unwrap()["response"]["output"][0]["content"][0]["text"], "done");
    let called = ToolCall { id: "c1".into(), name: "weather".into(), arguments: "{\"town\":\"Ulm\"}".into() };
    let extra = [("reasoning_content".to_owned(), json!("I need it"))].into_iter().collect();
    assert_eq!(
        last_messages(&engine),
        [
            Message::new(Role::User, "rain?"),
            Message {
                tool_calls: vec![called],
                extra,
                ..Message::new(Role::Assistant, hob_core::Content::Empty)
            },
            Message::tool_result("c1", "no"),
        ]
    );
    let id = events[0]["response"]["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}");
    assert_eq!(
        error_of(server.ask(reqwest::Method::GET, &path).await).await,
        (404, json!("response_id"), json!("response_not_found"))
    );
}

#[tokio::test]
async fn what_a_provider_sealed_goes_back_to_it_unchanged() {
    let sealed = |seal| Delta::ReasoningSeal { choice: 0, seal };
    let engine = giving(vec![
        thought("2 and 2"),
        sealed(ReasoningSeal::Signature("EqQB".into())),
        sealed(ReasoningSeal::Redacted("Emw".into())),
        call("c1", "add", "{}"),
        finish(FinishReason::ToolCalls),
        usage(1, 1),
    ]);
    let server = StoringServer::start(engine.clone()).await;
    let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "4" });
    let sent_back = || {
        let messages = last_messages(&engine);
        let called = messages.iter().find(|message| !message.tool_calls.is_empty()).unwrap();
        called.extra["thinking_blocks"].clone()
    };
    let blocks = json!([
        { "type": "thinking", "thinking": "2 and 2", "signature": "EqQB" },
        { "type": "redacted_thinking", "data": "Emw" },
    ]);

    // As Codex: it stores the items itself, without the ids that are not in them.
    let codex = json!({
        "stream": true, "store": false, "include": ["reasoning.encrypted_content"], "reasoning": { "summary": "auto" },
    });
    let events = events_of(&server.create(codex).await.text().await.unwrap());
    let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
    let mut items = vec![json!({ "role": "user", "content": "hi" })];
    items.extend(done.map(|event| event["item"].clone()));
    items.push(output.clone());
    server.create(json!({ "store": false, "input": items })).await;
    assert_eq!(sent_back(), blocks);

    for fields in [json!({ "stream": true }), json!({}), json!({ "reasoning": { "summary": "auto" } })] {
        let response = server.create(fields.clone()).await;
        let id = match fields.get("stream") {
            Some(_) => events_of(&response.text().await.unwrap())[0]["response"]["id"].take(),
            None => json_of(response).await["id"].take(),
        };
        server.created(json!({ "previous_response_id": id, "input": [output] })).await;
        assert_eq!(sent_back(), blocks, "{fields}");
    }
}

#[tokio::test]
async fn a_response_is_continued_by_its_id_also_after_a_restart() {
    let engine = calling("weather", "{}");
    let server = StoringServer::start(engine.clone()).await;
    let tools = json!([{ "type": "function", "name": "weather" }]);
    let first = server.created(json!({ "instructions": "be brief", "tools": tools })).await;
    let server = server.restart(engine.clone()).await;
    let output = json!([{ "type": "function_call_output", "call_id": "c1", "output": "rain" }]);
    let second = server
        .created(
            json!({ "previous_response_id": first["id"], "input": output, "tools": tools, "stream": false }),
        )
        .await;
    assert_eq!(second["previous_response_id"], first["id"]);
    let third = server
        .create(json!({ "previous_response_id": second["id"], "input": "thanks", "stream": true }))
        .await;
    let events = events_of(&third.text().await.unwrap());
    assert_eq!(types_of(&events).last(), Some(&"response.completed"));
    let said: Vec<String> = last_messages(&engine)
        .iter()
        .map(|message| format!("{}: {}", message.role.as_str(), message.content.text()))
        .collect();
    // Instructions are not carried over.
    assert_eq!(said, ["user: hi", "assistant: ", "tool: rain", "assistant: done", "user: thanks"]);
}

#[tokio::test]
async fn a_response_that_is_not_stored_cannot_be_continued() {
    let server = StoringServer::saying(&["Hello"]).await;
    let first = server.created(json!({ "store": false })).await;
    assert_eq!(first["store"], false);
    let second = server.create(json!({ "previous_response_id": first["id"] })).await;
    assert_eq!(
        error_of(second).await,
        (400, json!("previous_response_id"), json!("previous_response_not_found"))
    );
    // One in the middle is missing.
    let first = server.created(json!({})).await;
    let second = server.created(json!({ "previous_response_id": first["id"] })).await;
    let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
    server.ask(reqwest::Method::DELETE, &path).await;
    let third = server.create(json!({ "previous_response_id": second["id"] })).await;
    assert_eq!(
        error_of(third).await,
        (400, json!("previous_response_id"), json!("previous_response_not_found"))
    );
}

#[tokio::test]
async fn an_item_is_referred_to_by_its_id() {
    let engine = Arc::new(ScriptedEngine::saying(&["Hello"]));
    let server = StoringServer::start(engine.clone()).await;
    let first = server.created(json!({})).await;
    let reference = json!({ "type": "item_reference", "id": first["output"][0]["id"] });
    let input =
        json!([{ "role": "user", "content": "hi" }, reference, { "role": "user", "content": "again" }]);
    server.created(json!({ "input": input })).await;
    assert_eq!(
        last_messages(&engine),
        [
            Message::new(Role::User, "hi"),
            Message::new(Role::Assistant, "Hello"),
            Message::new(Role::User, "again"),
        ]
    );
    let input = json!([{ "type": "item_reference", "id": "msg_nothing" }]);
    assert_eq!(
        error_of(server.create(json!({ "input": input })).await).await,
        (400, json!("input[0].id"), Value::Null)
    );
}

#[tokio::test]
async fn reasoning_and_calls_are_items_of_a_whole_answer() {
    let deltas = vec![
        thought("hm"),
        Delta::text("let me see"),
        call("c1", "f", "{}"),
        finish(FinishReason::ToolCalls),
        usage(1, 1),
    ];
    let server = StoringServer::start(giving(deltas)).await;
    let tools = json!([{ "type": "function", "name": "f" }]);
    let response = fixed(server.created(json!({ "tools": tools })).await);
    assert_eq!(
        response["output"],
        json!([
            {
                "id": "rs_SUFFIX0", "type": "reasoning", "status": "completed", "summary": [],
                "content": [{ "type": "reasoning_text", "text": "hm" }],
            },
            {
                "id": "msg_SUFFIX1", "type": "message", "status": "completed", "role": "assistant",
                "content": [{ "type": "output_text", "text": "let me see", "annotations": [], "logprobs": [] }],
            },
            { "id": "fc_SUFFIX2", "type": "function_call", "status": "completed", "call_id": "c1", "name": "f", "arguments": "{}" },
        ])
    );
    assert_eq!(response["tools"], tools);
}

#[tokio::test]
async fn reasoning_between_texts_is_an_item_between_messages_in_both_forms() {
    let deltas = vec![
        Delta::text("One."),
        thought("And then?"),
        Delta::text("Two."),
        finish(FinishReason::Length),
        usage(1, 1),
    ];
    let server = StoringServer::start(giving(deltas)).await;
    let whole = server.created(json!({})).await;
    let message = |id: &str, status: &str, text: &str| {
        let part = json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
        json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": [part] })
    };
    let output = json!([
        message("msg_0", "completed", "One."),
        {
            "id": "rs_1", "type": "reasoning", "status": "completed", "summary": [],
            "content": [{ "type": "reasoning_text", "text": "And then?" }],
        },
        message("msg_2", "incomplete", "Two."),
    ]);
    let without_suffix = |response: &Value| -> Value {
        let suffix = response["id"].as_str().unwrap().strip_prefix("resp_").unwrap();
        serde_json::from_str(&response["output"].to_string().replace(suffix, "")).unwrap()
    };
    assert_eq!(without_suffix(&whole), output);
    let streamed = server.create(json!({ "stream": true })).await.text().await.unwrap();
    let last = events_of(&streamed).pop().unwrap();
    assert_eq!((&last["type"], without_suffix(&last["response"])), (&json!("response.incomplete"), output));
}
