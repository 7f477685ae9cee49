//! `/v1/conversations`: created, asked in, listed, changed, deleted, and visible only to their caller.

use std::sync::Arc;

use hob_core::{Delta, FinishReason, Message, Role};
use hob_engines::Style;
use hob_testkit::{Hold, ScriptedEngine};
use reqwest::Method;
use serde_json::{Value, json};

use super::background::held_engine;
use super::{
    StoringServer, call, error_of, finish, json_of, last_messages, reached_by_stranger, warnings_of,
};
use crate::support::engine_at;

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

#[tokio::test]
async fn one_response_at_a_time_is_added_to_a_conversation() {
    let hold = Hold::new();
    let fake = held_engine(&hold).await;
    let server = StoringServer::start(engine_at(&fake, Style::VLLM)).await;
    let (path, conversation) = created(&server, json!({})).await;
    let fields = |input: &str| json!({ "conversation": conversation["id"], "input": input, "stream": true });
    // The head of a stream comes when its engine has begun.
    let first = server.create(fields("first")).await;
    let locked = server.create(fields("second")).await;
    assert_eq!(error_of(locked).await, (400, json!("conversation"), json!("conversation_locked")));
    // Another conversation is free.
    let (_, other) = created(&server, json!({})).await;
    let free = server.create(json!({ "conversation": other["id"], "stream": true })).await;
    assert_eq!(free.status(), 200);
    hold.release();
    free.text().await.unwrap();
    first.text().await.unwrap();
    // A client that leaves does not lock it for ever.
    let left = server.create(fields("left")).await;
    assert_eq!(left.status(), 200);
    drop(left);
    let third = async {
        loop {
            let third = server.create(fields("third")).await;
            if third.status() == 200 {
                return third.text().await.unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::WAIT_LIMIT, third).await.unwrap();
    let said = texts(&server, &path).await;
    assert_eq!(said[..2], ["user: first", "assistant: hi"]);
    assert_eq!(said[said.len() - 2..], ["user: third", "assistant: hi"]);
}

#[tokio::test]
async fn a_turn_that_was_not_added_is_told() {
    let said = "x".repeat(9 << 20);
    let server = StoringServer::start(hello()).await;
    for stream in [false, true] {
        let (path, conversation) =
            created(&server, json!({ "items": [{ "role": "user", "content": said }] })).await;
        let fields =
            json!({ "conversation": conversation["id"], "input": said, "store": false, "stream": stream });
        let full = server.create(fields.clone()).await;
        assert_eq!(full.status(), 200);
        let warnings = warnings_of(&full);
        let body = full.text().await.unwrap();
        match stream {
            false => assert_eq!(warnings, ["ignored=conversation"]),
            true => assert!(body.contains(": hob WARNING [\"ignored=conversation\"]\n\n"), "{}", body.len()),
        }
        let items = server.get(&format!("{path}/items?limit=100")).await;
        assert_eq!(items["data"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_conversation_that_is_deleted_meanwhile_is_told() {
    let hold = Hold::new();
    let fake = held_engine(&hold).await;
    let server = StoringServer::start(engine_at(&fake, Style::VLLM)).await;
    let (path, conversation) = created(&server, json!({})).await;
    let response = server.create(json!({ "conversation": conversation["id"], "stream": true })).await;
    json_of(server.ask(Method::DELETE, &path).await).await;
    hold.release();
    let body = response.text().await.unwrap();
    assert!(body.contains(": hob WARNING [\"ignored=conversation\"]\n\n"), "{body}");
}

#[tokio::test]
async fn a_call_that_was_cut_off_does_not_spoil_what_follows() {
    let engine = Arc::new(ScriptedEngine::new(|request| {
        let is_first = request.messages[0].content.text() == "hi";
        let deltas = match is_first {
            true => vec![call("c1", "f", "{\"a"), finish(FinishReason::Length)],
            false => vec![Delta::text("ok"), finish(FinishReason::Stop)],
        };
        deltas.into_iter().chain([Delta::Done { usage: None }]).map(Ok).collect()
    }));
    let server = StoringServer::start(engine.clone()).await;
    let (_, conversation) = created(&server, json!({})).await;
    let tools = json!([{ "type": "function", "name": "f" }]);
    for in_conversation in [false, true] {
        let place = |previous: &Value| match in_conversation {
            true => json!({ "conversation": conversation["id"], "tools": tools }),
            false => json!({ "previous_response_id": previous, "tools": tools }),
        };
        let cut = server.created(place(&Value::Null)).await;
        assert_eq!([&cut["status"], &cut["output"][0]["status"]], ["incomplete", "incomplete"]);
        let mut fields = place(&cut["id"]);
        fields["input"] = json!("go on");
        let next = server.create(fields).await;
        assert_eq!(warnings_of(&next), ["ignored=input[].status=incomplete"]);
        assert_eq!(json_of(next).await["output"][0]["content"][0]["text"], "ok");
        assert_eq!(last_messages(&engine), [Message::new(Role::User, "hi\n\ngo on")]);
    }
}

#[tokio::test]
async fn an_item_is_in_a_conversation_once() {
    let engine = hello();
    let server = StoringServer::start(engine.clone()).await;
    let item = json!({ "role": "user", "content": "one", "id": "msg_mine" });
    let (path, conversation) = created(&server, json!({ "items": [item] })).await;
    let again = server.post(&format!("{path}/items"), &json!({ "items": [item] })).await;
    assert_eq!(error_of(again).await, (400, json!("items"), Value::Null));
    let reference = json!({ "type": "item_reference", "id": "msg_mine" });
    let input = json!([reference, { "role": "user", "content": "two", "id": "msg_mine" }, reference]);
    server.created(json!({ "conversation": conversation["id"], "input": input })).await;
    assert_eq!(last_messages(&engine), [Message::new(Role::User, "one\n\ntwo")]);
    assert_eq!(texts(&server, &path).await, ["user: one", "user: two", "assistant: Hello"]);
    // Page by page, each item comes once.
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("{path}/items?order=asc&limit=1{after}")).await;
        ids.push(page["data"][0]["id"].clone());
        after = format!("&after={}", page["last_id"].as_str().unwrap());
        if page["has_more"] == false {
            break;
        }
    }
    let all = server.get(&format!("{path}/items?order=asc")).await;
    let all: Vec<Value> = all["data"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!((ids.len(), &ids), (3, &all));
}

#[tokio::test]
async fn what_has_no_effect_on_a_conversation_is_named() {
    let server = StoringServer::start(hello()).await;
    let items = json!([{ "role": "user", "content": "a" }, { "type": "web_search_call", "id": "ws_1" }]);
    let response =
        server.post("/v1/conversations", &json!({ "items": items, "name": "x", "none": null })).await;
    assert_eq!(warnings_of(&response), ["ignored=name", "ignored=input[].type=web_search_call"]);
    let conversation = json_of(response).await;
    let path = format!("/v1/conversations/{}", conversation["id"].as_str().unwrap());
    let changed = server.post(&path, &json!({ "metadata": {}, "items": [] })).await;
    assert_eq!(warnings_of(&changed), ["ignored=items"]);
    let added = server.post(&format!("{path}/items"), &json!({ "items": [], "name": "x" })).await;
    assert_eq!(warnings_of(&added), ["ignored=name"]);
}
