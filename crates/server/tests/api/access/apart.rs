//! What belongs to others does not exist for a member: every route over own objects answers to the id of another's object as it does
//! to an id that does not exist.

use reqwest::Method;
use serde_json::{Value, json};

use super::routes::{Route, routes};
use super::{Team, answer, get, post, request};
use crate::fixtures::loopback_config;
use crate::support::TestServer;

/// The routes that show and delete an object.
const OBJECTS: [&str; 5] = [
    "/v1/responses/{id}",
    "/v1/conversations/{id}",
    "/v1/tasks/{id}",
    "/v1/chats/{id}",
    "/v1/saved-assistants/{id}",
];

/// What one caller has.
struct Objects {
    response: String,
    conversation: String,
    item: String,
    task: String,
    chat: String,
    turn: String,
    assistant: String,
}

fn id(object: &Value) -> String {
    object["id"].as_str().unwrap_or_else(|| panic!("an id: {object}")).to_owned()
}

impl Objects {
    async fn of(server: &TestServer, key: &str) -> Self {
        let asked = json!({ "model": "qwen3:8b", "input": "my secret" });
        let (_, response) = post(server, "/v1/responses", key, &asked).await;
        let items = json!({ "items": [{ "role": "user", "content": "my secret" }] });
        let (_, conversation) = post(server, "/v1/conversations", key, &items).await;
        let list = format!("/v1/conversations/{}/items", id(&conversation));
        let (_, items) = get(server, &list, key).await;
        let task =
            json!({ "prompt": "my secret", "schedule_type": "interval", "schedule_value": "31536000" });
        let (_, task) = post(server, "/v1/tasks", key, &task).await;
        let (_, chat) = post(server, "/v1/chats", key, &json!({ "title": "my secret" })).await;
        let turns = format!("/v1/chats/{}/turns", id(&chat));
        let (_, turn) = post(server, &turns, key, &body("/v1/chats/{id}/turns")).await;
        let (_, assistant) = post(server, "/v1/saved-assistants", key, &json!({ "name": "my secret" })).await;
        Objects {
            response: id(&response),
            conversation: id(&conversation),
            item: id(&items["data"][0]),
            task: id(&task),
            chat: id(&chat),
            turn: id(&turn),
            assistant: id(&assistant),
        }
    }

    /// The path of a route over one of them.
    fn path(&self, pattern: &str) -> String {
        let id = match pattern {
            _ if pattern.starts_with("/v1/responses/") => &self.response,
            _ if pattern.starts_with("/v1/conversations/") => &self.conversation,
            _ if pattern.starts_with("/v1/tasks/") => &self.task,
            _ if pattern.starts_with("/v1/chats/") => &self.chat,
            _ if pattern.starts_with("/v1/saved-assistants/") => &self.assistant,
            _ => panic!("{pattern} is a route over own objects. Add an object of its kind to this test"),
        };
        pattern.replace("{id}", id).replace("{item_id}", &self.item).replace("{turn}", &self.turn)
    }

    /// What the id of the response and those of its items have in common.
    fn suffix(&self) -> &str {
        self.response.strip_prefix("resp_").unwrap()
    }

    /// The text without the ids, which is then the same for all objects.
    fn without_ids(&self, text: &Value) -> String {
        let ids = [self.response.as_str(), &self.conversation, &self.item, &self.task, self.suffix()];
        let text = ids.into_iter().fold(text.to_string(), |text, id| text.replace(id, "ID"));
        // These are numbers, so only where they stand alone.
        let numbers = [&self.chat, &self.assistant].map(|number| format!("'{number}'"));
        numbers.iter().fold(text, |text, number| text.replace(number.as_str(), "'ID'"))
    }
}

fn body(pattern: &str) -> Value {
    match pattern {
        "/v1/conversations/{id}" => json!({ "metadata": { "a": "b" } }),
        "/v1/chats/{id}/turns" => json!({ "question": { "text": "my secret" } }),
        "/v1/chats/{id}/turns/{turn}/answer" => {
            json!({ "text": "my secret", "model": "m", "ending": "complete" })
        }
        "/v1/conversations/{id}/items" => json!({ "items": [{ "role": "user", "content": "hi" }] }),
        _ => json!({}),
    }
}

async fn send(server: &TestServer, method: &Method, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let asked = request(server, method, path, key);
    let asked = if *method == Method::GET { asked } else { asked.json(body) };
    answer(asked.send().await.unwrap()).await
}

/// The routes that name an object of the caller.
fn routes_over_objects() -> impl Iterator<Item = Route> {
    routes().into_iter().filter(|route| route.rule == "own" && route.pattern.contains('{'))
}

#[tokio::test]
async fn an_object_of_another_is_not_found_on_any_route() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({})).await;
    let ben = team.member("ben", json!({})).await;
    let (owners, bens) = (Objects::of(&server, "").await, Objects::of(&server, &ben).await);
    // Ids that are well formed, and name nothing any more.
    let gone = Objects::of(&server, &ana).await;
    for pattern in OBJECTS {
        let deleted = send(&server, &Method::DELETE, &gone.path(pattern), &ana, &json!({})).await;
        assert_eq!(deleted.0, 200, "{pattern}: {}", deleted.1);
    }
    assert!(routes_over_objects().count() > 10);
    for route in routes_over_objects() {
        for method in &route.methods {
            let body = body(route.pattern);
            let unknown = send(&server, method, &gone.path(route.pattern), &ana, &body).await;
            let unknown = (unknown.0, gone.without_ids(&unknown.1));
            assert_eq!(unknown.0, 404, "{method} {}: {}", route.pattern, unknown.1);
            for objects in [&owners, &bens] {
                let found = send(&server, method, &objects.path(route.pattern), &ana, &body).await;
                let found = (found.0, objects.without_ids(&found.1));
                assert_eq!(found, unknown, "{method} {}", route.pattern);
            }
        }
    }
    // And nothing of it has changed anything.
    for (objects, key) in [(&owners, ""), (&bens, ben.as_str())] {
        for pattern in OBJECTS {
            let (status, body) = get(&server, &objects.path(pattern), key).await;
            assert_eq!(status, 200, "{pattern}: {body}");
            assert!(body["metadata"].as_object().is_none_or(serde_json::Map::is_empty), "{body}");
        }
        let items = format!("/v1/conversations/{}/items", objects.conversation);
        let (_, items) = get(&server, &items, key).await;
        assert_eq!(items["data"].as_array().map(Vec::len), Some(1), "{items}");
        let (_, task) = get(&server, &format!("/v1/tasks/{}", objects.task), key).await;
        assert_eq!((&task["status"], &task["last_run"]), (&json!("active"), &Value::Null));
    }
}

#[tokio::test]
async fn a_member_cannot_continue_or_quote_what_is_not_its_own() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({})).await;
    let ben = team.member("ben", json!({})).await;
    let (own, gone) = (Objects::of(&server, &ana).await, Objects::of(&server, &ana).await);
    for pattern in ["/v1/responses/{id}", "/v1/conversations/{id}"] {
        send(&server, &Method::DELETE, &gone.path(pattern), &ana, &json!({})).await;
    }
    let bens = Objects::of(&server, &ben).await;
    let asking = |objects: &Objects| {
        let ask = |field: &str, value: &str| json!({ "model": "qwen3:8b", "input": "and?", field: value });
        // What was asked for the response.
        let item = format!("msg_{}i0", objects.suffix());
        let quoted = json!({ "model": "qwen3:8b", "input": [{ "type": "item_reference", "id": item }] });
        [ask("previous_response_id", &objects.response), ask("conversation", &objects.conversation), quoted]
    };
    for (index, theirs) in asking(&bens).into_iter().enumerate() {
        let unknown = post(&server, "/v1/responses", &ana, &asking(&gone)[index]).await;
        let refused = post(&server, "/v1/responses", &ana, &theirs).await;
        assert!([400, 404].contains(&refused.0), "{theirs}: {}", refused.1);
        assert_eq!(
            (refused.0, bens.without_ids(&refused.1)),
            (unknown.0, gone.without_ids(&unknown.1)),
            "{theirs}"
        );
        let (status, body) = post(&server, "/v1/responses", &ana, &asking(&own)[index]).await;
        assert_eq!(status, 200, "its own: {body}");
    }
    // An item of another's conversation is not in one's own.
    let path = format!("/v1/conversations/{}/items/{}", own.conversation, bens.item);
    assert_eq!(get(&server, &path, &ana).await.0, 404);
}

#[tokio::test]
async fn lists_and_usage_have_only_what_is_the_members_own() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({ "budgets": ["1M tokens/month"] })).await;
    let ben = team.member("ben", json!({ "budgets": ["1M tokens/month"] })).await;
    let (owners, bens) = (Objects::of(&server, "").await, Objects::of(&server, &ben).await);
    let tasks = async |key: &str| {
        let (_, list) = get(&server, "/v1/tasks", key).await;
        let mut ids: Vec<String> = list["tasks"].as_array().unwrap().iter().map(id).collect();
        ids.sort();
        ids
    };
    assert_eq!(tasks(&ana).await, Vec::<String>::new());
    assert_eq!(tasks(&ben).await, std::slice::from_ref(&bens.task));
    let mut all = [owners.task, bens.task];
    all.sort();
    assert_eq!(tasks("").await, all);
    let used = async |key: &str| {
        let (_, own) = get(&server, "/v1/keys/self", key).await;
        (own["name"].clone(), own["usage"][0]["used"].clone())
    };
    assert_eq!(used(&ana).await, (json!("ana"), json!(0)));
    // The answer to the one response that ben has asked for: 3 tokens read, 2 written.
    assert_eq!(used(&ben).await, (json!("ben"), json!(5)));
}
