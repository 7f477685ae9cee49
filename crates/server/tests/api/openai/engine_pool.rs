//! Several engines behind one server, and the fallback model.

use std::sync::Arc;

use hob_app::{AskService, AskServiceParts};
use hob_core::Engine;
use hob_engines::{EnginePool, Fallback};
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use crate::client::asking;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, plain_parts};

fn engine(key: &str, models: &[&str]) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["hi"]).called(key).with_models(models))
}

/// vLLM is selected, Ollama is in the pool, and `small` is the fallback for the default model `large`.
async fn two_engines(vllm: &Arc<ScriptedEngine>, ollama: &Arc<ScriptedEngine>) -> TestServer {
    let shared = |engine: &Arc<ScriptedEngine>| Arc::clone(engine) as Arc<dyn Engine>;
    let system =
        AskService::new(AskServiceParts { default_model: Some("large".into()), ..plain_parts(shared(vllm)) });
    let pool = EnginePool::new(shared(vllm), vec![shared(ollama)]);
    let system = system.with_pool(Arc::new(pool)).with_fallback(Some(Fallback::new("small", None)));
    TestServer::start_parts(Arc::new(system), loopback_config()).await
}

fn header<'a>(response: &'a reqwest::Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn models_are_listed_with_the_engine_that_answers() {
    let (vllm, ollama) = (engine("vllm", &["large", "both"]), engine("ollama", &["both", "small"]));
    let server = two_engines(&vllm, &ollama).await;
    let get = async |path: &str| -> Value {
        server.client.get(server.url(path)).send().await.unwrap().json().await.unwrap()
    };
    let model =
        |id: &str, owner: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": owner });
    let mut default = model("large", "vllm");
    default["default"] = json!(true);
    let listed = [
        default,
        model("both", "vllm"),
        model("small", "ollama"),
        model("default", "hob"),
        model("auto", "hob"),
    ];
    assert_eq!(get("/v1/models").await, json!({ "object": "list", "data": listed }));
    assert_eq!(get("/v1/models/small").await, model("small", "ollama"));
    assert_eq!(get("/v1/models/tiny").await["error"]["code"], "model_not_found");

    for (model, owner) in [("large", "vllm"), ("both", "vllm"), ("small", "ollama")] {
        let response = server.chat(&asking(json!({ "model": model }))).await;
        assert_eq!((response.status().as_u16(), header(&response, "x-hob-engine")), (200, Some(owner)));
        assert_eq!(header(&response, "x-hob-warning"), None);
    }
    assert_eq!((vllm.requests().len(), ollama.requests().len()), (2, 1));
}

#[tokio::test]
async fn complete_answers_and_streams_report_the_fallback_model() {
    let (vllm, ollama) = (engine("vllm", &["large"]), engine("ollama", &["small"]));
    let server = two_engines(&vllm, &ollama).await;
    let response = server.chat(&asking(json!({ "model": "default" }))).await;
    assert_eq!((header(&response, "x-hob-engine"), header(&response, "x-hob-warning")), (Some("vllm"), None));

    vllm.set_gone(true);
    for stream in [false, true] {
        let response = server.chat(&asking(json!({ "model": "default", "stream": stream }))).await;
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "x-hob-engine"), Some("ollama"));
        assert_eq!(header(&response, "x-hob-warning"), Some("fallback-model"));
        let reason = header(&response, "x-hob-model-reason").unwrap().to_owned();
        assert!(
            reason.starts_with("small on ollama answers in place of large: cannot reach vllm"),
            "{reason}"
        );
        let body = response.text().await.unwrap();
        assert!(body.contains(r#""model":"small""#), "{body}");
    }
    // A caller that named the model gets the error of its engine.
    let response = server.chat(&asking(json!({ "model": "large" }))).await;
    assert_eq!(response.status(), 502);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], "engine_unreachable");
    assert!(body["error"]["message"].as_str().unwrap().contains("cannot reach vllm"), "{body}");
}
