//! `GET /v1/models` and `GET /v1/models/{id}`.

use std::sync::Arc;

use hob_app::AskServiceParts;
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use crate::fixtures::{loopback_config, parts};
use crate::support::TestServer;

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
    assert_eq!(get("/v1/models").await, json!({ "object": "list", "data": [default, model("org/name:7b")] }));
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
    assert_eq!(marks, [("minilm", Some("embedding"), None), ("a", None, None), ("b", None, Some(true))]);
    // Both names work like the id of a model.
    let shown = get("/v1/models/default").await;
    assert_eq!((&shown["id"], &shown["default"]), (&json!("b"), &json!(true)));
    let auto = get("/v1/models/auto").await;
    assert_eq!((&auto["id"], &auto["owned_by"]), (&json!("auto"), &json!("hob")));
}
