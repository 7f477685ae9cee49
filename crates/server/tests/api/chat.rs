//! `POST /v1/chat/completions`: the bodies, whole and streamed, over scripted and over recorded engines.

use std::sync::Arc;

use hob_core::{Delta, Engine, FinishReason, TextDelta, ToolCallDelta, Usage};
use hob_engines::{Endpoint, EndpointOptions, Ollama, Style};
use hob_system::SystemParts;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::agents::{at_home, parts};
use crate::client::{Raw, asking, completion, events};
use crate::support::{Running, engine_at};

/// An engine that gives these pieces for every request.
fn giving(deltas: Vec<Delta>) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::new(move |_| deltas.iter().cloned().map(Ok).collect()))
}

fn finish(choice: u32, reason: FinishReason) -> Delta {
    Delta::Finish { choice, reason }
}

fn done(prompt_tokens: u64, completion_tokens: u64) -> Delta {
    let usage = Usage { prompt_tokens, completion_tokens, cached_tokens: None };
    Delta::Done { usage: Some(usage) }
}

/// A fake that gives what the real engine gave: its models, and the answer to every other request.
async fn replaying(models: &'static str, answer: &'static str) -> FakeServer {
    FakeServer::start(move |request| match request.method.as_str() {
        "GET" => Reply::transcript(models),
        _ => Reply::transcript(answer),
    })
    .await
}

fn ollama_at(fake: &FakeServer) -> Arc<dyn Engine> {
    let options = EndpointOptions::new(Ollama::KEY, fake.url());
    Arc::new(Ollama::new(Endpoint::new(options).unwrap()))
}

/// A question that brings a tool, to the model `model`.
fn asking_with_tool(model: &str, stream: bool) -> Value {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let function = json!({ "name": "get_weather", "parameters": parameters });
    asking(json!({
        "model": model,
        "stream": stream,
        "tools": [{ "type": "function", "function": function }],
        "tool_choice": "required",
    }))
}

#[tokio::test]
async fn a_whole_answer_has_the_documented_body() {
    let server = Running::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"]))).await;
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
async fn a_stream_is_role_pieces_finish_and_done() {
    let server = Running::start(Arc::new(ScriptedEngine::saying(&["Hel", "lo"]))).await;
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
async fn a_streams_events_end_with_an_empty_line_each_and_the_connection_lives_on() {
    let server = Running::start(Arc::new(ScriptedEngine::saying(&["Hi"]))).await;
    let mut raw = Raw::connect(&server).await;
    for _ in 0..2 {
        raw.send_chat(&asking(json!({ "stream": true }))).await;
        let text = raw.until("0\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains("transfer-encoding: chunked\r\n"), "{text}");
        assert!(text.contains("}]}\n\ndata: [DONE]\n\n\r\n0\r\n\r\n"), "{text}");
    }
}

#[tokio::test]
async fn usage_is_streamed_to_those_who_ask_for_it() {
    let fake = replaying("vllm/models", "vllm/chat_stream_usage").await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
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
async fn vllms_tool_call_comes_back_whole() {
    let fake = replaying("vllm/models", "vllm/fs_required").await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
    let response = server.chat(&asking_with_tool("smollm2", false)).await;
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
            "content": "",
            "tool_calls": [
              {
                "id": "chatcmpl-tool-aa77d044b32ff467",
                "type": "function",
                "function": {
                  "name": "get_weather",
                  "arguments": "\"Paris\""
                }
              }
            ]
          },
          "finish_reason": "tool_calls"
        }
      ],
      "usage": {
        "prompt_tokens": 131,
        "completion_tokens": 46,
        "total_tokens": 177
      }
    }
    "#);
}

#[tokio::test]
async fn vllms_tool_call_comes_back_in_fragments() {
    let fake = replaying("vllm/models", "vllm/fs_required_stream").await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
    let response = server.chat(&asking_with_tool("smollm2", true)).await;
    insta::assert_snapshot!(events(response).await, @r#"
    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"chatcmpl-tool-8428bcead5625ec4","type":"function","function":{"name":"get_weather","arguments":""}}]},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\""}}]},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"Paris"}}]},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\""}}]},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

    data: [DONE]
    "#);
}

#[tokio::test]
async fn llama_servers_tool_call_comes_back_whole() {
    let fake = replaying("llama-server/models", "llama-server/tooljson_tool_result").await;
    let server = Running::start(engine_at(&fake, Style::LLAMACPP)).await;
    let response = server.chat(&asking_with_tool("smollm2", false)).await;
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
            "content": "",
            "tool_calls": [
              {
                "id": "zpDk1SjQX4exLf9Z9GWSXtTwset8c2AJ",
                "type": "function",
                "function": {
                  "name": "get_weather",
                  "arguments": "{\"city\": \"Paris\"}"
                }
              }
            ]
          },
          "finish_reason": "tool_calls"
        }
      ],
      "usage": {
        "prompt_tokens": 192,
        "completion_tokens": 19,
        "total_tokens": 211,
        "prompt_tokens_details": {
          "cached_tokens": 153
        }
      }
    }
    "#);
}

/// Ollama gives its calls no ids; ours are random, so they are checked and put aside.
fn take_call_id(call: &mut Value) -> String {
    let id = call["id"].take().as_str().unwrap().to_owned();
    assert!(id.strip_prefix("call_").is_some_and(|suffix| suffix.len() == 24), "{id}");
    id
}

#[tokio::test]
async fn ollamas_tool_call_gets_an_id_and_its_arguments_as_text() {
    let fake = replaying("ollama/tags", "ollama/chat_tools").await;
    let server = Running::start(ollama_at(&fake)).await;
    let body = asking(json!({ "tools": asking_with_tool("", false)["tools"], "model": "smollm2-tools" }));
    let mut answer = completion(server.chat(&body).await).await;
    take_call_id(&mut answer["choices"][0]["message"]["tool_calls"][0]);
    insta::assert_json_snapshot!(answer["choices"], @r#"
    [
      {
        "index": 0,
        "message": {
          "role": "assistant",
          "content": "",
          "tool_calls": [
            {
              "id": null,
              "type": "function",
              "function": {
                "name": "get_weather",
                "arguments": "{\"city\":\"Paris\"}"
              }
            }
          ]
        },
        "finish_reason": "tool_calls"
      }
    ]
    "#);
}

#[tokio::test]
async fn ollamas_tool_call_is_streamed_too() {
    let fake = replaying("ollama/tags", "ollama/chat_tools_stream").await;
    let server = Running::start(ollama_at(&fake)).await;
    let body = asking(
        json!({ "tools": asking_with_tool("", false)["tools"], "model": "smollm2-tools", "stream": true }),
    );
    let text = events(server.chat(&body).await).await;
    let mut call: Value = text
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .find_map(|chunk: Value| Some(chunk.pointer("/choices/0/delta/tool_calls/0")?.clone()))
        .unwrap();
    let id = take_call_id(&mut call);
    insta::assert_snapshot!(text.replace(&id, "[call]"), @r#"
    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2-tools","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2-tools","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"[call]","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}]},"finish_reason":null}]}

    data: {"id":"[id]","object":"chat.completion.chunk","created":0,"model":"smollm2-tools","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

    data: [DONE]
    "#);
}

#[tokio::test]
async fn several_answers_come_side_by_side() {
    let fake = replaying("vllm/models", "vllm/n2").await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
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
async fn several_answers_are_streamed_under_their_index() {
    let text = |choice, text: &str| Delta::Text(TextDelta { choice, text: text.into(), logprobs: None });
    let engine = giving(vec![
        text(0, "yes"),
        text(1, "no"),
        finish(0, FinishReason::Stop),
        finish(1, FinishReason::Length),
        done(1, 2),
    ]);
    let server = Running::start(engine).await;
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
async fn probabilities_come_as_the_engine_gives_them() {
    let fake = replaying("vllm/models", "vllm/logprobs").await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
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
async fn thoughts_come_apart_from_the_answer() {
    let thought = Delta::Reasoning { choice: 0, text: "Hm.".into() };
    let engine = giving(vec![thought, Delta::text("42"), finish(0, FinishReason::Stop), done(1, 2)]);
    let server = Running::start(engine).await;
    let answer = completion(server.chat(&asking(json!({}))).await).await;
    assert_eq!(
        answer["choices"][0]["message"],
        json!({ "role": "assistant", "content": "42", "reasoning_content": "Hm.", "tool_calls": null })
    );
    let text = events(server.chat(&asking(json!({ "stream": true }))).await).await;
    assert!(text.contains(r#""delta":{"reasoning_content":"Hm."}"#), "{text}");
}

#[tokio::test]
async fn every_finish_reason_is_the_engines_own() {
    for (reason, word) in [
        (FinishReason::Stop, "stop"),
        (FinishReason::Length, "length"),
        (FinishReason::ToolCalls, "tool_calls"),
        (FinishReason::ContentFilter, "content_filter"),
    ] {
        let server = Running::start(giving(vec![Delta::text("x"), finish(0, reason), done(1, 1)])).await;
        let answer = completion(server.chat(&asking(json!({}))).await).await;
        assert_eq!(answer["choices"][0]["finish_reason"], word);
        let text = events(server.chat(&asking(json!({ "stream": true }))).await).await;
        assert!(text.contains(&format!(r#""delta":{{}},"finish_reason":"{word}""#)), "{text}");
    }
}

#[tokio::test]
async fn a_call_with_text_before_it_keeps_both() {
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
    let server = Running::start(engine).await;
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
async fn what_the_caller_asks_for_reaches_the_engine() {
    let fake = replaying("vllm/models", "vllm/chat").await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
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
async fn default_is_answered_by_the_first_model_and_says_so() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["big", "small"]);
    let server = Running::start(Arc::new(engine)).await;
    let answer = completion(server.chat(&asking(json!({ "model": "default" }))).await).await;
    assert_eq!(answer["model"], "big");
    let text = events(server.chat(&asking(json!({ "model": "default", "stream": true }))).await).await;
    assert!(text.contains(r#""model":"big""#), "{text}");
}

#[tokio::test]
async fn models_are_listed_and_shown_by_id_slashes_included() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["m", "org/name:7b"]);
    let server = Running::start(Arc::new(engine)).await;
    let get = async |path: &str| -> Value {
        server.client.get(server.url(path)).send().await.unwrap().json().await.unwrap()
    };
    let model = |id: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": "scripted" });
    let mut default = model("m");
    default["default"] = json!(true);
    assert_eq!(get("/v1/models").await, json!({ "object": "list", "data": [default, model("org/name:7b")] }));
    assert_eq!(get("/v1/models/org/name:7b").await, model("org/name:7b"));
    assert_eq!(get("/v1/models/org%2Fname%3A7b").await, model("org/name:7b"));
}

#[tokio::test]
async fn the_list_says_which_model_is_the_default_and_which_only_make_vectors() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["a", "b"]).with_embedding_models(&["minilm"]);
    let parts = SystemParts { default_model: Some("b".into()), ..parts(Arc::new(engine)) };
    let server = Running::start_system(parts, at_home()).await;
    let get = async |path: &str| -> Value {
        server.client.get(server.url(path)).send().await.unwrap().json().await.unwrap()
    };
    let listed = get("/v1/models").await;
    let marks: Vec<_> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| (model["id"].as_str().unwrap(), model["kind"].as_str(), model["default"].as_bool()))
        .collect();
    assert_eq!(marks, [("minilm", Some("embedding"), None), ("a", None, None), ("b", None, Some(true))]);
    // Both names are good wherever a model's is.
    let shown = get("/v1/models/default").await;
    assert_eq!((&shown["id"], &shown["default"]), (&json!("b"), &json!(true)));
    let auto = get("/v1/models/auto").await;
    assert_eq!((&auto["id"], &auto["owned_by"]), (&json!("auto"), &json!("hob")));
}
