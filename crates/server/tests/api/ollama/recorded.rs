//! A real Ollama's answers, through Hob and back: what a client gets from Hob has the fields of what Ollama sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use hob_core::Engine;
use hob_engines::{Endpoint, EndpointOptions, Ollama};
use hob_testkit::{FakeServer, Reply, Transcript};
use serde_json::{Value, json};

use super::{lines, object, post, timeless};
use crate::support::TestServer;

/// A fake that answers every question as the real Ollama did.
async fn replaying(answer: &'static str) -> (TestServer, FakeServer) {
    let fake = FakeServer::start(move |request| match request.path.as_str() {
        "/api/tags" => Reply::transcript("ollama/tags"),
        "/api/ps" => Reply::transcript("ollama/ps_loaded"),
        _ => Reply::transcript(answer),
    })
    .await;
    let options = EndpointOptions::new("ollama", fake.url());
    let engine: Arc<dyn Engine> = Arc::new(Ollama::new(Endpoint::new(options).unwrap()));
    (TestServer::start(engine).await, fake)
}

/// The recorded request, and the recorded answer in lines.
fn recorded(name: &str) -> (Value, Vec<Value>) {
    let transcript = Transcript::load(&format!("ollama/{name}"));
    let request = serde_json::from_str(&transcript.request_body).unwrap();
    let answer = transcript.body.lines().filter(|line| !line.is_empty());
    (request, answer.map(|line| timeless(serde_json::from_str(line).unwrap())).collect())
}

/// Newer versions of Ollama add an id and an index to a call.
fn without_ids(mut answer: Value) -> Value {
    for call in answer.pointer_mut("/message/tool_calls").and_then(Value::as_array_mut).into_iter().flatten()
    {
        assert!(call.as_object_mut().unwrap().remove("id").is_some());
        assert_eq!(call["function"].as_object_mut().unwrap().remove("index"), Some(json!(0)));
    }
    answer
}

#[tokio::test]
async fn chats_come_back_as_ollama_sent_them() {
    for name in
        ["chat", "chat_stream", "chat_format_json", "chat_format_schema", "chat_tools", "chat_tools_stream"]
    {
        let (server, _fake) = replaying(match name {
            "chat" => "ollama/chat",
            "chat_stream" => "ollama/chat_stream",
            "chat_format_json" => "ollama/chat_format_json",
            "chat_format_schema" => "ollama/chat_format_schema",
            "chat_tools" => "ollama/chat_tools",
            _ => "ollama/chat_tools_stream",
        })
        .await;
        let (request, expected) = recorded(name);
        let response = post(&server, "/api/chat", &request).await;
        let answer = match request["stream"] == false {
            true => vec![object(response).await.1],
            false => lines(response).await,
        };
        let answer: Vec<Value> = answer.into_iter().map(|line| without_ids(timeless(line))).collect();
        assert_eq!(answer, expected, "{name}");
    }
}

#[tokio::test]
async fn how_long_the_model_took_to_load_is_told() {
    let (server, _fake) = replaying("ollama/chat_stream").await;
    let (request, _) = recorded("chat_stream");
    let answer = lines(post(&server, "/api/chat", &request).await).await;
    assert_eq!(answer.last().unwrap()["load_duration"], 29_616_591);
    let (server, _fake) = replaying("ollama/embed").await;
    let (request, _) = recorded("embed");
    let (_, answer) = object(post(&server, "/api/embed", &request).await).await;
    assert_eq!(answer["load_duration"], 22_129_404);
}

#[tokio::test]
async fn a_request_reaches_ollama_as_its_client_sent_it() {
    let (server, fake) = replaying("ollama/chat_tools").await;
    let (request, _) = recorded("chat_tools");
    post(&server, "/api/chat", &request).await;
    let sent: Value = serde_json::from_str(&fake.requests().last().unwrap().text()).unwrap();
    let mut expected = request;
    expected["options"]["temperature"] = json!(0.0);
    // A conversation that is too long is refused.
    expected["truncate"] = json!(false);
    expected["shift"] = json!(false);
    for (index, name) in [(2, "get_weather"), (6, "get_weather")] {
        expected["messages"][index]["tool_name"] = json!(name);
    }
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn loading_lists_and_errors_have_ollamas_fields() {
    let (server, _fake) = replaying("ollama/chat_load").await;
    for (name, path) in [("chat_load", "/api/chat"), ("chat_unload", "/api/chat")] {
        let (request, expected) = recorded(name);
        let (_, answer) = object(post(&server, path, &request).await).await;
        assert_eq!(vec![timeless(answer)], expected, "{name}");
    }
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    for (name, path) in [("tags", "/api/tags"), ("ps_loaded", "/api/ps")] {
        let expected: Value =
            serde_json::from_str(&Transcript::load(&format!("ollama/{name}")).body).unwrap();
        let (_, answer) = object(server.client.get(server.url(path)).send().await.unwrap()).await;
        let (one, other) = (&answer["models"][0], &expected["models"][0]);
        assert_eq!((keys(one), keys(&one["details"])), (keys(other), keys(&other["details"])), "{name}");
        assert_eq!((&one["name"], &one["size"]), (&other["name"], &other["size"]), "{name}");
    }
    let missing = Transcript::load("ollama/err_model_not_found");
    let request: Value = serde_json::from_str(&missing.request_body).unwrap();
    let (status, answer) = object(post(&server, "/api/chat", &request).await).await;
    let expected: Value = serde_json::from_str(&missing.body).unwrap();
    assert_eq!((status, keys(&answer)), (missing.status, keys(&expected)));
}

#[tokio::test]
async fn a_prompt_comes_back_as_ollama_answers_it() {
    for (name, chat) in [("generate", "ollama/chat"), ("generate_stream", "ollama/chat_stream")] {
        let (server, _fake) = replaying(chat).await;
        let (request, mut expected) = recorded(name);
        let response = post(&server, "/api/generate", &request).await;
        let answer = match request["stream"] == false {
            true => vec![object(response).await.1],
            false => lines(response).await,
        };
        // The tokens of the conversation are Ollama's own.
        expected.last_mut().unwrap().as_object_mut().unwrap().remove("context");
        let keys = |line: &Value| line.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(&answer[0]), keys(&expected[0]), "{name}");
        assert_eq!(keys(answer.last().unwrap()), keys(expected.last().unwrap()), "{name}");
    }
}
