//! `GET /v1/models` and `GET /v1/models/{id}`.

use std::sync::Arc;

use hob_app::AskServiceParts;
use hob_engines::{Endpoint, EndpointOptions, Ollama, Style};
use hob_testkit::{FakeServer, Recorded, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::fixtures::{loopback_config, parts};
use crate::support::{TestServer, engine_at};

#[tokio::test]
async fn models_are_listed_and_found_by_id_even_with_slashes() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["m", "org/name:7b"]);
    let server = TestServer::start(Arc::new(engine)).await;
    let get = async |path: &str| -> Value {
        server.client.get(server.url(path)).send().await.unwrap().json().await.unwrap()
    };
    let model = |id: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": "scripted" });
    let mut default = model("m");
    default["default"] = json!(true);
    let of_hob = |id: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": "hob" });
    let listed = [default, model("org/name:7b"), of_hob("default"), of_hob("auto")];
    assert_eq!(get("/v1/models").await, json!({ "object": "list", "data": listed }));
    assert_eq!(get("/v1/models/org/name:7b").await, model("org/name:7b"));
    assert_eq!(get("/v1/models/org%2Fname%3A7b").await, model("org/name:7b"));
}

#[tokio::test]
async fn the_list_marks_the_default_model_and_embedding_models() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["a", "b"]).with_embedding_models(&["minilm"]);
    let parts = AskServiceParts { default_model: Some("b".into()), ..parts(Arc::new(engine)) };
    let server = TestServer::start_system(parts, loopback_config()).await;
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
    assert_eq!(
        marks,
        [
            ("minilm", Some("embedding"), None),
            ("a", None, None),
            ("b", None, Some(true)),
            ("default", None, None),
            ("auto", None, None),
            ("hob/agent", None, None),
        ]
    );
    assert_eq!(listed["data"][0]["capabilities"], json!({ "embedding": true }));
    // Both names work like the id of a model.
    let shown = get("/v1/models/default").await;
    assert_eq!((&shown["id"], &shown["default"]), (&json!("b"), &json!(true)));
    let auto = get("/v1/models/auto").await;
    assert_eq!((&auto["id"], &auto["owned_by"]), (&json!("auto"), &json!("hob")));
}

#[tokio::test]
async fn the_list_says_what_a_model_can_where_the_engine_tells() {
    let show = r#"{"details":{"family":"qwen2"},"model_info":{"general.architecture":"qwen2","qwen2.context_length":32768},
        "capabilities":["completion","tools","insert"]}"#;
    let tags = r#"{"models":[{"name":"qwen:7b","size":5,"details":{"family":"qwen2"}}]}"#;
    let fake = FakeServer::start(move |request: &Recorded| match request.path.as_str() {
        "/api/tags" => Reply::json(200, tags),
        _ => Reply::json(200, show),
    })
    .await;
    let endpoint = Endpoint::new(EndpointOptions::new("ollama", fake.url())).unwrap();
    let server = TestServer::start(Arc::new(Ollama::new(endpoint))).await;
    let get = async |path: &str| -> Value {
        server.client.get(server.url(path)).send().await.unwrap().json().await.unwrap()
    };
    let expected = json!({
        "id": "qwen:7b", "object": "model", "created": 0, "owned_by": "ollama", "default": true,
        "context_length": 32768,
        "capabilities": { "vision": false, "audio": false, "tools": true, "reasoning": false, "fill_in_middle": true },
    });
    for _ in 0..2 {
        assert_eq!(get("/v1/models").await["data"][0], expected);
    }
    assert_eq!(get("/v1/models/qwen:7b").await, expected);
    let shown = fake.requests().iter().filter(|request| request.path == "/api/show").count();
    assert_eq!(shown, 1, "the answer is remembered");
}

#[tokio::test]
async fn llama_cpp_tells_what_its_template_can() {
    let fake = FakeServer::start(|request: &Recorded| match request.path.as_str() {
        "/v1/models" => Reply::transcript("llama-server/models"),
        _ => Reply::transcript("llama-server/props"),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::LLAMACPP)).await;
    let listed: Value =
        server.client.get(server.url("/v1/models")).send().await.unwrap().json().await.unwrap();
    let first = &listed["data"][0];
    assert_eq!(first["context_length"], 2048);
    assert_eq!(first["capabilities"], json!({ "vision": false, "audio": false, "tools": false }));
}

#[tokio::test]
async fn an_engine_without_a_model_that_answers_lists_nothing_to_choose() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&[]).with_embedding_models(&["minilm"]);
    let server = TestServer::start(Arc::new(engine)).await;
    let listed: Value =
        server.client.get(server.url("/v1/models")).send().await.unwrap().json().await.unwrap();
    let ids: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["minilm"]);
}
