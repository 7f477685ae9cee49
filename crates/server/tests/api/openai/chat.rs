//! `POST /v1/chat/completions`: the bodies of complete and streamed answers, with scripted and recorded engines.

use std::sync::Arc;

use hob_core::{AnswerWarning, Delta, FinishReason, TextDelta, ToolCallDelta, Usage};
use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::client::{RawConnection, asking, completion, events};
use crate::support::{TestServer, engine_at};

/// An engine that answers every request with these pieces.
fn giving(deltas: Vec<Delta>) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::new(move |_| deltas.iter().cloned().map(Ok).collect()))
}

fn finish(choice: u32, reason: FinishReason) -> Delta {
    Delta::Finish { choice, reason }
}

fn done(prompt_tokens: u64, completion_tokens: u64) -> Delta {
    let usage = Usage {
        prompt_tokens,
        completion_tokens,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    };
    Delta::Done { usage: Some(usage) }
}

/// A fake that replays a recorded engine: its models, and the answer to every other request.
pub async fn replaying(models: &'static str, answer: &'static str) -> FakeServer {
    FakeServer::start(move |request| match request.method.as_str() {
        "GET" => Reply::transcript(models),
        _ => Reply::transcript(answer),
    })
    .await
}

#[tokio::test]
async fn an_answer_that_had_to_wait_names_its_place_in_the_queue() {
    let queued = AnswerWarning::Queued { position: 3, seconds: 12 };
    let engine = ScriptedEngine::saying(&["Hello"]).with_warnings(&[queued]);
    let server = TestServer::start(Arc::new(engine)).await;
    for request in [asking(json!({})), asking(json!({"stream": true}))] {
        let response = server.chat(&request).await;
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!((header("x-hob-queue"), header("x-hob-warning")), (Some("position=3, seconds=12"), None));
    }
}

#[tokio::test]
async fn a_complete_answer_has_the_documented_body() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"]))).await;
    let response = server.chat(&asking(json!({}))).await;
    assert_eq!(response.status(), 200);
    assert!(response.headers()["server"].to_str().unwrap().starts_with("hob/"));
    assert!(!response.headers().contains_key("x-hob-warning"));
    insta::assert_json_snapshot!(completion(response).await, @r#"
    {
      "id": "[id]",
      "object": "chat.completion",
      "created": 0,
      "model": "m",
      "choices": [
        {
          "index": 0,
          "message": {
            "role": "assistant",
            "content": "Hello",
            "tool_calls": null
          },
          "finish_reason": "stop"
        }
      ],
      "usage": {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5
      }
    }
    "#);
}

#[tokio::test]
async fn a_stream_consists_of_role_pieces_finish_and_done() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"]))).await;
    let response = server.chat(&asking(json!({ "stream": true }))).await;
    assert_eq!(response.status(), 200);
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(response.headers()[name], value, "{name}");
    }
    insta::assert_snapshot!(events(response).await, @r#"
    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

    data: [DONE]
    "#);
}

#[tokio::test]
async fn each_event_ends_with_an_empty_line_and_the_connection_stays_open() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hi"]))).await;
    let mut raw = RawConnection::connect(&server).await;
    for _ in 0..2 {
        raw.send_chat(&asking(json!({ "stream": true }))).await;
        let text = raw.until("0\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains("transfer-encoding: chunked\r\n"), "{text}");
        assert!(text.contains("}]}\n\ndata: [DONE]\n\n\r\n0\r\n\r\n"), "{text}");
    }
}

#[tokio::test]
async fn usage_is_streamed_on_request() {
    let fake = replaying("vllm/models", "vllm/chat_stream_usage").await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let body =
        asking(json!({ "model": "smollm2", "stream": true, "stream_options": { "include_usage": true } }));
    insta::assert_snapshot!(events(server.chat(&body).await).await, @r#"
    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"content":"The"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"content":" capital"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"content":" of"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"content":" France"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"content":" is"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"content":" Paris"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"content":"."},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[],"usage":{"prompt_tokens":42,"completion_tokens":8,"total_tokens":50}}

    data: [DONE]
    "#);
}

#[tokio::test]
async fn several_answers_are_choices_of_one_body() {
    let fake = replaying("vllm/models", "vllm/n2").await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let response = server.chat(&asking(json!({ "model": "smollm2", "n": 2, "max_tokens": 4 }))).await;
    insta::assert_json_snapshot!(completion(response).await, @r#"
    {
      "id": "[id]",
      "object": "chat.completion",
      "created": 0,
      "model": "smollm2",
      "choices": [
        {
          "index": 0,
          "message": {
            "role": "assistant",
            "content": "The capital of France",
            "tool_calls": null
          },
          "finish_reason": "length"
        },
        {
          "index": 1,
          "message": {
            "role": "assistant",
            "content": "The capital of France",
            "tool_calls": null
          },
          "finish_reason": "length"
        }
      ],
      "usage": {
        "prompt_tokens": 42,
        "completion_tokens": 8,
        "total_tokens": 50
      }
    }
    "#);
}

#[tokio::test]
async fn several_answers_are_streamed_with_their_index() {
    let text = |choice, text: &str| Delta::Text(TextDelta { choice, text: text.into(), logprobs: None });
    let engine = giving(vec![
        text(0, "yes"),
        text(1, "no"),
        finish(0, FinishReason::Stop),
        finish(1, FinishReason::Length),
        done(1, 2),
    ]);
    let server = TestServer::start(engine).await;
    let response = server.chat(&asking(json!({ "stream": true, "n": 2 }))).await;
    insta::assert_snapshot!(events(response).await, @r#"
    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":1,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":1,"delta":{"content":"no"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":1,"delta":{},"finish_reason":"length"}]}

    data: [DONE]
    "#);
}

#[tokio::test]
async fn log_probabilities_are_returned_unchanged() {
    let fake = replaying("vllm/models", "vllm/logprobs").await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let body = asking(json!({ "model": "smollm2", "logprobs": true, "top_logprobs": 2, "max_tokens": 3 }));
    let answer = completion(server.chat(&body).await).await;
    insta::assert_json_snapshot!(answer["choices"][0]["logprobs"]["content"][0], @r#"
    {
      "token": "The",
      "logprob": -0.5341870188713074,
      "bytes": [
        84,
        104,
        101
      ],
      "top_logprobs": [
        {
          "token": "The",
          "logprob": -0.5341870188713074,
          "bytes": [
            84,
            104,
            101
          ]
        },
        {
          "token": "Paris",
          "logprob": -2.284187078475952,
          "bytes": [
            80,
            97,
            114,
            105,
            115
          ]
        }
      ]
    }
    "#);
    assert_eq!(answer["choices"][0]["logprobs"]["content"].as_array().unwrap().len(), 3);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn reasoning_is_separate_from_the_answer() {
    let thought = Delta::Reasoning { choice: 0, text: "Hm.".into() };
    let engine = giving(vec![thought, Delta::text("42"), finish(0, FinishReason::Stop), done(1, 2)]);
    let server = TestServer::start(engine).await;
    let answer = completion(server.chat(&asking(json!({}))).await).await;
    assert_eq!(
        answer["choices"][0]["message"],
        json!({ "role": "assistant", "content": "42", "reasoning_content": "Hm.", "tool_calls": null })
    );
    let text = events(server.chat(&asking(json!({ "stream": true }))).await).await;
    assert!(text.contains(r#""delta":{"reasoning_content":"Hm."}"#), "{text}");
}

#[tokio::test]
async fn the_finish_reason_of_the_engine_is_returned() {
    for (reason, word) in [
        (FinishReason::Stop, "stop"),
        (FinishReason::Length, "length"),
        (FinishReason::ToolCalls, "tool_calls"),
        (FinishReason::ContentFilter, "content_filter"),
    ] {
        let server = TestServer::start(giving(vec![Delta::text("x"), finish(0, reason), done(1, 1)])).await;
        let answer = completion(server.chat(&asking(json!({}))).await).await;
        assert_eq!(answer["choices"][0]["finish_reason"], word);
        let text = events(server.chat(&asking(json!({ "stream": true }))).await).await;
        assert!(text.contains(&format!(r#""delta":{{}},"finish_reason":"{word}""#)), "{text}");
    }
}

#[tokio::test]
async fn a_tool_call_after_text_keeps_both() {
    let call = ToolCallDelta {
        id: Some("c1".into()),
        name: Some("f".into()),
        arguments: "{}".into(),
        ..ToolCallDelta::default()
    };
    let engine = giving(vec![
        Delta::text("Let me see."),
        Delta::ToolCall(call),
        finish(0, FinishReason::ToolCalls),
        done(1, 1),
    ]);
    let server = TestServer::start(engine).await;
    let answer = completion(server.chat(&asking(json!({}))).await).await;
    assert_eq!(
        answer["choices"][0]["message"],
        json!({
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } }],
        })
    );
}

#[tokio::test]
async fn request_fields_reach_the_engine() {
    let fake = replaying("vllm/models", "vllm/chat").await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let sent = json!({
        "model": "smollm2",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "assistant", "content": null,
              "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
            { "role": "tool", "content": "7", "tool_call_id": "c1" },
        ],
        "temperature": 0.1,
        "max_tokens": 5,
        "stream": false,
        "top_p": 0.5,
        "stop": ["END"],
        "seed": 3,
        "tools": [{ "type": "function", "function": { "name": "f", "strict": true } }],
        "tool_choice": { "type": "function", "function": { "name": "f" } },
        "parallel_tool_calls": false,
        "top_k": 40,
    });
    assert_eq!(server.chat(&sent).await.status(), 200);
    let received: Value = serde_json::from_slice(&fake.requests().last().unwrap().body).unwrap();
    assert_eq!(received, sent);
}

#[tokio::test]
async fn default_is_the_first_model_and_the_answer_names_it() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["big", "small"]);
    let server = TestServer::start(Arc::new(engine)).await;
    let answer = completion(server.chat(&asking(json!({ "model": "default" }))).await).await;
    assert_eq!(answer["model"], "big");
    let text = events(server.chat(&asking(json!({ "model": "default", "stream": true }))).await).await;
    assert!(text.contains(r#""model":"big""#), "{text}");
}
