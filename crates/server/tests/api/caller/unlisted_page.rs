//! What a stranger cannot do: send any field to the engine, let it fetch addresses, spend the owner's money.
//!
//! The stranger here is a web page that the configuration does not list, in a browser on this machine.

use std::sync::Arc;

use hob_app::AskService;
use hob_config::ServerConfig;
use hob_core::Engine;
use hob_engines::EnginePool;
use hob_testkit::ScriptedEngine;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::client::asking;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, plain_parts};

struct ServerWithCloud {
    http: TestServer,
    engine: Arc<ScriptedEngine>,
    cloud: Arc<ScriptedEngine>,
}

impl ServerWithCloud {
    /// A local engine, and the cloud.
    async fn open() -> Self {
        let engine = Arc::new(ScriptedEngine::saying(&["hi"]).called("vllm"));
        let cloud = Arc::new(ScriptedEngine::saying(&["hi"]).called("cloud").with_models(&["gpt-5.2"]));
        let shared = |engine: &Arc<ScriptedEngine>| Arc::clone(engine) as Arc<dyn Engine>;
        let system = AskService::new(plain_parts(shared(&engine)));
        let system = system.with_pool(Arc::new(EnginePool::new(shared(&engine), vec![shared(&cloud)])));
        let config = ServerConfig { cors_origins: vec!["*".into()], ..loopback_config() };
        ServerWithCloud { http: TestServer::start_parts(Arc::new(system), config).await, engine, cloud }
    }

    async fn stranger(&self, method: Method, path: &str, body: Option<&Value>) -> Response {
        let request = self.http.client.request(method, self.http.url(path));
        let request = request.header("origin", "https://evil.example");
        match body {
            Some(body) => request.json(body),
            None => request,
        }
        .send()
        .await
        .unwrap()
    }

    async fn strangers_chat(&self, fields: Value) -> Response {
        self.stranger(Method::POST, "/v1/chat/completions", Some(&asking(fields))).await
    }
}

fn ignored(response: &Response) -> Vec<&str> {
    response.headers().get_all("x-hob-warning").iter().map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test]
async fn unknown_fields_of_a_stranger_are_dropped_and_named() {
    let server = ServerWithCloud::open().await;
    for stream in [false, true] {
        let fields =
            json!({ "stream": stream, "api_base": "http://evil.example", "num_ctx": 9, "user": "ann" });
        let answer = server.strangers_chat(fields).await;
        assert_eq!(
            (answer.status().as_u16(), ignored(&answer)),
            (200, vec!["ignored=api_base", "ignored=num_ctx"])
        );
        answer.bytes().await.unwrap();
    }
    for request in server.engine.requests() {
        assert_eq!(request.extra.keys().collect::<Vec<_>>(), ["user"]);
    }
    let owner = server.http.chat(&asking(json!({ "num_ctx": 9 }))).await;
    assert_eq!(ignored(&owner), [""; 0]);
    assert_eq!(server.engine.requests()[2].extra["num_ctx"], 9);
}

#[tokio::test]
async fn an_image_url_of_a_stranger_is_refused_by_field() {
    let server = ServerWithCloud::open().await;
    let showing = |url: &str| {
        let parts = json!([{ "type": "text", "text": "what is this?" }, { "type": "image_url", "image_url": { "url": url } }]);
        json!({ "messages": [{ "role": "user", "content": parts }] })
    };
    for url in
        ["http://169.254.169.254/latest/meta-data/", "https://example.org/cat.png", "file:///etc/passwd"]
    {
        let refused = server.strangers_chat(showing(url)).await;
        assert_eq!(refused.status(), 400);
        let body: Value = refused.json().await.unwrap();
        assert_eq!(body["error"]["param"], "messages[0].content[1].image_url", "{url}");
    }
    assert_eq!(server.engine.requests(), []);
    let inline = server.strangers_chat(showing("data:image/png;base64,AAAA")).await;
    assert_eq!(inline.status(), 200);
}

#[tokio::test]
async fn only_the_owner_may_use_the_cloud() {
    let server = ServerWithCloud::open().await;
    for stream in [false, true] {
        let refused = server.strangers_chat(json!({ "model": "gpt-5.2", "stream": stream })).await;
        assert_eq!(refused.status(), 403);
        let body: Value = refused.json().await.unwrap();
        assert_eq!(
            (&body["error"]["code"], &body["error"]["type"], &body["error"]["param"]),
            (&json!("cloud_not_allowed"), &json!("permission_error"), &json!("model"))
        );
    }
    let body = json!({ "model": "gpt-5.2", "input": "a" });
    let refused = server.stranger(Method::POST, "/v1/embeddings", Some(&body)).await;
    assert_eq!(refused.status(), 403);
    assert_eq!((server.cloud.requests().len(), server.cloud.embed_requests().len()), (0, 0));

    let ids = |models: Value| -> Vec<String> {
        let id = |model: &Value| model["id"].as_str().unwrap().to_owned();
        let of_engines = |model: &&Value| model["owned_by"] != "hob";
        models["data"].as_array().unwrap().iter().filter(of_engines).map(id).collect()
    };
    let listed = server.stranger(Method::GET, "/v1/models", None).await.json().await.unwrap();
    assert_eq!(ids(listed), ["m"]);
    assert_eq!(server.stranger(Method::GET, "/v1/models/gpt-5.2", None).await.status(), 404);
    let listed = server.http.client.get(server.http.url("/v1/models")).send().await.unwrap();
    assert_eq!(ids(listed.json().await.unwrap()), ["m", "gpt-5.2"]);
    assert_eq!(server.http.chat(&asking(json!({ "model": "gpt-5.2" }))).await.status(), 200);
}
