//! `GET /pages/live` over HTTP.

use std::sync::Arc;
use std::time::Duration;

use hob_config::ServerConfig;
use hob_db::postgres::PostgresDatabase;
use hob_keys::{KeyRole, KeyService};
use hob_server::ServerParts;
use hob_testkit::{PostgresServer, ScriptedEngine, TestDatabase};
use reqwest::Response;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixtures::{loopback_config, reached_from_network};
use crate::key_fixtures::{create_key, get, key_parts, key_service, post};
use crate::support::{TestServer, WAIT_LIMIT, plain_parts};

async fn watch(server: &TestServer, key: &str) -> Response {
    let request = server.client.get(server.url("/pages/live"));
    let request = if key.is_empty() { request } else { request.bearer_auth(key) };
    let response = request.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    response
}

/// The topics of the next event.
async fn next(stream: &mut Response) -> Value {
    let mut text = String::new();
    let reading = async {
        loop {
            let bytes = stream.chunk().await.unwrap().expect("another event");
            text += std::str::from_utf8(&bytes).unwrap();
            let event = text.split_terminator("\n\n").find(|event| event.starts_with("event: "));
            if let Some(event) = event.filter(|_| text.ends_with("\n\n")) {
                let data = event.strip_prefix("event: change\ndata: ").expect("a change");
                return serde_json::from_str::<Value>(data).unwrap()["topics"].clone();
            }
        }
    };
    tokio::time::timeout(WAIT_LIMIT, reading).await.expect("an event")
}

#[tokio::test]
async fn the_owner_hears_of_every_change_and_a_member_of_its_own() {
    let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
    let parts = key_parts(&home, &keys, plain_parts(Arc::new(ScriptedEngine::saying(&["hi"]))));
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let ana = create_key(&keys, "ana", KeyRole::Member, json!({})).await;
    let (mut owner, mut member) = (watch(&server, "").await, watch(&server, &ana).await);

    assert_eq!(post(&server, "/v1/keys", "", json!({ "name": "ben" })).await.0, 201);
    assert_eq!(next(&mut owner).await, json!(["keys"]));
    let task = json!({ "prompt": "hi", "schedule_type": "interval", "schedule_value": "31536000" });
    assert_eq!(post(&server, "/v1/tasks", &ana, task).await.0, 201);
    assert_eq!(next(&mut owner).await, json!(["tasks"]));
    assert_eq!(next(&mut member).await, json!(["tasks"]), "and not the keys, which are the owner's");
}

#[tokio::test]
async fn a_stranger_hears_of_nothing() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let refused = server.client.get(server.url("/pages/live")).send().await.unwrap();
    assert_eq!(refused.status(), 403);
}

#[tokio::test]
async fn a_key_has_a_limited_number_of_streams() {
    let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
    let parts = key_parts(&home, &keys, plain_parts(Arc::new(ScriptedEngine::saying(&["hi"]))));
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let ana = create_key(&keys, "ana", KeyRole::Member, json!({})).await;
    let ben = create_key(&keys, "ben", KeyRole::Member, json!({})).await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(watch(&server, &ana).await);
    }
    let (status, refused) = get(&server, "/pages/live", &ana).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("too_many_streams")), "{refused}");
    // Others have their own.
    watch(&server, &ben).await;
}

#[tokio::test]
async fn a_stream_ends_when_the_server_stops() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let stream = watch(&server, "").await;
    server.stop().await;
    tokio::time::timeout(WAIT_LIMIT, stream.text()).await.expect("the stream ends").unwrap();
}

/// One of several servers on the same database.
struct Replica {
    server: TestServer,
    keys: Arc<KeyService>,
    _home: TempDir,
}

impl Replica {
    async fn start(database: &TestDatabase) -> Self {
        let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
        let parts = key_parts(&home, &keys, plain_parts(Arc::new(ScriptedEngine::saying(&["hi"]))));
        let options = database.url().parse().unwrap();
        let shared = PostgresDatabase::new(options, &[hob_keys::POSTGRES_MIGRATIONS]).unwrap();
        let parts = ServerParts { shared_database: Some(shared), ..parts };
        let server = TestServer::start_parts(parts, loopback_config()).await;
        Replica { server, keys, _home: home }
    }

    /// Sends a request again and again: a server learns a moment later that another one has open pages.
    async fn repeat(&self, path: &str, key: &str, body: impl Fn(u32) -> Value) {
        for number in 0.. {
            assert_eq!(post(&self.server, path, key, body(number)).await.0, 201);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// The events up to the first one with this topic alone. Before it may come that everything may have changed, when the server begins to
/// listen.
async fn until_heard(stream: &mut Response, topic: &str) -> Vec<Value> {
    let mut heard = Vec::new();
    while heard.last() != Some(&json!([topic])) {
        heard.push(next(stream).await);
    }
    heard
}

#[tokio::test]
async fn pages_hear_of_changes_of_another_server_on_the_same_database() {
    let database = PostgresServer::shared().create_database();
    let (here, there) = (Replica::start(&database).await, Replica::start(&database).await);
    let ana = create_key(&here.keys, "ana", KeyRole::Member, json!({})).await;
    let ana_there = create_key(&there.keys, "ana", KeyRole::Member, json!({})).await;

    let mut owner = watch(&here.server, "").await;
    let heard = tokio::select! {
        () = there.repeat("/v1/keys", "", |number| json!({ "name": format!("key-{number}") })) => Vec::new(),
        heard = until_heard(&mut owner, "keys") => heard,
    };
    assert_eq!(heard.last(), Some(&json!(["keys"])));

    let mut member = watch(&here.server, &ana).await;
    let task = json!({ "prompt": "hi", "schedule_type": "interval", "schedule_value": "31536000" });
    let heard = tokio::select! {
        () = there.repeat("/v1/tasks", &ana_there, |_| task.clone()) => Vec::new(),
        heard = until_heard(&mut member, "tasks") => heard,
    };
    // The servers are connected by now, so that nothing else comes before it.
    assert!(!heard.contains(&json!(["keys"])), "the keys are the owner's: {heard:?}");
    assert_eq!(heard.last(), Some(&json!(["tasks"])));
}
