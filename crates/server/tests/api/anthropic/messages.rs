//! Whole answers, and what engines get of a request.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::{
    Delta, FinishReason, MaxTokens, Message, ReasoningSeal, Role, ToolCall, ToolCallDelta, ToolChoice,
};
use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::{asking, create, events, message, post, saying_hello, serving, warnings};
use crate::client::chunk;
use crate::fixtures::{calculating, loopback_config, parts, reached_from_network, usage};
use crate::support::{FINISH, TestServer, engine_at, models};

#[tokio::test]
async fn an_answer_has_the_documented_form() {
    let (_engine, server) = saying_hello().await;
    let response = create(&server, &asking(json!({}))).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["request-id"], response.headers()["x-request-id"]);
    assert_eq!(response.headers()["x-hob-engine"], "scripted");
    insta::assert_json_snapshot!(message(response).await, @r#"
    {
      "id": "[id]",
      "type": "message",
      "role": "assistant",
      "model": "m",
      "content": [
        {
          "type": "text",
          "text": "Hello"
        }
      ],
      "stop_reason": "end_turn",
      "stop_sequence": null,
      "usage": {
        "input_tokens": 3,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 2
      }
    }
    "#);
}

#[tokio::test]
async fn the_query_of_beta_clients_changes_nothing() {
    let (_engine, server) = saying_hello().await;
    let response = post(&server, "/v1/messages?beta=true", &asking(json!({}))).await;
    assert_eq!(message(response).await["content"], json!([{ "type": "text", "text": "Hello" }]));
}

#[tokio::test]
async fn a_key_is_accepted_as_anthropics_clients_send_it() {
    let api_key = Some("s3cret".to_owned().into());
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = TestServer::start_with(engine, ServerConfig { api_key, ..ServerConfig::default() }).await;
    let request = || server.client.post(server.url("/v1/messages")).json(&asking(json!({})));
    assert_eq!(request().header("x-api-key", "s3cret").send().await.unwrap().status(), 200);
    assert_eq!(request().bearer_auth("s3cret").send().await.unwrap().status(), 200);
    let refused = request().header("x-api-key", "wrong").send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.headers()["request-id"], refused.headers()["x-request-id"]);
    let body: Value = refused.json().await.unwrap();
    assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!("authentication_error")));
}

#[tokio::test]
async fn a_conversation_with_tools_goes_there_and_back() {
    let engine = Arc::new(ScriptedEngine::new(|request| {
        let call = |index, id: &str, arguments: &str| {
            Delta::ToolCall(ToolCallDelta {
                choice: 0,
                index,
                id: Some(id.into()),
                name: Some("look".into()),
                arguments: arguments.into(),
            })
        };
        let has_result = request.messages.iter().any(|message| message.role == Role::Tool);
        let deltas = match has_result {
            false => vec![
                Delta::Reasoning { choice: 0, text: "I should look.".into() },
                Delta::text("Let me see."),
                call(0, "call_1", r#"{"where":"left"}"#),
                call(1, "call_2", "{}"),
                Delta::Finish { choice: 0, reason: FinishReason::ToolCalls },
                usage(10, 3),
            ],
            true => vec![
                Delta::text("A cat."),
                Delta::Finish { choice: 0, reason: FinishReason::Stop },
                usage(20, 5),
            ],
        };
        deltas.into_iter().map(Ok).collect()
    }));
    let server = serving(&engine).await;
    let tools = json!([{ "name": "look", "description": "looks", "input_schema": { "type": "object" } }]);
    let choice = json!({ "type": "any", "disable_parallel_tool_use": false });
    let first = json!({ "tools": tools, "tool_choice": choice, "thinking": { "type": "adaptive" } });
    let answer = message(create(&server, &asking(first)).await).await;
    let content = json!([
        { "type": "thinking", "thinking": "I should look.", "signature": "hob." },
        { "type": "text", "text": "Let me see." },
        { "type": "tool_use", "id": "call_1", "name": "look", "input": { "where": "left" } },
        { "type": "tool_use", "id": "call_2", "name": "look", "input": {} },
    ]);
    assert_eq!((&answer["content"], &answer["stop_reason"]), (&content, &json!("tool_use")));

    let results = json!([
        { "type": "tool_result", "tool_use_id": "call_1", "content": "a cat" },
        { "type": "tool_result", "tool_use_id": "call_2", "content": [{ "type": "text", "text": "dark" }], "is_error": true },
    ]);
    let messages = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": content },
        { "role": "user", "content": results },
    ]);
    let second = asking(json!({ "tools": tools, "messages": messages }));
    let answer = message(create(&server, &second).await).await;
    assert_eq!(answer["content"], json!([{ "type": "text", "text": "A cat." }]));

    let requests = engine.requests();
    assert_eq!(
        (&requests[0].tool_choice, requests[0].parallel_tool_calls),
        (&Some(ToolChoice::Required), Some(true))
    );
    let call = |id: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: "look".into(),
        arguments: arguments.into(),
    };
    let mut assistant = Message::new(Role::Assistant, "Let me see.");
    assistant.tool_calls = vec![call("call_1", r#"{"where":"left"}"#), call("call_2", "{}")];
    assistant.extra.insert("reasoning_content".into(), json!("I should look."));
    assert_eq!(
        requests[1].messages,
        [
            Message::new(Role::User, "hi"),
            assistant,
            Message::tool_result("call_1", "a cat"),
            Message::tool_result("call_2", "Error: dark"),
        ]
    );
}

#[tokio::test]
async fn reasoning_that_is_not_shown_goes_back_to_the_model() {
    let engine = Arc::new(ScriptedEngine::new(|_| {
        let deltas = vec![
            Delta::Reasoning { choice: 0, text: "2 and 2 is 4".into() },
            Delta::text("4"),
            Delta::Finish { choice: 0, reason: FinishReason::Stop },
            usage(1, 1),
        ];
        deltas.into_iter().map(Ok).collect()
    }));
    let server = serving(&engine).await;
    let hidden = json!({ "thinking": { "type": "adaptive", "display": "omitted" } });
    let answer = message(create(&server, &asking(hidden)).await).await;
    assert_eq!((&answer["content"][0]["thinking"], &answer["content"][1]["text"]), (&json!(""), &json!("4")));
    let messages = json!([
        { "role": "user", "content": "2+2?" },
        { "role": "assistant", "content": answer["content"] },
        { "role": "user", "content": "sure?" },
    ]);
    create(&server, &asking(json!({ "messages": messages }))).await;
    assert_eq!(engine.requests()[1].messages[1].extra["reasoning_content"], "2 and 2 is 4");
    let silent = message(create(&server, &asking(json!({}))).await).await;
    assert_eq!(
        silent["content"],
        json!([{ "type": "text", "text": "4" }]),
        "a client that asked for none gets none"
    );
}

#[tokio::test]
async fn the_stop_sequence_is_named_if_the_engine_names_it() {
    let answer = |stop_reason: Value| json!({ "model": "m", "choices": [{ "index": 0, "message": { "content": "one " }, "finish_reason": "stop", "stop_reason": stop_reason }] });
    for (told, stop_reason, stop_sequence) in [
        (json!("two"), json!("stop_sequence"), json!("two")),
        (json!(null), json!("end_turn"), json!(null)),
        (json!(151_645), json!("end_turn"), json!(null)),
        (json!("<|im_end|>"), json!("end_turn"), json!(null)),
    ] {
        let reply = answer(told).to_string();
        let fake = FakeServer::start(move |request| match request.method.as_str() {
            "GET" => models(),
            _ => Reply::json(200, reply.clone()),
        })
        .await;
        let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
        let body =
            message(create(&server, &asking(json!({ "stop_sequences": ["two", "three"] }))).await).await;
        assert_eq!((&body["stop_reason"], &body["stop_sequence"]), (&stop_reason, &stop_sequence));
        let asked: Value = serde_json::from_slice(&fake.requests().last().unwrap().body).unwrap();
        assert_eq!(asked["stop"], json!(["two", "three"]));
    }
}

#[tokio::test]
async fn what_has_no_effect_is_named_in_the_answer() {
    let (engine, server) = saying_hello().await;
    let body = asking(json!({
        "system": [{ "type": "text", "text": "be kind", "cache_control": { "type": "ephemeral" } }],
        "context_management": { "edits": [{ "type": "clear_thinking_20251015", "keep": "all" }] },
        "tools": [{ "type": "web_search_20250305", "name": "web_search", "max_uses": 8 }],
        "tool_choice": { "type": "auto" },
    }));
    let response = create(&server, &body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        warnings(&response),
        ["ignored=cache_control", "ignored=tools[].web_search_20250305", "ignored=context_management"]
    );
    assert_eq!(engine.requests()[0].tools, []);
}

#[tokio::test]
async fn a_limit_far_beyond_the_model_reaches_the_engine_as_it_is() {
    let (engine, server) = saying_hello().await;
    assert_eq!(create(&server, &asking(json!({ "max_tokens": 128_000 }))).await.status(), 200);
    assert_eq!(engine.requests()[0].max_tokens, MaxTokens::new(128_000).ok());
}

#[tokio::test]
async fn an_agent_answers_here_too() {
    let engine = calculating();
    let server = TestServer::start_system(parts(engine), loopback_config()).await;
    let answer = message(create(&server, &asking(json!({}))).await).await;
    assert_eq!(answer["content"], json!([{ "type": "text", "text": "It is 391." }]));
    assert_eq!(answer["usage"]["input_tokens"], 30);
    let answer = message(create(&server, &asking(json!({ "agent": "none" }))).await).await;
    assert_eq!(answer["usage"]["input_tokens"], 20);
}

#[tokio::test]
async fn a_stranger_cannot_send_fields_that_only_the_owner_can() {
    let engine = calculating();
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let body = asking(
        json!({ "agent": "none", "top_k": 4, "min_p": 0.1, "thinking": { "type": "adaptive" }, "output_config": { "effort": "low" } }),
    );
    let response = create(&server, &body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(warnings(&response), ["ignored=reasoning_effort", "ignored=min_p", "ignored=top_k"]);
    assert_eq!(engine.requests()[0].extra, serde_json::Map::new());
    let address =
        json!({ "type": "image", "source": { "type": "url", "url": "http://192.168.0.1/cat.png" } });
    let body = asking(json!({ "messages": [{ "role": "user", "content": [address] }] }));
    let refused = create(&server, &body).await;
    assert_eq!(refused.status(), 400);
    let error: Value = refused.json().await.unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("only the owner"), "{error}");
}

#[tokio::test]
async fn what_a_provider_sealed_goes_back_to_it_unchanged() {
    let engine = Arc::new(ScriptedEngine::new(|_| {
        let sealed = |seal| Delta::ReasoningSeal { choice: 0, seal };
        let deltas = vec![
            Delta::Reasoning { choice: 0, text: "2 and 2".into() },
            sealed(ReasoningSeal::Signature("EqQB".into())),
            sealed(ReasoningSeal::Redacted("Emw".into())),
            Delta::text("4"),
            Delta::Finish { choice: 0, reason: FinishReason::Stop },
            usage(1, 1),
        ];
        deltas.into_iter().map(Ok).collect()
    }));
    let server = serving(&engine).await;
    let thinking = json!({ "type": "adaptive" });
    let answer = message(create(&server, &asking(json!({ "thinking": thinking }))).await).await;
    let blocks = json!([
        { "type": "thinking", "thinking": "2 and 2", "signature": "EqQB" },
        { "type": "redacted_thinking", "data": "Emw" },
    ]);
    assert_eq!(answer["content"].as_array().unwrap()[..2], *blocks.as_array().unwrap());
    let messages = json!([
        { "role": "user", "content": "2+2?" },
        { "role": "assistant", "content": answer["content"] },
        { "role": "user", "content": "sure?" },
    ]);
    create(&server, &asking(json!({ "thinking": thinking, "messages": messages }))).await;
    assert_eq!(engine.requests()[1].messages[1].extra["thinking_blocks"], blocks);

    // Clients of chat completions get the same, and send it back.
    let chat = json!({ "model": "m", "messages": [{ "role": "user", "content": "2+2?" }] });
    let answer: Value = server.chat(&chat).await.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["thinking_blocks"], blocks);
    let history = json!({ "model": "m", "messages": [answer["choices"][0]["message"]] });
    server.chat(&history).await;
    assert_eq!(engine.requests()[3].messages[0].extra["thinking_blocks"], blocks);
}

#[tokio::test]
async fn thoughts_and_texts_keep_their_order_whole_and_streamed() {
    let engine = Arc::new(ScriptedEngine::new(|_| {
        let thought = |text: &str| Delta::Reasoning { choice: 0, text: text.into() };
        let deltas = vec![
            Delta::text("One."),
            thought("And"),
            thought(" then?"),
            Delta::text("Two"),
            Delta::text("."),
            Delta::ReasoningSeal { choice: 0, seal: ReasoningSeal::Redacted("Emw".into()) },
            Delta::text("Three."),
            Delta::Finish { choice: 0, reason: FinishReason::Stop },
            usage(1, 1),
        ];
        deltas.into_iter().map(Ok).collect()
    }));
    let server = serving(&engine).await;
    let text = |text: &str| json!({ "type": "text", "text": text });
    let blocks = json!([
        text("One."),
        { "type": "thinking", "thinking": "And then?", "signature": "hob." },
        text("Two."),
        { "type": "redacted_thinking", "data": "Emw" },
        text("Three."),
    ]);
    let thinking = json!({ "type": "adaptive" });
    let whole = message(create(&server, &asking(json!({ "thinking": thinking }))).await).await;
    assert_eq!(whole["content"], blocks);

    let streamed = create(&server, &asking(json!({ "thinking": thinking, "stream": true }))).await;
    let mut built: Vec<Value> = Vec::new();
    for event in events(streamed).await {
        let index = event["index"].as_u64().map(|index| usize::try_from(index).unwrap());
        match (event["type"].as_str().unwrap(), index) {
            ("content_block_start", Some(index)) => {
                assert_eq!(index, built.len());
                built.push(event["content_block"].clone());
            }
            ("content_block_delta", Some(index)) => {
                for field in ["text", "thinking", "signature"] {
                    if let Some(piece) = event["delta"][field].as_str() {
                        let so_far = built[index][field].as_str().unwrap();
                        built[index][field] = format!("{so_far}{piece}").into();
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(Value::Array(built), blocks);

    // A caller who did not ask for thoughts gets one text.
    let plain = message(create(&server, &asking(json!({}))).await).await;
    assert_eq!(plain["content"], json!([text("One.Two.Three.")]));
}

#[tokio::test]
async fn a_limit_that_the_engine_refuses_is_left_to_the_engine() {
    for stream in [false, true] {
        let fake = FakeServer::start(move |request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            match (request.method.as_str(), body.get("max_tokens")) {
                ("GET", _) => models(),
                (_, Some(_)) => Reply::json(400, r#"{"error":{"message":"'max_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 42 input tokens"}}"#),
                (_, None) if stream => Reply::sse([chunk(r#"{"content":"hi"}"#).as_str(), FINISH].concat()),
                (_, None) => Reply::json(200, r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}"#),
            }
        })
        .await;
        let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
        let response = create(&server, &asking(json!({ "max_tokens": 32_000, "stream": stream }))).await;
        assert_eq!(
            (response.status().as_u16(), warnings(&response)),
            (200, vec!["ignored=max_tokens".to_owned()])
        );
        assert!(response.text().await.unwrap().contains("hi"));
        // Chat completions keep the engine's own rule.
        let chat =
            json!({ "model": "m", "max_tokens": 32_000, "messages": [{ "role": "user", "content": "hi" }] });
        assert_eq!(server.chat(&chat).await.status(), 400);
    }
}
