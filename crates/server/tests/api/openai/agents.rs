//! Agents over HTTP: which agent answers, the format of streams, and the rights of strangers.

use std::collections::BTreeMap;
use std::sync::Arc;

use hob_app::AskService;
use hob_config::ServerConfig;
use hob_core::{Delta, Engine, FinishReason, Role, ToolCallDelta};
use hob_engines::{ModelAliases, Style};
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::client::{asking, chunk, completion, events};
use crate::fixtures::{
    ARGUMENTS, calculating, calling, loopback_config, offered, parts, reached_from_network, usage,
};
use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models};

async fn serving(engine: &Arc<ScriptedEngine>) -> TestServer {
    TestServer::start_system(parts(Arc::clone(engine) as Arc<dyn Engine>), loopback_config()).await
}

fn content(completion: &Value) -> &Value {
    &completion["choices"][0]["message"]["content"]
}

#[tokio::test]
async fn a_complete_answer_comes_from_the_configured_agent_with_the_usage_of_all_turns() {
    let engine = calculating();
    let server = serving(&engine).await;
    let response = server.chat(&asking(json!({ "temperature": 0.2 }))).await;
    assert_eq!(response.status(), 200);
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
            "content": "It is 391.",
            "tool_calls": null
          },
          "finish_reason": "stop"
        }
      ],
      "usage": {
        "prompt_tokens": 30,
        "completion_tokens": 8,
        "total_tokens": 38
      }
    }
    "#);
    let requests = engine.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(offered(&requests[0]), ["calculator", "file_read"], "from this machine everything is allowed");
    assert_eq!(requests[0].temperature, requests[1].temperature);
    assert!(requests[1].temperature.is_some(), "the caller's own");
}

#[tokio::test]
async fn a_stream_goes_to_the_engine_unless_an_agent_is_named() {
    let engine = calculating();
    let server = serving(&engine).await;
    let text = events(server.chat(&asking(json!({ "stream": true }))).await).await;
    assert!(!text.contains(": hob "), "{text}");
    let requests = engine.requests();
    assert_eq!(requests.iter().map(offered).collect::<Vec<_>>(), [Vec::<&str>::new()]);
}

#[tokio::test]
async fn the_model_of_the_agent_lets_the_configured_agent_answer_streams_too() {
    let engine = calculating();
    let server = serving(&engine).await;
    let response = server.chat(&asking(json!({ "model": "hob/agent", "stream": true }))).await;
    let text = response.text().await.unwrap();
    assert!(text.contains(": hob ") && text.contains("\"model\":\"m\""), "{text}");
    assert_eq!(offered(&engine.requests()[0]), ["calculator", "file_read"]);
    let whole = completion(server.chat(&asking(json!({ "model": "hob/agent" }))).await).await;
    assert_eq!((content(&whole), &whole["model"]), (&json!("It is 391."), &json!("m")));

    let shown: Value =
        server.client.get(server.url("/v1/models/hob/agent")).send().await.unwrap().json().await.unwrap();
    assert_eq!(shown, json!({ "id": "hob/agent", "object": "model", "created": 0, "owned_by": "hob" }));
}

#[tokio::test]
async fn an_alias_can_mean_the_model_of_the_agent() {
    let engine = calculating();
    let aliases = BTreeMap::from([("claude-*".to_owned(), "hob/agent".to_owned())]);
    let system = AskService::new(parts(Arc::clone(&engine) as Arc<dyn Engine>));
    let system = system.with_aliases(ModelAliases::new(&aliases));
    let server = TestServer::start_parts(Arc::new(system), loopback_config()).await;
    for stream in [false, true] {
        let response = server.chat(&asking(json!({ "model": "claude-opus-5-5", "stream": stream }))).await;
        assert_eq!(response.status(), 200);
        let reason = response.headers()["x-hob-model-reason"].to_str().unwrap();
        assert!(reason.starts_with("[models.aliases] maps claude-opus-5-5 to hob/agent"), "{reason}");
        let text = response.text().await.unwrap();
        assert!(text.contains("391"), "{text}");
        assert_eq!(offered(&engine.requests().pop().unwrap()), ["calculator", "file_read"]);
    }
    for (path, name) in [("claude-opus-5-5", "hob/agent"), ("hob/agent", "hob/agent")] {
        for version in [None, Some("2023-06-01")] {
            let mut request = server.client.get(server.url(&format!("/v1/models/{path}")));
            if let Some(version) = version {
                request = request.header("anthropic-version", version);
            }
            let shown: Value = request.send().await.unwrap().json().await.unwrap();
            assert_eq!(shown["id"], name, "{path} {version:?}");
        }
    }
}

#[tokio::test]
async fn without_a_configured_agent_its_model_is_not_there() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    for stream in [false, true] {
        let response = server.chat(&asking(json!({ "model": "hob/agent", "stream": stream }))).await;
        assert_eq!(response.status(), 404);
        let body: Value = response.json().await.unwrap();
        assert_eq!(
            (&body["error"]["code"], &body["error"]["param"]),
            (&json!("model_not_found"), &json!("model"))
        );
    }
    let shown = server.client.get(server.url("/v1/models/hob/agent")).send().await.unwrap();
    assert_eq!(shown.status(), 404);
}

#[tokio::test]
async fn a_named_agent_streams_valid_chunks_and_its_steps_as_comments() {
    let engine = calculating();
    let server = serving(&engine).await;
    let body = asking(json!({
        "agent": "orchestrator", "stream": true, "stream_options": { "include_usage": true },
    }));
    let response = server.chat(&body).await;
    assert_eq!(response.status(), 200);
    let text = response.text().await.unwrap();

    let mut comments = Vec::new();
    let mut chunks = Vec::new();
    for event in text.split_terminator("\n\n") {
        match (event.strip_prefix(": hob "), event.strip_prefix("data: ")) {
            (Some(comment), None) => comments.push(comment.split_once(' ').unwrap()),
            (None, Some(data)) => chunks.push(data),
            _ => panic!("neither a comment nor data: {event:?}"),
        }
    }
    let steps: Vec<(&str, Value)> =
        comments.into_iter().map(|(name, data)| (name, serde_json::from_str(data).unwrap())).collect();
    assert_eq!(steps[0], ("TOOL_CALL_START", json!({ "tool": "calculator", "arguments": ARGUMENTS })));
    assert_eq!((steps[1].0, &steps[1].1["success"], steps.len()), ("TOOL_CALL_END", &json!(true), 2));
    assert!(text.find("TOOL_CALL_END") < text.find("\"content\""), "{text}");

    assert_eq!(chunks.pop(), Some("[DONE]"));
    let chunks: Vec<Value> = chunks.into_iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect();
    let shown: Vec<Value> = chunks
        .iter()
        .map(|chunk| {
            assert_eq!((&chunk["object"], &chunk["id"]), (&json!("chat.completion.chunk"), &chunks[0]["id"]));
            let choice = &chunk["choices"][0];
            json!([choice["delta"], choice["finish_reason"], chunk["usage"]["total_tokens"]])
        })
        .collect();
    let expected = [
        json!([{ "role": "assistant" }, null, null]),
        json!([{ "content": "It is " }, null, null]),
        json!([{ "content": "391." }, null, null]),
        json!([{}, "stop", null]),
        json!([null, null, 38]),
    ];
    assert_eq!(shown, expected);
    assert_eq!(engine.requests().len(), 2, "one generation for each turn");
}

#[tokio::test]
async fn a_late_warning_is_a_comment_in_the_stream() {
    // Repeats the same call.
    let engine = Arc::new(ScriptedEngine::new(|_| {
        let call = ToolCallDelta {
            choice: 0,
            index: 0,
            id: Some("c1".into()),
            name: Some("calculator".into()),
            arguments: ARGUMENTS.into(),
        };
        let finish = Delta::Finish { choice: 0, reason: FinishReason::ToolCalls };
        vec![Ok(Delta::text("Again.")), Ok(Delta::ToolCall(call)), Ok(finish), Ok(usage(10, 3))]
    }));
    let server = serving(&engine).await;
    let body = asking(json!({ "agent": "orchestrator", "stream": true }));
    let text = events(server.chat(&body).await).await;
    let warned =
        text.find(": hob WARNING {\"warning\":\"loop-stopped\"}\n\n").unwrap_or_else(|| panic!("{text}"));
    assert!(
        warned < text.find("\"finish_reason\":\"length\"").unwrap() && text.ends_with("data: [DONE]\n\n"),
        "{text}"
    );
}

#[tokio::test]
async fn a_request_can_disable_the_agent_or_choose_another() {
    for (wish, tools) in [("none", 0), ("simple", 0), ("orchestrator", 2)] {
        let engine = calculating();
        let server = serving(&engine).await;
        let answer = completion(server.chat(&asking(json!({ "agent": wish }))).await).await;
        assert_eq!(content(&answer), "It is 391.");
        assert_eq!(engine.requests()[0].tools.len(), tools, "{wish}");
    }
}

#[tokio::test]
async fn an_unknown_agent_is_an_error_of_its_field() {
    let engine = calculating();
    let server = serving(&engine).await;
    for stream in [false, true] {
        let response = server.chat(&asking(json!({ "agent": "butler", "stream": stream }))).await;
        assert_eq!(response.status(), 400);
        let error = response.json::<Value>().await.unwrap()["error"].take();
        assert_eq!(error["param"], "agent");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("'butler'") && message.contains("orchestrator"), "{message}");
    }
    assert!(engine.requests().is_empty());
}

#[tokio::test]
async fn calls_of_the_callers_own_tools_are_returned() {
    let engine = calling("get_weather", "{}");
    let server = serving(&engine).await;
    let tools = json!([{ "type": "function", "function": { "name": "get_weather" } }]);
    for wish in [Value::Null, json!("orchestrator")] {
        let body = asking(json!({ "tools": tools, "agent": wish }));
        let answer = completion(server.chat(&body).await).await;
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        assert_eq!(*call, json!({ "name": "get_weather", "arguments": "{}" }));
    }
    assert_eq!(engine.requests().iter().map(offered).collect::<Vec<_>>(), [["get_weather"], ["get_weather"]]);
}

#[tokio::test]
async fn a_stranger_gets_only_pure_tools() {
    // The model calls a tool that it was not offered.
    let engine = calling("file_read", r#"{"path":"/etc/hostname"}"#);
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    for stream in [false, true] {
        let body = asking(json!({ "agent": "orchestrator", "stream": stream }));
        let text = server.chat(&body).await.error_for_status().unwrap().text().await.unwrap();
        assert!(text.contains("391."), "{text}");
    }
    let requests = engine.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| offered(request) == ["calculator"]), "{requests:?}");
    let result = requests[1].messages.iter().find(|message| message.role == Role::Tool).unwrap();
    assert!(
        format!("{result:?}").contains("the tool 'file_read' is not available to this caller"),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_caller_with_the_key_is_the_owner() {
    let engine = calculating();
    let api_key = Some("s3cret".to_owned().into());
    let config = ServerConfig { api_key, ..ServerConfig::default() };
    let server = reached_from_network(&engine, config).await;
    let request = server.client.post(server.url("/v1/chat/completions")).bearer_auth("s3cret");
    assert_eq!(request.json(&asking(json!({}))).send().await.unwrap().status(), 200);
    assert_eq!(offered(&engine.requests()[0]), ["calculator", "file_read"]);
}

#[tokio::test]
async fn a_disconnect_ends_the_run_of_an_agent() {
    let function = json!({ "name": "calculator", "arguments": ARGUMENTS });
    let calls = json!([{ "index": 0, "id": "c1", "type": "function", "function": function }]);
    let call = json!({ "tool_calls": calls }).to_string();
    let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "tool_calls" });
    let whole = json!({ "choices": [choice] }).to_string();
    for stream in [false, true] {
        let second_turn = Arc::new(Notify::new());
        let (tell, call, whole) = (Arc::clone(&second_turn), call.clone(), whole.clone());
        let fake = FakeServer::start(move |request| {
            if request.method == "GET" {
                return models();
            }
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            if body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool") {
                tell.notify_one();
                return Reply::silence();
            }
            if stream {
                let finish = FINISH.replace("\"stop\"", "\"tool_calls\"");
                Reply::sse(chunk(&call) + &finish)
            } else {
                Reply::json(200, whole.clone())
            }
        })
        .await;
        let server = TestServer::start_system(parts(engine_at(&fake, Style::VLLM)), loopback_config()).await;
        let body = asking(json!({ "agent": "orchestrator", "stream": stream }));
        let reading = async { server.chat(&body).await.text().await };
        tokio::select! {
            answered = reading => panic!("answered {answered:?}"),
            () = second_turn.notified() => {}
        }
        tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
    }
}

#[tokio::test]
async fn a_request_selects_among_the_tools_of_its_agent() {
    let engine = calculating();
    let server = serving(&engine).await;
    let listed = server.client.get(server.url("/v1/agents")).send().await.unwrap();
    let listed: Value = listed.json().await.unwrap();
    let names = |list: &Value| -> Vec<String> {
        let entries = list.as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&listed["data"]), ["simple", "orchestrator", "react", "codeact"]);
    assert_eq!(names(&listed["tools"]), ["calculator", "file_read"]);

    let selecting = |tools: Value| asking(json!({ "agent": "orchestrator", "agent_tools": tools }));
    assert_eq!(server.chat(&selecting(json!(["calculator"]))).await.status(), 200);
    assert_eq!(offered(&engine.requests()[0]), ["calculator"]);
    let refused = server.chat(&selecting(json!(["teleport"]))).await;
    assert_eq!(refused.status(), 400);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(refused["error"]["param"], "agent_tools", "{refused}");
}

#[tokio::test]
async fn the_fields_of_agents_are_named_where_the_engine_answers() {
    let engine = calculating();
    let server = serving(&engine).await;
    let tools = json!([{ "type": "function", "function": { "name": "get_weather" } }]);
    for (fields, is_engines) in [
        (json!({ "stream": true }), true),
        (json!({ "agent": "none" }), true),
        (json!({ "agent": "orchestrator", "tools": tools }), true),
        (json!({}), false),
        (json!({ "agent": "orchestrator", "stream": true }), false),
        (json!({ "model": "hob/agent", "stream": true }), false),
    ] {
        let mut body = asking(fields);
        assert_eq!(ignored_by(&server, &body).await, [] as [&str; 0], "{body}");
        body["agent_tools"] = json!(["calculator"]);
        body["steps"] = json!(true);
        let expected: &[&str] = if is_engines { &["ignored=agent_tools", "ignored=steps"] } else { &[] };
        assert_eq!(ignored_by(&server, &body).await, expected, "{body}");
    }
}

/// The fields that had no effect, as the head of the answer names them.
async fn ignored_by(server: &TestServer, body: &Value) -> Vec<String> {
    let response = server.chat(body).await;
    assert_eq!(response.status(), 200, "{body}");
    let warnings = response.headers().get_all("x-hob-warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap().to_owned());
    warnings.filter(|warning| warning.starts_with("ignored=")).collect()
}

#[tokio::test]
async fn a_stranger_sees_only_the_tools_that_compute() {
    let engine = calculating();
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let listed = server.client.get(server.url("/v1/agents")).send().await.unwrap();
    let listed: Value = listed.json().await.unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["tools"][0]["name"], "calculator");
}
