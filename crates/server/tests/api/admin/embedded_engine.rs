//! `/v1/engines/embedded`: the embedded engine answers without a restart.

use std::path::Path;
use std::sync::Arc;

use hob_app::startup::telemetry::telemetry_options;
use hob_app::{
    AskService, AskServiceParts, EmbeddedEngine, EmbeddedEngineParts, ModelManagement, hob_database,
};
use hob_config::{Config, Environment};
use hob_core::Engine;
use hob_engines::Style;
use hob_engines::pool::EnginePool;
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_server::{ServerParts, ServerSettings};
use hob_telemetry::TelemetryService;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine, part};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::openapi::{assert_fits, document_of};
use crate::client::{asking, chunk};
use crate::fixtures::loopback_config;
use crate::key_fixtures::{get, post};
use crate::support::{FINISH, TestServer, engine_at, models, plain_parts};

const PATH: &str = "/v1/engines/embedded";

/// A server whose engine `scripted` is away, with `config.toml`, and with an embedded engine that it can open.
pub struct EngineServer {
    pub home: TempDir,
    pub http: TestServer,
    pub record: TelemetryService,
}

impl EngineServer {
    pub async fn start(engine: Arc<dyn Engine>, inside: Option<Arc<dyn Engine>>) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), engine, inside).await
    }

    pub async fn start_in(home: TempDir, engine: Arc<dyn Engine>, inside: Option<Arc<dyn Engine>>) -> Self {
        let config = Config::default();
        let record = TelemetryService::open(&telemetry_options(&config), hob_database(home.path()));
        let pool = Arc::new(EnginePool::new(Arc::clone(&engine), Vec::new()));
        let models = ModelManagement::open(&config, home.path(), Arc::clone(&pool)).unwrap();
        let models = Arc::new(models.offline());
        let parts = AskServiceParts { log: Arc::new(record.clone()), ..plain_parts(engine) };
        let system = Arc::new(AskService::new(parts).with_pool(pool));
        let embedded = EmbeddedEngine::new(EmbeddedEngineParts {
            system: Arc::clone(&system),
            model_management: Arc::clone(&models),
            engine: inside,
            only: None,
        });
        let path = home.path().as_os_str().to_owned();
        let environment: Environment = [("HOB_HOME", path)].into_iter().collect();
        let parts = ServerParts {
            model_management: Some(models),
            embedded: Some(Arc::new(embedded)),
            record: record.clone(),
            settings: Some(Arc::new(ServerSettings::new(environment))),
            ..ServerParts::from(system)
        };
        let http = TestServer::start_parts(parts, loopback_config()).await;
        EngineServer { home, http, record }
    }

    /// The lines of the answer to a choice.
    async fn choose(&self, model: &str) -> Vec<Value> {
        let request = self.http.client.post(self.http.url(PATH)).json(&json!({ "model": model }));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
        let text = answer.text().await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn ask(&self) -> (u16, Value) {
        let answer = self.http.chat(&asking(json!({ "model": "default", "max_tokens": 4 }))).await;
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    pub fn settings(&self) -> String {
        std::fs::read_to_string(self.home.path().join("config.toml")).unwrap_or_default()
    }
}

pub fn engine_that_is_away() -> Arc<ScriptedEngine> {
    let engine = Arc::new(ScriptedEngine::saying(&["from outside"]).with_models(&["outer"]));
    engine.set_gone(true);
    engine
}

pub fn engine_inside() -> Arc<ScriptedEngine> {
    let engine = ScriptedEngine::saying(&["from ", "inside"]).called("embedded");
    Arc::new(engine.with_models(&["tiny", "small"]).with_embedding_models(&["vectors"]))
}

/// As the engine that a server can open.
pub fn offered(engine: &Arc<ScriptedEngine>) -> Option<Arc<dyn Engine>> {
    Some(Arc::clone(engine) as Arc<dyn Engine>)
}

#[tokio::test]
async fn the_first_question_is_answered_without_a_restart() {
    let (away, inside) = (engine_that_is_away(), engine_inside());
    let home = tempfile::tempdir().unwrap();
    let before = "# Mine.\n[intelligence]\ndefault_model = \"outer\"\n";
    std::fs::write(home.path().join("config.toml"), before).unwrap();
    let server = EngineServer::start_in(home, away, offered(&inside)).await;
    let (status, state) = get(&server.http, PATH, "").await;
    assert_eq!(status, 200, "{state}");
    let document = document_of(&server.http).await;
    assert_fits(&document, "EmbeddedEngine", &state);
    let expected = json!({
        "object": "engine",
        "key": "embedded",
        "included": true,
        "selected": false,
        "problem": null,
        "models": [{ "id": "tiny", "size": null }, { "id": "small", "size": null }],
    });
    assert_eq!(state, expected);
    assert_eq!(server.ask().await.0, 502, "no engine answers yet");

    let steps = server.choose("small").await;
    assert_eq!(steps, [json!({ "status": "loading small" }), json!({ "status": "success" })]);
    for step in &steps {
        assert_fits(&document, "OllamaProgress", step);
    }
    let (status, answer) = server.ask().await;
    assert_eq!((status, &answer["model"]), (200, &json!("small")), "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "from inside");
    let (_, list) = get(&server.http, "/v1/models", "").await;
    let default = list["data"].as_array().unwrap().iter().find(|model| model["default"] == true).unwrap();
    assert_eq!((&default["id"], &default["owned_by"]), (&json!("small"), &json!("embedded")), "{list}");
    assert_eq!(get(&server.http, "/health", "").await.0, 200);
    let (_, savings) = get(&server.http, "/v1/savings", "").await;
    assert_eq!(
        (&savings["engine"]["key"], &savings["engine"]["healthy"]),
        (&json!("embedded"), &json!(true))
    );
    assert_eq!(get(&server.http, PATH, "").await.1["selected"], true);
    // After a restart the same engine and model answer.
    let written = server.settings();
    assert!(written.starts_with("# Mine.\n"), "{written}");
    assert!(written.contains("default_model = \"small\""), "{written}");
    assert!(written.contains("default = \"embedded\""), "{written}");
}

#[tokio::test]
async fn a_choice_that_fails_leaves_the_server_as_it_was() {
    let (away, inside) = (engine_that_is_away(), engine_inside());
    let server = EngineServer::start(Arc::clone(&away) as _, offered(&inside)).await;
    inside.set_load_failure(Some(
        "the model 'tiny' needs 9.0 GB of memory, but the limit for models is 4.0 GB.",
    ));
    let steps = server.choose("tiny").await;
    let message = steps.last().unwrap()["error"].as_str().unwrap();
    assert!(message.starts_with("'tiny' cannot be loaded: the model 'tiny' needs 9.0 GB"), "{message}");
    let steps = server.choose("vectors").await;
    assert!(steps.last().unwrap()["error"].as_str().unwrap().contains("writes no answers"), "{steps:?}");
    let (status, refused) = post(&server.http, PATH, "", json!({ "model": "no-such-model" })).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")), "{refused}");
    // A download that fails: this server has no network.
    let steps = server.choose("qwen3:0.6b").await;
    assert!(steps.last().unwrap()["error"].as_str().unwrap().contains("needs the network"), "{steps:?}");
    let (status, refused) = post(&server.http, PATH, "", json!({ "model": "x".repeat(1_000) })).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("model")), "{refused}");
    assert_eq!(post(&server.http, PATH, "", json!({})).await.0, 400);
    // A file that cannot be changed.
    inside.set_load_failure(None);
    std::fs::write(server.home.path().join("config.toml"), "this is no configuration").unwrap();
    let steps = server.choose("tiny").await;
    assert!(steps.last().unwrap()["error"].is_string(), "{steps:?}");
    std::fs::remove_file(server.home.path().join("config.toml")).unwrap();

    assert_eq!(get(&server.http, PATH, "").await.1["selected"], false);
    assert_eq!(server.settings(), "");
    away.set_gone(false);
    let (_, answer) = server.ask().await;
    assert_eq!(answer["choices"][0]["message"]["content"], "from outside", "{answer}");
}

#[tokio::test]
async fn two_choices_at_once_take_turns() {
    let inside = engine_inside();
    let server = EngineServer::start(engine_that_is_away(), offered(&inside)).await;
    let (one, two) = tokio::join!(server.choose("tiny"), server.choose("small"));
    for steps in [one, two] {
        assert_eq!(steps.last().unwrap(), &json!({ "status": "success" }));
    }
    let last = inside.loaded().pop().unwrap();
    let (_, answer) = server.ask().await;
    assert_eq!(format!("load {}", answer["model"].as_str().unwrap()), last, "the later choice holds");
    let (_, files) = get(&server.http, "/v1/model-files", "").await;
    let engines: Vec<&Value> = files["engines"].as_array().unwrap().iter().map(|one| &one["key"]).collect();
    assert_eq!(engines, ["embedded", "scripted"]);
}

#[tokio::test]
async fn an_answer_in_progress_keeps_its_engine() {
    let hold = Hold::new();
    let held = hold.clone();
    let fake = FakeServer::start(move |request| {
        if request.method == "GET" {
            return models();
        }
        let words = |text: &str| chunk(&json!({ "content": text }).to_string());
        Reply::sse(words("It is bl")).then_held(&held, words("ue.") + FINISH)
    })
    .await;
    let outside = engine_at(&fake, Style::VLLM);
    let server = EngineServer::start(outside, offered(&engine_inside())).await;
    let mut running = server.http.chat(&asking(json!({ "model": "default", "stream": true }))).await;
    let mut text = String::new();
    while !text.contains("It is bl") {
        text += std::str::from_utf8(&running.chunk().await.unwrap().unwrap()).unwrap();
    }
    assert_eq!(server.choose("tiny").await.last().unwrap(), &json!({ "status": "success" }));
    let (_, answer) = server.ask().await;
    assert_eq!(answer["choices"][0]["message"]["content"], "from inside", "{answer}");
    hold.release();
    text += &running.text().await.unwrap();
    assert!(text.contains("ue.") && text.ends_with("data: [DONE]\n\n"), "{text}");
}

#[tokio::test]
async fn a_build_without_the_engine_says_so() {
    let server = EngineServer::start(engine_that_is_away(), None).await;
    let (status, state) = get(&server.http, PATH, "").await;
    assert_eq!((status, &state["included"]), (200, &json!(false)), "{state}");
    assert_fits(&document_of(&server.http).await, "EmbeddedEngine", &state);
    assert!(state["problem"].as_str().unwrap().contains("built without"), "{state}");
    let (status, refused) = post(&server.http, PATH, "", json!({ "model": "tiny" })).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("library_refused")), "{refused}");
}

fn put_model(directory: &Path, name: &str) {
    let (file, path) = (part("HOB_TEST_SHORT_MODEL"), directory.join(name));
    std::fs::hard_link(&file, &path).or_else(|_| std::fs::copy(&file, &path).map(drop)).unwrap();
}

#[tokio::test]
async fn a_real_model_of_the_disk_answers_and_a_broken_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("models");
    std::fs::create_dir(&directory).unwrap();
    put_model(&directory, "good.gguf");
    std::fs::write(directory.join("broken.gguf"), "GGUF and then nothing").unwrap();
    let options = LlamaOptions { threads: 1, ..LlamaOptions::new(&directory) };
    let inside: Arc<dyn Engine> = Arc::new(LlamaEngine::new(options));
    let server = EngineServer::start_in(home, engine_that_is_away(), Some(inside)).await;
    let (_, state) = get(&server.http, PATH, "").await;
    let ids: Vec<&Value> = state["models"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["good"], "{state}");
    let steps = server.choose("broken").await;
    assert!(steps.last().unwrap()["error"].is_string(), "{steps:?}");
    assert_eq!(get(&server.http, PATH, "").await.1["selected"], false);
    assert_eq!(server.choose("good").await.last().unwrap(), &json!({ "status": "success" }));
    let (status, answer) = server.ask().await;
    assert_eq!((status, &answer["model"]), (200, &json!("good")), "{answer}");
}
