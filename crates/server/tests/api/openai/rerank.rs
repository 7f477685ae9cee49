//! `POST /v1/rerank` as clients see it.

use std::sync::Arc;

use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use crate::support::TestServer;

async fn post(server: &TestServer, path: &str, body: &Value) -> reqwest::Response {
    server.client.post(server.url(path)).json(body).send().await.unwrap()
}

#[tokio::test]
async fn documents_come_back_best_first() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["bge"]).with_rerank();
    let server = TestServer::start(Arc::new(engine)).await;
    let body = json!({
        "model": "bge", "query": "q", "documents": ["long text", { "text": "x" }, "abc"], "top_n": 2,
        "return_documents": true, "user": "ada",
    });
    for path in ["/v1/rerank", "/rerank", "/v2/rerank"] {
        let response = post(&server, path, &body).await;
        assert_eq!((response.status().as_u16(), response.headers().get("x-hob-warning")), (200, None));
        let mut answer: Value = response.json().await.unwrap();
        assert!(answer["id"].as_str().unwrap().starts_with("rerank-"));
        answer["id"] = json!("rerank-1");
        assert_eq!(
            answer,
            json!({
                "id": "rerank-1", "object": "list", "model": "bge",
                "results": [
                    { "index": 1, "relevance_score": 0.5, "document": { "text": "x" } },
                    { "index": 2, "relevance_score": 0.25, "document": { "text": "abc" } },
                ],
                "usage": { "prompt_tokens": 7, "total_tokens": 7 },
            })
        );
    }
}

#[tokio::test]
async fn an_engine_that_only_embeds_ranks_by_vectors_and_the_answer_says_so() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let body = json!({ "model": "m", "query": "one two", "documents": ["a b c d", "six sev"] });
    let response = post(&server, "/v1/rerank", &body).await;
    assert_eq!(response.headers()["x-hob-warning"], "reranked-by-embeddings");
    let answer: Value = response.json().await.unwrap();
    let order: Vec<u64> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["index"].as_u64().unwrap())
        .collect();
    assert_eq!(order, [1, 0], "the second has as many bytes and words as the question");
    assert_eq!(answer["results"][0]["relevance_score"], json!(1.0));
    assert_eq!(answer["results"][0].get("document"), None);
}

#[tokio::test]
async fn what_is_no_request_is_refused_by_its_field() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    for (fields, param) in [
        (json!({ "query": null }), "query"),
        (json!({ "query": " " }), "query"),
        (json!({ "documents": [] }), "documents"),
        (json!({ "documents": "a" }), "documents"),
        (json!({ "documents": ["a", ""] }), "documents[1]"),
        (json!({ "documents": ["a", { "title": "b" }] }), "documents[1]"),
        (json!({ "documents": vec!["a"; 2049] }), "documents"),
        (json!({ "top_n": 0 }), "top_n"),
        (json!({ "truncate": "END" }), "truncate"),
        (json!({ "model": "nope" }), "model"),
    ] {
        let mut body = json!({ "model": "m", "query": "q", "documents": ["a"] });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let response = post(&server, "/v1/rerank", &body).await;
        let status = response.status().as_u16();
        let answer: Value = response.json().await.unwrap();
        assert!(status == 400 || status == 404, "{fields}: {status} {answer}");
        assert_eq!(answer["error"]["param"], param, "{fields}: {answer}");
    }
}

#[tokio::test]
async fn an_empty_list_of_documents_is_not_a_missing_one() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    for (documents, message) in
        [(json!([]), "'documents' must not be empty"), (json!(null), "'documents' is required")]
    {
        let body = json!({ "model": "m", "query": "q", "documents": documents });
        let answer: Value = post(&server, "/v1/rerank", &body).await.json().await.unwrap();
        assert_eq!(answer["error"]["message"], message);
    }
}
