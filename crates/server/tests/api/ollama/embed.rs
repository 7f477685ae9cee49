//! `POST /api/embed` and `POST /api/embeddings`.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use hob_app::AskService;
use hob_config::ServerConfig;
use hob_core::{
    Cut, EmbedInputs, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation,
    GenerationStream, ModelInfo, Overlong,
};
use hob_memory::Embedder;
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::{object, post, server, timeless, warnings};
use crate::fixtures::{loopback_config, parts_reached_from_network};
use crate::support::{TestServer, WAIT_LIMIT, plain_parts};

fn engine() -> ScriptedEngine {
    ScriptedEngine::saying(&["hi"]).with_embedding_models(&["e"])
}

#[tokio::test]
async fn texts_become_vectors_of_length_one_in_their_order() {
    let (server, engine) = server(engine()).await;
    let body = json!({ "model": "e:latest", "input": ["two words", "one"], "dimensions": 3, "keep_alive": "5m", "options": { "num_ctx": 9 } });
    let response = post(&server, "/api/embed", &body).await;
    assert_eq!(warnings(&response), ["ignored=options.num_ctx", "ignored=keep_alive"]);
    let (status, answer) = object(response).await;
    assert_eq!(status, 200, "{answer}");
    for vector in answer["embeddings"].as_array().unwrap() {
        let length: f64 =
            vector.as_array().unwrap().iter().map(|number| number.as_f64().unwrap().powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-6, "{vector}");
    }
    let mut rest = timeless(answer);
    rest["embeddings"] = json!([]);
    assert_eq!(
        rest,
        json!({ "model": "e:latest", "embeddings": [], "total_duration": 0, "load_duration": 0, "prompt_eval_count": 3 })
    );
    let asked = EmbedRequest {
        model: "e".into(),
        inputs: EmbedInputs::Texts(vec!["two words".into(), "one".into()]),
        dimensions: Some(3),
        overlong: Overlong::Cut,
    };
    assert_eq!(engine.embed_requests(), [asked]);
}

#[tokio::test]
async fn the_answer_names_the_model_that_default_stands_for() {
    let engine: Arc<dyn Engine> = Arc::new(engine());
    let embedder = Embedder { engine: Arc::clone(&engine), model: "e".into() };
    let system = AskService::new(plain_parts(engine)).with_embedder(Some(embedder));
    let server = TestServer::start_parts(Arc::new(system), loopback_config()).await;
    let body = json!({ "model": "default", "input": "x" });
    let (status, answer) = object(post(&server, "/api/embed", &body).await).await;
    assert_eq!((status, &answer["model"]), (200, &json!("e")));
}

#[tokio::test]
async fn a_text_that_is_too_long_is_cut_unless_the_caller_says_no() {
    let (server, engine) = server(engine()).await;
    for (truncate, overlong) in
        [(json!(null), Overlong::Cut), (json!(true), Overlong::Cut), (json!(false), Overlong::Refuse)]
    {
        post(&server, "/api/embed", &json!({ "model": "e", "input": "x", "truncate": truncate })).await;
        assert_eq!(engine.embed_requests().last().unwrap().overlong, overlong, "{truncate}");
    }
}

#[tokio::test]
async fn many_texts_are_embedded_in_parts_and_answered_at_once() {
    let (server, engine) = server(engine()).await;
    let texts: Vec<String> = (0..5_000).map(|number| "x".repeat(1 + number % 7)).collect();
    let body = json!({ "model": "e", "input": texts });
    let (status, answer) = object(post(&server, "/api/embed", &body).await).await;
    assert_eq!((status, &answer["prompt_eval_count"]), (200, &json!(5_000)));
    let parts: Vec<usize> = engine.embed_requests().iter().map(|request| request.inputs.len()).collect();
    assert_eq!(parts, [2_048, 2_048, 904]);
    let vectors = answer["embeddings"].as_array().unwrap();
    assert_eq!(vectors.len(), 5_000);
    // The first number grows with the length of the text.
    for (number, vector) in vectors.iter().enumerate() {
        assert_eq!(*vector, vectors[number % 7], "{number}");
    }
    assert_ne!(vectors[0], vectors[1]);
}

/// An engine with long vectors. Its answers to the first parts of several requests come at the same time.
struct LongVectors {
    scripted: ScriptedEngine,
    first_parts: Barrier,
}

#[async_trait]
impl Engine for LongVectors {
    fn key(&self) -> &str {
        "long"
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.scripted.generate(request).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.scripted.stream(request).await
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let count = request.inputs.len();
        if count == 2_048 {
            self.first_parts.wait().await;
        }
        Ok(Embeddings {
            model: request.model.clone(),
            vectors: vec![vec![1.0; 132]; count],
            prompt_tokens: None,
            cut: Cut::NONE,
            load_time: None,
        })
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.scripted.list_models().await
    }

    async fn health(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn large_requests_in_parts_do_not_wait_for_each_other() {
    // The bodies of four requests take nearly all that one address can use. The vectors of none of them fit into the rest.
    const REQUESTS: usize = 4;
    let engine = LongVectors { scripted: engine(), first_parts: Barrier::new(REQUESTS) };
    let config = ServerConfig { max_body_mb: 2, queue_timeout: WAIT_LIMIT, ..ServerConfig::default() };
    let system = Arc::new(AskService::new(plain_parts(Arc::new(engine))));
    let server = parts_reached_from_network(system, config).await;
    let body = json!({ "model": "e", "input": vec!["x".repeat(1_000); 2_049] });
    let answers = join_all((0..REQUESTS).map(|_| async {
        let (status, answer) = object(post(&server, "/api/embed", &body).await).await;
        (status, answer["embeddings"].as_array().map(Vec::len))
    }));
    assert_eq!(answers.await, [(200, Some(2_049)); REQUESTS]);
}

#[tokio::test]
async fn the_older_path_gives_one_vector_as_it_is() {
    let (server, _) = server(engine()).await;
    let ask = async |body: Value| object(post(&server, "/api/embeddings", &body).await).await;
    assert_eq!(
        ask(json!({ "model": "e", "prompt": "two words" })).await,
        (200, json!({ "embedding": [9.0, -0.5, 2.0] }))
    );
    assert_eq!(ask(json!({ "model": "e", "prompt": "" })).await, (200, json!({ "embedding": [] })));
}

#[tokio::test]
async fn without_a_text_the_model_is_loaded() {
    let (server, engine) = server(engine()).await;
    for input in [json!(""), json!([]), json!(null)] {
        let (status, answer) =
            object(post(&server, "/api/embed", &json!({ "model": "e", "input": input })).await).await;
        assert_eq!((status, &answer["embeddings"]), (200, &json!([])), "{input}");
    }
    assert_eq!((engine.loaded().len(), engine.embed_requests().len()), (3, 0));
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let (server, _) = server(engine()).await;
    for (fields, words) in [
        (json!({ "input": 7 }), "input: expected a string or an array of strings"),
        (json!({ "input": ["a", ""] }), "input[1] is empty"),
        (json!({ "input": "a", "dimensions": 0 }), "dimensions must be a positive number, got 0"),
        (json!({ "input": vec!["a"; 8_193] }), "input has 8,193 inputs; the limit is 8,192"),
        (json!({ "input": "a", "model": "" }), "model is required: the name of a model, or 'default'"),
    ] {
        let mut body = json!({ "model": "e" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answered = object(post(&server, "/api/embed", &body).await).await;
        assert_eq!(answered, (400, json!({ "error": words })));
    }
    let (status, answer) =
        object(post(&server, "/api/embed", &json!({ "model": "nope", "input": "a" })).await).await;
    assert_eq!(status, 404);
    assert!(answer["error"].as_str().unwrap().starts_with("model 'nope' not found"), "{answer}");
}
