//! `POST /v1/embeddings` as clients see it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::{EmbedInputs, EmbedRequest, Engine, Overlong};
use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::support::{TestServer, engine_at};

async fn scripted() -> (TestServer, Arc<ScriptedEngine>) {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).with_embedding_models(&["e"]));
    (TestServer::start(Arc::clone(&engine) as Arc<dyn Engine>).await, engine)
}

async fn embed(server: &TestServer, body: &Value) -> (u16, Value) {
    let response = server.client.post(server.url("/v1/embeddings")).json(body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn texts_become_vectors_in_their_order() {
    let (server, engine) = scripted().await;
    let body = json!({ "model": "e", "input": ["two words", "one"], "user": "ada", "dimensions": 3 });
    let (status, answer) = embed(&server, &body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer,
        json!({
            "object": "list",
            "data": [
                { "object": "embedding", "index": 0, "embedding": [9.0, -0.5, 2.0] },
                { "object": "embedding", "index": 1, "embedding": [3.0, -0.5, 1.0] },
            ],
            "model": "e",
            "usage": { "prompt_tokens": 3, "total_tokens": 3 },
        })
    );
    let asked = EmbedRequest {
        model: "e".into(),
        inputs: vec!["two words".to_owned(), "one".to_owned()].into(),
        dimensions: Some(3),
        overlong: Overlong::Refuse,
    };
    assert_eq!(engine.embed_requests(), [asked]);
}

#[tokio::test]
async fn a_base64_vector_has_little_endian_floats() {
    let (server, _engine) = scripted().await;
    let body = json!({ "model": "e", "input": "one", "encoding_format": "base64" });
    let (_, answer) = embed(&server, &body).await;
    let bytes = STANDARD.decode(answer["data"][0]["embedding"].as_str().unwrap()).unwrap();
    assert_eq!(bytes, [3.0_f32, -0.5, 1.0].map(f32::to_le_bytes).concat());
}

#[tokio::test]
async fn an_invalid_embeddings_request_names_its_field() {
    let (server, engine) = scripted().await;
    for (fields, param) in [
        (json!({ "model": null }), json!("model")),
        (json!({ "model": "nope" }), json!("model")),
        (json!({ "input": null }), json!("input")),
        (json!({ "input": [] }), json!("input")),
        (json!({ "input": "" }), json!("input[0]")),
        (json!({ "input": ["a", ""] }), json!("input[1]")),
        (json!({ "input": [[1], []] }), json!("input[1]")),
        (json!({ "input": [1, "a"] }), json!("input[1]")),
        (json!({ "input": ["a", 1] }), json!("input[1]")),
        (json!({ "input": [[1], 2] }), json!("input[1]")),
        (json!({ "input": [-1] }), json!("input[0]")),
        (json!({ "input": [[4_294_967_296_u64]] }), json!("input[0][0]")),
        (json!({ "input": { "text": "a" } }), json!("input")),
        (json!({ "input": vec!["a"; 2049] }), json!("input")),
        (json!({ "encoding_format": "int8" }), json!("encoding_format")),
        (json!({ "dimensions": 0 }), json!("dimensions")),
        (json!({ "dimensions": "many" }), json!("dimensions")),
        (json!({ "input_type": "query" }), json!("input_type")),
    ] {
        let mut body = json!({ "model": "e", "input": "a" });
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let (status, answer) = embed(&server, &body).await;
        assert!([400, 404].contains(&status), "{fields}: {status} {answer}");
        assert_eq!(answer["error"]["param"], param, "{answer}");
        assert_eq!(answer["detail"], answer["error"]["message"]);
    }
    assert_eq!(engine.embed_requests(), [], "nothing of it reached the engine");
}

#[tokio::test]
async fn tokens_reach_the_engine_unchanged() {
    let (server, engine) = scripted().await;
    for (input, expected) in [
        (json!([1, 2.0, 3]), vec![vec![1, 2, 3]]),
        (json!([[1, 2], [4_294_967_295_u32]]), vec![vec![1, 2], vec![u32::MAX]]),
    ] {
        let (status, answer) = embed(&server, &json!({ "model": "e", "input": input })).await;
        assert_eq!((status, answer["data"].as_array().unwrap().len()), (200, expected.len()), "{answer}");
        assert_eq!(engine.embed_requests().pop().unwrap().inputs, EmbedInputs::Tokens(expected));
    }
}

#[tokio::test]
async fn an_engine_of_the_same_format_gets_the_tokens() {
    let fake = FakeServer::start(|request| match request.path.as_str() {
        "/v1/models" => Reply::json(200, r#"{"object":"list","data":[{"id":"e"}]}"#),
        _ => Reply::json(200, r#"{"data":[{"index":0,"embedding":[1.0]},{"index":1,"embedding":[2.0]}]}"#),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let (status, answer) = embed(&server, &json!({ "model": "e", "input": [[1, 2], [3]] })).await;
    assert_eq!(status, 200, "{answer}");
    let sent = fake.requests().into_iter().find(|request| request.path == "/v1/embeddings").unwrap();
    let sent: Value = serde_json::from_str(&sent.text()).unwrap();
    assert_eq!(sent["input"], json!([[1, 2], [3]]));
}

#[tokio::test]
async fn many_large_vectors_are_written_while_they_are_sent() {
    const TEXTS: usize = 200;
    let numbers = |index: usize| -> Vec<f32> { (0..2_000).map(|at| (index + at % 4) as f32 / 4.0).collect() };
    let fake = FakeServer::start(move |request| match request.path.as_str() {
        "/v1/models" => Reply::json(200, r#"{"object":"list","data":[{"id":"e"}]}"#),
        _ => {
            let data = |index| json!({ "index": index, "embedding": numbers(index) });
            let data: Vec<Value> = (0..TEXTS).map(data).collect();
            Reply::json(200, json!({ "data": data, "usage": { "prompt_tokens": 7 } }).to_string())
        }
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let expected = |path: &str| {
        let data = |index| json!({ "object": "embedding", "index": index, "embedding": numbers(index) });
        match path {
            "/v1/embeddings" => json!({
                "object": "list",
                "data": (0..TEXTS).map(data).collect::<Vec<Value>>(),
                "model": "e",
                "usage": { "prompt_tokens": 7, "total_tokens": 7 },
            }),
            _ => json!({ "model": "e", "prompt_eval_count": 7 }),
        }
    };
    for path in ["/v1/embeddings", "/api/embed"] {
        let body = json!({ "model": "e", "input": vec!["text"; TEXTS] });
        let response = server.client.post(server.url(path)).json(&body).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.content_length()), (200, None), "{path}");
        let mut answer: Value = response.json().await.unwrap();
        if path == "/api/embed" {
            let fields = answer.as_object_mut().unwrap();
            let vectors = fields.remove("embeddings").unwrap();
            let lengths: Vec<usize> =
                vectors.as_array().unwrap().iter().map(|vector| vector.as_array().unwrap().len()).collect();
            assert_eq!(lengths, [2_000; TEXTS]);
            fields.retain(|name, _| !name.ends_with("_duration"));
        }
        assert!(answer == expected(path), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_field_is_ignored_and_named() {
    let (server, _engine) = scripted().await;
    let body = json!({ "model": "e", "input": "a", "future_field": [1], "user": "ada", "nothing": null });
    let response = server.client.post(server.url("/v1/embeddings")).json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let named: Vec<_> = response.headers().get_all("x-hob-warning").iter().collect();
    assert_eq!(named, ["ignored=future_field"]);
}

#[tokio::test]
async fn the_number_of_texts_that_openai_accepts_is_accepted() {
    let (server, _engine) = scripted().await;
    let (status, answer) = embed(&server, &json!({ "model": "e", "input": vec!["a"; 2048] })).await;
    assert_eq!((status, answer["data"].as_array().unwrap().len()), (200, 2048));
}

#[tokio::test]
async fn an_engine_without_embeddings_is_an_error() {
    for recording in ["vllm/embeddings", "llama-server/embeddings"] {
        let fake = FakeServer::start(move |request| match request.path.as_str() {
            "/v1/models" => Reply::json(200, r#"{"object":"list","data":[{"id":"smollm2"}]}"#),
            _ => Reply::transcript(recording),
        })
        .await;
        let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
        let (status, answer) = embed(&server, &json!({ "model": "smollm2", "input": "hello" })).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("unsupported_by_engine")), "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains("has no embedding model"), "{answer}");
    }
}

#[tokio::test]
async fn without_an_embedding_model_default_says_how_to_get_one() {
    let (server, _engine) = scripted().await;
    let (status, answer) = embed(&server, &json!({ "model": "default", "input": "a" })).await;
    assert_eq!((status, &answer["error"]["code"]), (503, &json!("engine_not_configured")));
    assert!(answer["detail"].as_str().unwrap().contains("[memory] embedding_model"), "{answer}");
}
