//! `GET /v1/models` for clients that send `anthropic-version`.

use std::sync::Arc;

use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::serving;
use crate::support::TestServer;

async fn get(server: &TestServer, path: &str, is_anthropic: bool) -> (u16, Value) {
    let mut request = server.client.get(server.url(path));
    if is_anthropic {
        request = request.header("anthropic-version", "2023-06-01");
    }
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn model(id: &str) -> Value {
    json!({ "type": "model", "id": id, "display_name": id, "created_at": "1970-01-01T00:00:00.000000Z" })
}

#[tokio::test]
async fn anthropics_clients_get_its_list_and_others_openais() {
    let engine =
        Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["a", "b", "c"]).with_embedding_models(&["e"]));
    let server = serving(&engine).await;
    assert_eq!(
        get(&server, "/v1/models", true).await,
        (
            200,
            json!({ "data": [model("a"), model("b"), model("c")], "has_more": false, "first_id": "a", "last_id": "c" })
        )
    );
    assert_eq!(
        get(&server, "/v1/models?limit=1&after_id=a", true).await,
        (200, json!({ "data": [model("b")], "has_more": true, "first_id": "b", "last_id": "b" }))
    );
    assert_eq!(get(&server, "/v1/models", false).await.1["object"], "list");
}

#[tokio::test]
async fn one_model_has_the_same_form() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["a"]));
    let server = serving(&engine).await;
    assert_eq!(get(&server, "/v1/models/a", true).await, (200, model("a")));
    assert_eq!(get(&server, "/v1/models/default", true).await, (200, model("a")));
    assert_eq!(get(&server, "/v1/models/auto", true).await, (200, model("auto")));
    let (status, body) = get(&server, "/v1/models/nope", true).await;
    assert_eq!((status, &body["error"]["type"]), (404, &json!("not_found_error")));
    for wrong in ["limit=0", "limit=x", "after_id=nope"] {
        let (status, body) = get(&server, &format!("/v1/models?{wrong}"), true).await;
        assert_eq!((status, &body["type"]), (400, &json!("error")), "{wrong}");
    }
    assert_eq!(get(&server, "/v1/models/a", false).await.1["object"], "model");
}
