//! `/v1/responses/{id}`: read, listed, deleted, and nobody else's.

use std::sync::Arc;

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
async fn nobody_reads_what_belongs_to_another_caller() {
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
async fn a_response_that_is_not_in_the_background_is_not_cancelled() {
    let server = StoringServer::start(hello()).await;
    let response = server.created(json!({})).await;
    let path = format!("/v1/responses/{}/cancel", response["id"].as_str().unwrap());
    let refused = error_of(server.ask(Method::POST, &path).await).await;
    assert_eq!(refused, (400, json!("response_id"), Value::Null));
}
