//! Tool calls of real engines, from recordings: each is returned in OpenAI's format.

use std::sync::Arc;

use hob_core::Engine;
use hob_engines::{Endpoint, EndpointOptions, Ollama, Style};
use hob_testkit::FakeServer;
use serde_json::{Value, json};

use super::chat::replaying;
use crate::client::{asking, completion, events};
use crate::support::{TestServer, engine_at};

fn ollama_at(fake: &FakeServer) -> Arc<dyn Engine> {
    let options = EndpointOptions::new(Ollama::KEY, fake.url());
    Arc::new(Ollama::new(Endpoint::new(options).unwrap()))
}

/// A question with a tool, to the model `model`.
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
async fn a_vllm_tool_call_is_returned_complete() {
    let fake = replaying("vllm/models", "vllm/fs_required").await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
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
async fn a_vllm_tool_call_is_streamed_in_fragments() {
    let fake = replaying("vllm/models", "vllm/fs_required_stream").await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
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
async fn a_llama_server_tool_call_is_returned_complete() {
    let fake = replaying("llama-server/models", "llama-server/tooljson_tool_result").await;
    let server = TestServer::start(engine_at(&fake, Style::LLAMACPP)).await;
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

/// Ollama's calls have no ids. Hob's ids are random, so they are checked and removed.
fn take_call_id(call: &mut Value) -> String {
    let id = call["id"].take().as_str().unwrap().to_owned();
    assert!(id.strip_prefix("call_").is_some_and(|suffix| suffix.len() == 24), "{id}");
    id
}

#[tokio::test]
async fn an_ollama_tool_call_gets_an_id_and_text_arguments() {
    let fake = replaying("ollama/tags", "ollama/chat_tools").await;
    let server = TestServer::start(ollama_at(&fake)).await;
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
async fn an_ollama_tool_call_is_streamed() {
    let fake = replaying("ollama/tags", "ollama/chat_tools_stream").await;
    let server = TestServer::start(ollama_at(&fake)).await;
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
