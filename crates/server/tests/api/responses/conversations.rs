//! `/v1/conversations`: created, asked in, listed, changed, deleted, and nobody else's.

use std::sync::Arc;

use hob_core::{Message, Role};
use hob_testkit::ScriptedEngine;
use reqwest::Method;
use serde_json::{Value, json};

use super::{StoringServer, error_of, json_of, last_messages, reached_by_stranger};

fn hello() -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["Hello"]))
}

async fn created(server: &StoringServer, body: Value) -> (String, Value) {
    let conversation = json_of(server.post("/v1/conversations", &body).await).await;
    (format!("/v1/conversations/{}", conversation["id"].as_str().unwrap()), conversation)
}

async fn texts(server: &StoringServer, path: &str) -> Vec<String> {
    let list = server.get(&format!("{path}/items?order=asc")).await;
    let text = |item: &Value| {
        format!("{}: {}", item["role"].as_str().unwrap(), item["content"][0]["text"].as_str().unwrap())
    };
    list["data"].as_array().unwrap().iter().map(text).collect()
}

#[tokio::test]
async fn responses_are_added_to_their_conversation() {
    let engine = hello();
    let server = StoringServer::start(engine.clone()).await;
    let (path, conversation) =
        created(&server, json!({ "items": [{ "role": "developer", "content": "be brief" }] })).await;
    for (number, stream) in [false, true].into_iter().enumerate() {
        let fields = json!({ "conversation": conversation["id"], "input": format!("question {number}"), "stream": stream });
        let response = server.create(fields).await;
        assert_eq!(response.status(), 200);
        response.text().await.unwrap();
    }
    let said = [
        "developer: be brief",
        "user: question 0",
        "assistant: Hello",
        "user: question 1",
        "assistant: Hello",
    ];
    assert_eq!(texts(&server, &path).await, said);
    // Also if the response itself is not stored, and after a restart.
    let server = server.restart(engine.clone()).await;
    let fields = json!({ "conversation": { "id": conversation["id"] }, "input": "last", "store": false });
    let response = server.created(fields).await;
    assert_eq!(response["conversation"], json!({ "id": conversation["id"] }));
    assert_eq!(texts(&server, &path).await[5..], ["user: last", "assistant: Hello"]);
    assert_eq!(
        last_messages(&engine)[..2],
        [Message::new(Role::System, "be brief"), Message::new(Role::User, "question 0")]
    );
    assert_eq!(last_messages(&engine).len(), 6);
}

#[tokio::test]
async fn a_conversation_is_read_changed_and_deleted() {
    let server = StoringServer::start(hello()).await;
    let (path, conversation) = created(&server, json!({ "metadata": { "a": "b" } })).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(conversation["created_at"].as_u64().unwrap().abs_diff(now) < 60);
    assert_eq!(
        conversation,
        json!({ "id": conversation["id"], "object": "conversation", "created_at": conversation["created_at"], "metadata": { "a": "b" } })
    );
    assert_eq!(server.get(&path).await, conversation);
    let changed = json_of(server.post(&path, &json!({ "metadata": { "c": "d" } })).await).await;
    assert_eq!(changed["metadata"], json!({ "c": "d" }));
    assert_eq!(server.get(&path).await, changed);

    let items = json!({ "items": [{ "role": "user", "content": "a" }, { "role": "user", "content": "b" }] });
    let added = json_of(server.post(&format!("{path}/items"), &items).await).await;
    let first = &added["data"][0];
    let item_path = format!("{path}/items/{}", first["id"].as_str().unwrap());
    assert_eq!(server.get(&item_path).await, *first);
    assert_eq!(json_of(server.ask(Method::DELETE, &item_path).await).await, changed);
    assert_eq!(texts(&server, &path).await, ["user: b"]);
    for method in [Method::GET, Method::DELETE] {
        let gone = error_of(server.ask(method, &item_path).await).await;
        assert_eq!(gone, (404, json!("item_id"), json!("item_not_found")));
    }
    let deleted = json_of(server.ask(Method::DELETE, &path).await).await;
    assert_eq!(
        deleted,
        json!({ "id": conversation["id"], "object": "conversation.deleted", "deleted": true })
    );
    let gone = (404, json!("conversation"), json!("conversation_not_found"));
    assert_eq!(error_of(server.ask(Method::GET, &path).await).await, gone);
    assert_eq!(error_of(server.ask(Method::DELETE, &path).await).await, gone);
    assert_eq!(error_of(server.ask(Method::GET, &format!("{path}/items")).await).await, gone);
    assert_eq!(error_of(server.post(&path, &json!({ "metadata": {} })).await).await, gone);
    assert_eq!(error_of(server.post(&format!("{path}/items"), &items).await).await, gone);
    let asked = server.create(json!({ "conversation": conversation["id"] })).await;
    assert_eq!(error_of(asked).await, gone);
}

#[tokio::test]
async fn wrong_items_are_refused() {
    let server = StoringServer::start(hello()).await;
    let (path, _) = created(&server, json!({})).await;
    let many: Vec<Value> = (0..21).map(|_| json!({ "role": "user", "content": "x" })).collect();
    for (items, param) in [
        (json!(many), "items"),
        (json!([7]), "items[0]"),
        (json!([{ "role": "user" }]), "items[0].content"),
        (json!("x"), "items"),
    ] {
        let refused = server.post(&format!("{path}/items"), &json!({ "items": items })).await;
        assert_eq!(error_of(refused).await, (400, json!(param), Value::Null), "{items}");
    }
    assert_eq!(texts(&server, &path).await, Vec::<String>::new());
    let refused = server.post("/v1/conversations", &json!({ "metadata": { "a": 1 } })).await;
    assert_eq!(error_of(refused).await, (400, json!("metadata"), Value::Null));
}

#[tokio::test]
async fn a_stranger_has_conversations_of_its_own() {
    let owner = StoringServer::start(hello()).await;
    let stranger = reached_by_stranger(hello(), owner.home.path()).await;
    let (path, conversation) = created(&owner, json!({})).await;
    let gone = (404, json!("conversation"), json!("conversation_not_found"));
    for (method, rest) in [(Method::GET, ""), (Method::DELETE, ""), (Method::GET, "/items")] {
        let foreign =
            stranger.client.request(method, stranger.url(&format!("{path}{rest}"))).send().await.unwrap();
        assert_eq!(error_of(foreign).await, gone);
    }
    let body = super::asking(json!({ "conversation": conversation["id"] }));
    let asked = stranger.client.post(stranger.url("/v1/responses")).json(&body).send().await.unwrap();
    assert_eq!(error_of(asked).await, gone);
    assert_eq!(owner.get(&path).await, conversation);
}
