//! `model: "auto"`, why a model answers, and what people say of answers.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::Engine;
use hob_system::startup::routing::open_router_book;
use hob_system::{PolicyName, Record, Router, System, SystemParts};
use hob_testkit::ScriptedEngine;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents::{at_home, parts, seen_from_outside};
use crate::openapi::{assert_fits, document_of};
use crate::support::Running;

const REASON: &str = "x-hob-model-reason";

struct House {
    _home: TempDir,
    server: Running,
}

impl House {
    async fn open(config: ServerConfig) -> Self {
        Self::open_with(config, None).await
    }

    /// The same with a default model.
    async fn open_with(config: ServerConfig, default_model: Option<&str>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let engine = ScriptedEngine::saying(&["Hel", "lo"])
            .with_models(&["large:70b", "small:1b"])
            .with_embedding_models(&["vectors:1m"]);
        let default_model = default_model.map(str::to_owned);
        let system = System::new(SystemParts { default_model, ..parts(Arc::new(engine) as Arc<dyn Engine>) });
        let book = open_router_book(home.path(), Record::default());
        let system = Arc::new(system.with_router(Router::new(PolicyName::Heuristic, book)));
        House { _home: home, server: Running::start_parts(system, config).await }
    }

    async fn ask(&self, body: Value) -> Response {
        self.server.chat(&body).await
    }

    async fn get(&self, path: &str) -> Response {
        self.server.client.get(self.server.url(path)).send().await.unwrap()
    }

    async fn rate(&self, body: &Value) -> (StatusCode, Value) {
        let url = self.server.url("/v1/feedback");
        let response = self.server.client.post(url).json(body).send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }
}

fn question(model: &str, text: &str, stream: bool) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": text }], "stream": stream })
}

#[tokio::test]
async fn whole_answers_and_streams_say_which_model_answered_and_why() {
    let house = House::open(at_home()).await;
    let whole = house.ask(question("auto", "Hello", false)).await;
    let why = "heuristic: the question is short and plain, so the smallest of 2 models";
    assert_eq!((whole.status(), whole.headers()[REASON].to_str().unwrap()), (StatusCode::OK, why));
    assert_eq!(whole.json::<Value>().await.unwrap()["model"], "small:1b");

    let stream = house.ask(question("auto", "What is 17 * 23?", true)).await;
    let why = "heuristic: it is about mathematics, so the largest of 2 models";
    assert_eq!((stream.status(), stream.headers()[REASON].to_str().unwrap()), (StatusCode::OK, why));
    let body = stream.text().await.unwrap();
    assert!(body.contains(r#""model":"large:70b""#) && body.ends_with("data: [DONE]\n\n"), "{body}");
}

#[tokio::test]
async fn who_names_a_model_gets_it_without_a_word() {
    let house = House::open(at_home()).await;
    for stream in [false, true] {
        let answer = house.ask(question("large:70b", "Hello", stream)).await;
        assert_eq!(answer.headers().get(REASON), None);
        assert!(answer.text().await.unwrap().contains("large:70b"));
    }
}

#[tokio::test]
async fn where_there_is_nothing_to_choose_the_error_says_so() {
    let engine = ScriptedEngine::saying(&[]).with_models(&["nomic-embed-text"]);
    let server = Running::start(Arc::new(engine)).await;
    let refused = server.chat(&question("auto", "Hello", false)).await;
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(
        (&body["error"]["code"], &body["error"]["param"]),
        (&json!("model_not_found"), &json!("model"))
    );
    assert!(body["detail"].as_str().unwrap().starts_with("'auto' leaves the choice"), "{body}");
}

#[tokio::test]
async fn where_auto_is_the_default_those_who_choose_from_the_list_find_it() {
    let house = House::open_with(at_home(), Some("auto")).await;
    let models = house.get("/v1/models").await.json::<Value>().await.unwrap();
    let auto = json!({ "id": "auto", "object": "model", "created": 0, "owned_by": "hob", "default": true });
    assert_eq!(models["data"].as_array().unwrap().last(), Some(&auto));
    assert_eq!(house.get("/v1/models/auto").await.json::<Value>().await.unwrap(), auto);
    let answer = house.ask(question("auto", "Hello", false)).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["model"], "small:1b");
}

#[tokio::test]
async fn where_it_is_not_the_list_is_that_of_the_engine() {
    let house = House::open(at_home()).await;
    let models = house.get("/v1/models").await.json::<Value>().await.unwrap();
    let ids: Vec<&Value> = models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["vectors:1m", "large:70b", "small:1b"]);
    // Who asks for it by name is told of it, because requests may name it.
    let auto = json!({ "id": "auto", "object": "model", "created": 0, "owned_by": "hob" });
    assert_eq!(house.get("/v1/models/auto").await.json::<Value>().await.unwrap(), auto);
}

#[tokio::test]
async fn a_model_of_that_name_is_listed_as_what_it_is() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["auto", "small:1b"]);
    let parts = SystemParts { default_model: Some("auto".to_owned()), ..parts(Arc::new(engine)) };
    let server = Running::start_system(parts, at_home()).await;
    let models: Value =
        server.client.get(server.url("/v1/models")).send().await.unwrap().json().await.unwrap();
    let owners: Vec<(&Value, &Value)> =
        models["data"].as_array().unwrap().iter().map(|model| (&model["id"], &model["owned_by"])).collect();
    assert_eq!(owners, [(&json!("auto"), &json!("scripted")), (&json!("small:1b"), &json!("scripted"))]);
}

#[tokio::test]
async fn an_answer_is_rated_by_its_id() {
    let house = House::open(at_home()).await;
    let document = document_of(&house.server).await;
    let answer: Value = house.ask(question("auto", "Hello", false)).await.json().await.unwrap();
    let rating = json!({ "id": answer["id"], "rating": "good" });
    assert_fits(&document, "FeedbackRequest", &rating);
    let (status, rated) = house.rate(&rating).await;
    assert_eq!(status, StatusCode::OK, "{rated}");
    assert_fits(&document, "Feedback", &rated);
    let expected = json!({
        "id": answer["id"],
        "rating": "good",
        "model": "small:1b",
        "engine": "scripted",
        "learnt": true,
    });
    assert_eq!(rated, expected);
}

#[tokio::test]
async fn a_rating_that_makes_no_sense_is_refused_by_its_field() {
    let house = House::open(at_home()).await;
    for (body, status, param) in [
        (json!({ "rating": "good" }), 400, "id"),
        (json!({ "id": "", "rating": "good" }), 400, "id"),
        (json!({ "id": "chatcmpl-1" }), 400, "rating"),
        (json!({ "id": "chatcmpl-1", "rating": "splendid" }), 400, "rating"),
        (json!({ "id": 7, "rating": "good" }), 400, "id"),
        (json!({ "id": "chatcmpl-1", "rating": "good" }), 404, "id"),
        (json!({ "id": "x".repeat(1_000_000), "rating": "bad" }), 404, "id"),
    ] {
        let (found, error) = house.rate(&body).await;
        assert_eq!((found.as_u16(), &error["error"]["param"]), (status, &json!(param)), "{error}");
        assert!(error.to_string().len() < 1000);
    }
}

#[tokio::test]
async fn strangers_do_not_rate() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = seen_from_outside(&engine, ServerConfig::default()).await;
    let rating = json!({ "id": "chatcmpl-1", "rating": "bad" });
    let refused = server.client.post(server.url("/v1/feedback")).json(&rating).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
}
