//! `GET /v1/model-files`, `GET /v1/model-files/search` and `GET /v1/model-files/downloads`.

use std::sync::{Arc, Mutex};

use hob_app::{AskService, ModelManagement};
use hob_config::{Config, Environment};
use hob_core::Engine;
use hob_engines::pool::EnginePool;
use hob_engines::{Endpoint, EndpointOptions, Ollama};
use hob_server::{ServerParts, ServerSettings};
use hob_testkit::{FakeServer, Hold, Reply};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::openapi::{assert_fits, document_of};
use crate::fixtures::loopback_config;
use crate::key_fixtures::get;
use crate::support::{TestServer, plain_parts};

/// What Ollama says is in memory.
const RUNNING: &str = r#"{"models":[{"name":"qwen2:0.5b","model":"qwen2:0.5b","size":900,"size_vram":300,"expires_at":"2026-11-16T20:00:00Z"}]}"#;

/// The models of Ollama, with their sizes.
const TAGS: [(&str, u64); 2] = [("qwen2:0.5b", 352_151_968), ("nomic-embed-text:latest", 274_302_450)];

/// A server with an Ollama, which can download models, and a model hub that finds one repository.
pub struct ModelServer {
    pub http: TestServer,
    pub ollama: FakeServer,
    tags: Arc<Mutex<Vec<(String, u64)>>>,
    _hub: FakeServer,
    /// With `config.toml`.
    pub home: TempDir,
}

impl ModelServer {
    /// `pull` is what Ollama says of a download.
    pub async fn start(pull: impl Fn() -> Reply + Send + Sync + 'static) -> Self {
        let tags = Arc::new(Mutex::new(TAGS.map(|(name, size)| (name.to_owned(), size)).to_vec()));
        let listed = Arc::clone(&tags);
        let ollama = FakeServer::start(move |request| match request.path.as_str() {
            "/api/tags" => {
                let tag = |(name, size): &(String, u64)| {
                    let family = if name.starts_with("nomic") { "nomic-bert" } else { "qwen2" };
                    json!({ "name": name, "model": name, "size": size, "details": { "family": family } })
                };
                let models: Vec<Value> = listed.lock().unwrap().iter().map(tag).collect();
                Reply::json(200, json!({ "models": models }).to_string())
            }
            "/api/ps" => Reply::json(200, RUNNING),
            "/api/pull" => pull(),
            _ => Reply::json(200, "{}"),
        })
        .await;
        let hub = FakeServer::start(|_| {
            Reply::json(200, r#"[{"id":"someone/Tiny-GGUF","downloads":12,"tags":["gguf","license:mit"]}]"#)
        })
        .await;
        let mut config = Config::default();
        config.engine.ollama.host = ollama.url();
        config.hub.endpoint = Some(hub.url());
        let home = TempDir::new().unwrap();
        let engine: Arc<dyn Engine> =
            Arc::new(Ollama::new(Endpoint::new(EndpointOptions::new("ollama", ollama.url())).unwrap()));
        let pool = Arc::new(EnginePool::new(Arc::clone(&engine), Vec::new()));
        let models = ModelManagement::open(&config, home.path(), Arc::clone(&pool)).unwrap();
        let system = Arc::new(AskService::new(plain_parts(engine)).with_pool(pool));
        let settings = home.path().to_owned().into_os_string();
        let environment =
            Environment::from_lookup(move |name| (name == "HOB_HOME").then(|| settings.clone()));
        let parts = ServerParts {
            model_management: Some(Arc::new(models)),
            settings: Some(Arc::new(ServerSettings::new(environment))),
            ..ServerParts::from(system)
        };
        let http = TestServer::start_parts(parts, loopback_config()).await;
        ModelServer { http, ollama, tags, _hub: hub, home }
    }

    /// Ollama has one more model from now on.
    pub fn add_tag(&self, name: &str) {
        self.tags.lock().unwrap().push((name.to_owned(), 1_000_000));
    }
}

#[tokio::test]
async fn the_list_says_what_is_loaded_where() {
    let server = ModelServer::start(|| Reply::json(200, "{}")).await;
    let (status, list) = get(&server.http, "/v1/model-files", "").await;
    assert_eq!(status, 200, "{list}");
    assert_fits(&document_of(&server.http).await, "ModelFiles", &list);
    let shown = |model: &Value| json!([model["id"], model["engine"], model["can_delete"], model["size"]]);
    let models: Vec<Value> = list["data"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(
        models,
        [
            json!(["qwen2:0.5b", "ollama", true, 352_151_968]),
            json!(["nomic-embed-text:latest", "ollama", true, 274_302_450])
        ]
    );
    let loaded = json!([{
        "host": server.ollama.url(), "memory": 900, "memory_on_cards": 300, "expires_at": "2026-11-16T20:00:00Z", "devices": [],
    }]);
    assert_eq!((&list["data"][0]["loaded"], &list["data"][1]["loaded"]), (&loaded, &json!([])));
    assert_eq!(list["engines"][0]["address"], json!(server.ollama.url()));
}

#[tokio::test]
async fn a_download_of_one_client_is_listed_for_all_until_it_ends() {
    let hold = Hold::new();
    let held = hold.clone();
    let server = ModelServer::start(move || {
        let begun = "{\"status\":\"pulling abc\",\"total\":10,\"completed\":4}\n";
        Reply::ndjson(begun).then_held(&held, "{\"status\":\"success\"}\n")
    })
    .await;
    let path = "/v1/model-files/downloads";
    assert_eq!(get(&server.http, path, "").await.1["data"], json!([]));
    let request = server.http.client.post(server.http.url("/api/pull")).json(&json!({ "model": "tiny" }));
    let mut pulling = request.send().await.unwrap();
    pulling.chunk().await.unwrap().expect("the first step");
    let (status, list) = get(&server.http, path, "").await;
    assert_eq!(status, 200, "{list}");
    assert_fits(&document_of(&server.http).await, "ModelDownloads", &list);
    let expected = json!([{ "model": "tiny", "status": "pulling abc", "total": 10, "completed": 4 }]);
    assert_eq!(list["data"], expected);
    hold.release();
    while pulling.chunk().await.unwrap().is_some() {}
    assert_eq!(get(&server.http, path, "").await.1["data"], json!([]));
}

#[tokio::test]
async fn a_search_has_the_built_in_list_and_the_hub() {
    let server = ModelServer::start(|| Reply::json(200, "{}")).await;
    let document = document_of(&server.http).await;
    let (status, all) = get(&server.http, "/v1/model-files/search", "").await;
    assert_eq!(status, 200, "{all}");
    assert_fits(&document, "ModelSearch", &all);
    let names = |list: &Value| -> Vec<String> {
        let data = list["data"].as_array().unwrap();
        data.iter().map(|found| found["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(
        names(&all).contains(&"qwen3:8b".to_owned()) && !names(&all).contains(&"hf:someone/Tiny-GGUF".into())
    );
    let (_, found) = get(&server.http, "/v1/model-files/search?query=qwen3%20tools", "").await;
    assert_fits(&document, "ModelSearch", &found);
    let found = names(&found);
    assert!(found.contains(&"qwen3:8b".to_owned()), "{found:?}");
    assert_eq!(found.last().map(String::as_str), Some("hf:someone/Tiny-GGUF"));
    let (status, error) =
        get(&server.http, &format!("/v1/model-files/search?query={}", "x".repeat(201)), "").await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("query")));
}
