//! `GET /api/tags`, `POST /api/show`, `GET /api/ps`, `GET /api/version`.

use hob_testkit::ScriptedEngine;
use reqwest::Method;
use serde_json::{Value, json};

use super::{object, post, send, server};
use crate::support::TestServer;

async fn get(server: &TestServer, path: &str) -> (u16, Value) {
    object(server.client.get(server.url(path)).send().await.unwrap()).await
}

fn details(family: &str) -> Value {
    json!({
        "parent_model": "", "format": "", "family": family, "families": [family], "parameter_size": "",
        "quantization_level": "",
    })
}

/// The entry without its digest, which has the length that clients cut.
fn without_digest(mut entry: Value) -> Value {
    let digest = entry.as_object_mut().unwrap().remove("digest").unwrap();
    assert_eq!(digest.as_str().unwrap().len(), 64);
    entry
}

#[tokio::test]
async fn models_are_listed_under_hobs_names_with_a_tag() {
    let (server, _) = server(ScriptedEngine::saying(&["hi"]).with_models(&["a", "b"])).await;
    let (status, body) = get(&server, "/api/tags").await;
    assert_eq!(status, 200);
    let entries: Vec<Value> =
        body["models"].as_array().unwrap().iter().cloned().map(without_digest).collect();
    let entry = |name: &str, family: &str| {
        json!({
            "name": name, "model": name, "modified_at": "0001-01-01T00:00:00Z", "size": 0, "details": details(family),
        })
    };
    // The names that stand for a choice come last.
    let expected = [
        entry("a:latest", "scripted"),
        entry("b:latest", "scripted"),
        entry("default:latest", "hob"),
        entry("auto:latest", "hob"),
    ];
    assert_eq!(entries, expected);
}

#[tokio::test]
async fn a_client_that_adds_the_tag_finds_every_name_in_the_list_and_its_model() {
    let ids = ["a", "org/b", "c:8b", "d:latest", "e", "e:latest"];
    let (server, engine) = server(ScriptedEngine::saying(&["hi"]).with_models(&ids)).await;
    let (_, body) = get(&server, "/api/tags").await;
    let names: Vec<&str> =
        body["models"].as_array().unwrap().iter().map(|entry| entry["model"].as_str().unwrap()).collect();
    // Only one of two models can have the name with the tag.
    assert_eq!(names[..6], ["a:latest", "org/b:latest", "c:8b", "d:latest", "e", "e:latest"]);
    for (name, id) in names.into_iter().zip(ids) {
        let question = json!({ "model": name, "messages": [{ "role": "user", "content": "hi" }] });
        assert_eq!(post(&server, "/api/chat", &question).await.status(), 200, "{name}");
        assert_eq!(engine.requests().last().unwrap().model, id, "{name}");
    }
}

#[tokio::test]
async fn a_model_is_described_with_what_it_can_do() {
    let (server, _) = server(ScriptedEngine::saying(&["hi"]).with_embedding_models(&["e"])).await;
    for (asked, capabilities) in [
        (json!({ "model": "m:latest", "verbose": true }), json!(["completion", "tools"])),
        (json!({ "name": "m" }), json!(["completion", "tools"])),
        (json!({ "model": "default" }), json!(["completion", "tools"])),
        (json!({ "model": "e" }), json!(["embedding"])),
    ] {
        let (status, body) = object(post(&server, "/api/show", &asked).await).await;
        assert_eq!((status, &body["capabilities"]), (200, &capabilities), "{asked}");
        assert_eq!(body["details"], details("scripted"));
        assert_eq!(body["model_info"]["general.architecture"], "scripted");
        for text in ["modelfile", "parameters", "template", "modified_at"] {
            assert!(body[text].is_string(), "{text}");
        }
    }
    let (status, body) = object(post(&server, "/api/show", &json!({ "model": "auto" })).await).await;
    assert_eq!((status, &body["details"]["family"]), (200, &json!("hob")));
    let (status, body) = object(post(&server, "/api/show", &json!({ "model": "nope" })).await).await;
    assert_eq!(status, 404);
    assert!(body["error"].as_str().unwrap().starts_with("model 'nope' not found"), "{body}");
    assert_eq!(post(&server, "/api/show", &json!({})).await.status(), 400);
}

#[tokio::test]
async fn models_in_memory_are_listed_until_they_are_unloaded() {
    let (server, _) = server(ScriptedEngine::saying(&["hi"])).await;
    assert_eq!(get(&server, "/api/ps").await, (200, json!({ "models": [] })));
    post(&server, "/api/generate", &json!({ "model": "m" })).await;
    let (_, body) = get(&server, "/api/ps").await;
    let expected = json!({
        "name": "m:latest", "model": "m:latest", "size": 1 << 20, "details": details("scripted"), "expires_at": "0001-01-01T00:00:00Z",
        "size_vram": 0,
    });
    assert_eq!(without_digest(body["models"][0].clone()), expected);
    post(&server, "/api/generate", &json!({ "model": "m", "keep_alive": 0 })).await;
    assert_eq!(get(&server, "/api/ps").await, (200, json!({ "models": [] })));
}

#[tokio::test]
async fn the_version_is_new_enough_for_clients_that_check_it() {
    let (server, _) = server(ScriptedEngine::saying(&["hi"])).await;
    let (_, body) = get(&server, "/api/version").await;
    let version: Vec<u32> =
        body["version"].as_str().unwrap().split('.').map(|part| part.parse().unwrap()).collect();
    // Codex asks for 0.13.4.
    assert!(version >= vec![0, 13, 4], "{body}");
    assert_eq!(body["hob"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn what_hob_does_not_do_says_so() {
    let (server, _) = server(ScriptedEngine::saying(&["hi"])).await;
    for (method, path) in [
        (Method::POST, "/api/create"),
        (Method::POST, "/api/push"),
        (Method::POST, "/api/blobs/sha256:29fdb92e57cf0827ded04ae6461b5931d01fa595843f55d36f5b275a52087dd2"),
    ] {
        let (status, body) = object(send(&server, method, path, &json!({ "model": "m" })).await).await;
        assert_eq!(status, 501, "{path}");
        assert!(body["error"].as_str().unwrap().starts_with("Hob "), "{body}");
    }
    let (status, body) = get(&server, "/api/nothing").await;
    assert_eq!((status, body.as_object().unwrap().len()), (404, 1), "{body}");
    assert!(body["error"].is_string(), "{body}");
    assert_eq!(get(&server, "/api/chat").await.0, 405);
}
