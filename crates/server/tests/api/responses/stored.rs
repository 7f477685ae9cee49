//! `/v1/responses/{id}`: read, listed, deleted, and visible only to its caller.

use std::sync::Arc;
use std::time::SystemTime;

use hob_conversations::{ResponseLease, ResponseOwner, StoredResponse};
use hob_testkit::ScriptedEngine;
use reqwest::Method;
use serde_json::{Value, json};

use super::{StoringServer, asking, error_of, json_of, reached_by_stranger};

fn hello() -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["Hello"]))
}

#[tokio::test]
async fn a_response_is_read_again_and_deleted() {
    let server = StoringServer::start(hello()).await;
    let response = server.created(json!({})).await;
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await, response);
    let server = server.restart(hello()).await;
    assert_eq!(server.get(&path).await, response);
    let deleted = json_of(server.ask(Method::DELETE, &path).await).await;
    assert_eq!(deleted, json!({ "id": response["id"], "object": "response", "deleted": true }));
    for method in [Method::GET, Method::DELETE] {
        let gone = error_of(server.ask(method, &path).await).await;
        assert_eq!(gone, (404, json!("response_id"), json!("response_not_found")));
    }
}

#[tokio::test]
async fn what_was_asked_is_listed_in_pages() {
    let server = StoringServer::start(hello()).await;
    let input = json!([
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "two", "id": "msg_mine" },
        { "role": "user", "content": [{ "type": "input_text", "text": "three" }] },
    ]);
    let response = server.created(json!({ "input": input })).await;
    let suffix = response["id"].as_str().unwrap().strip_prefix("resp_").unwrap().to_owned();
    let path = format!("/v1/responses/resp_{suffix}/input_items");
    let item = |id: String, role: &str, kind: &str, text: &str| {
        let mut part = json!({ "type": kind, "text": text });
        if kind == "output_text" {
            part["annotations"] = json!([]);
        }
        json!({ "id": id, "type": "message", "status": "completed", "role": role, "content": [part] })
    };
    let one = item(format!("msg_{suffix}i0"), "user", "input_text", "one");
    let two = item("msg_mine".into(), "assistant", "output_text", "two");
    let three = item(format!("msg_{suffix}i2"), "user", "input_text", "three");
    let list = |items: &[&Value], has_more: bool| {
        json!({
            "object": "list", "data": items, "first_id": items[0]["id"], "last_id": items[items.len() - 1]["id"],
            "has_more": has_more,
        })
    };
    assert_eq!(server.get(&path).await, list(&[&three, &two, &one], false));
    assert_eq!(server.get(&format!("{path}?order=asc&limit=2")).await, list(&[&one, &two], true));
    assert_eq!(server.get(&format!("{path}?order=asc&after=msg_mine")).await, list(&[&three], false));
    for (query, param) in
        [("limit=0", "limit"), ("limit=101", "limit"), ("order=up", "order"), ("after=x", "after")]
    {
        let refused = error_of(server.ask(Method::GET, &format!("{path}?{query}")).await).await;
        assert_eq!(refused, (400, json!(param), Value::Null), "{query}");
    }
}

#[tokio::test]
async fn no_caller_reads_what_belongs_to_another() {
    let owner = StoringServer::start(hello()).await;
    let stranger = reached_by_stranger(hello(), owner.home.path()).await;
    let ask = |method: Method, path: &str| stranger.client.request(method, stranger.url(path)).send();
    let create =
        |fields: Value| stranger.client.post(stranger.url("/v1/responses")).json(&asking(fields)).send();
    let owners = owner.created(json!({})).await;
    let owners_path = format!("/v1/responses/{}", owners["id"].as_str().unwrap());
    let strangers = json_of(create(json!({})).await.unwrap()).await;
    let strangers_path = format!("/v1/responses/{}", strangers["id"].as_str().unwrap());
    assert_eq!(json_of(ask(Method::GET, &strangers_path).await.unwrap()).await, strangers);
    let gone = (404, json!("response_id"), json!("response_not_found"));
    for (method, rest) in [
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::POST, "/cancel"),
        (Method::GET, "/input_items"),
        (Method::GET, "?stream=true"),
    ] {
        let foreign = ask(method.clone(), &format!("{owners_path}{rest}")).await.unwrap();
        assert_eq!(error_of(foreign).await, gone, "{method} {rest}");
        let foreign = owner.ask(method.clone(), &format!("{strangers_path}{rest}")).await;
        assert_eq!(error_of(foreign).await, gone, "{method} {rest}");
    }
    let missing = (400, json!("previous_response_id"), json!("previous_response_not_found"));
    let continued = create(json!({ "previous_response_id": owners["id"] })).await.unwrap();
    assert_eq!(error_of(continued).await, missing);
    let continued = owner.create(json!({ "previous_response_id": strangers["id"] })).await;
    assert_eq!(error_of(continued).await, missing);
    let input = json!([{ "type": "item_reference", "id": owners["output"][0]["id"] }]);
    let referred = create(json!({ "input": input })).await.unwrap();
    assert_eq!(error_of(referred).await, (400, json!("input[0].id"), Value::Null));
    assert_eq!(owner.get(&owners_path).await, owners);
}

#[tokio::test]
async fn strangers_are_told_apart_by_their_address() {
    let home = tempfile::tempdir().unwrap();
    let stranger = reached_by_stranger(hello(), home.path()).await;
    let response = stranger.client.post(stranger.url("/v1/responses")).json(&asking(json!({}))).send().await;
    let response = json_of(response.unwrap()).await;
    let id = response["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}");
    let items = json!({ "items": [{ "role": "user", "content": "mine" }] });
    let conversation = stranger.client.post(stranger.url("/v1/conversations")).json(&items).send().await;
    let conversation = json_of(conversation.unwrap()).await;
    let chat = format!("/v1/conversations/{}", conversation["id"].as_str().unwrap());
    // Another stranger, who comes through a proxy on this machine.
    let other = |method: Method, path: &str| {
        let address = format!("http://127.0.0.1:{}{path}", stranger.address.port());
        stranger.client.request(method, address).header("x-forwarded-for", "192.0.2.9")
    };
    let gone = (404, json!("response_id"), json!("response_not_found"));
    for (method, rest) in
        [(Method::GET, ""), (Method::GET, "/input_items"), (Method::POST, "/cancel"), (Method::DELETE, "")]
    {
        let foreign = other(method, &format!("{path}{rest}")).send().await.unwrap();
        assert_eq!(error_of(foreign).await, gone, "{rest}");
    }
    let continued = other(Method::POST, "/v1/responses").json(&asking(json!({ "previous_response_id": id })));
    let missing = (400, json!("previous_response_id"), json!("previous_response_not_found"));
    assert_eq!(error_of(continued.send().await.unwrap()).await, missing);
    let gone = (404, json!("conversation"), json!("conversation_not_found"));
    for (method, rest) in [(Method::GET, ""), (Method::GET, "/items"), (Method::DELETE, "")] {
        let foreign = other(method, &format!("{chat}{rest}")).send().await.unwrap();
        assert_eq!(error_of(foreign).await, gone, "{rest}");
    }
    let own = stranger.client.get(stranger.url(&path)).send().await.unwrap();
    assert_eq!(json_of(own).await, response);
}

#[tokio::test]
async fn a_response_that_is_not_in_the_background_is_not_cancelled() {
    let server = StoringServer::start(hello()).await;
    let response = server.created(json!({})).await;
    let path = format!("/v1/responses/{}/cancel", response["id"].as_str().unwrap());
    let refused = error_of(server.ask(Method::POST, &path).await).await;
    assert_eq!(refused, (400, json!("response_id"), Value::Null));
}

#[tokio::test]
async fn a_response_whose_lease_has_expired_has_failed() {
    let server = StoringServer::start(hello()).await;
    let response = server.created(json!({})).await;
    let id = response["id"].as_str().unwrap();
    let left = |lease: ResponseLease, status: &str| {
        let mut body = response.clone();
        body["status"] = json!(status);
        body["background"] = json!(true);
        let (body, input) = (body.to_string(), "[]".to_owned());
        let left = StoredResponse { id: id.to_owned(), previous: None, body, input, lease: Some(lease) };
        server.store.save(&ResponseOwner::owner(), &left, None, SystemTime::now()).unwrap();
    };
    let path = format!("/v1/responses/{id}");
    left(ResponseLease::Held, "in_progress");
    assert_eq!(server.get(&path).await["status"], "in_progress");
    let early = server.create(json!({ "previous_response_id": id })).await;
    assert!(early.text().await.unwrap().contains("is not complete yet"));
    // Another process writes it, or none does since a crash: it is cancelled all the same.
    let cancelled = json_of(server.ask(Method::POST, &format!("{path}/cancel")).await).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(server.get(&path).await, cancelled);
    left(ResponseLease::Expired, "in_progress");
    let late = server.create(json!({ "previous_response_id": id })).await;
    assert!(late.text().await.unwrap().contains("has failed: the server stopped"));
    let failed = server.get(&path).await;
    assert_eq!(
        [&failed["status"], &failed["error"]],
        [
            &json!("failed"),
            &json!({ "code": "server_error", "message": "the server stopped while it wrote this response" }),
        ]
    );
}
