//! `POST /v1/rerank` in the form of Jina and Cohere, which llama.cpp, vLLM and LiteLLM share, and SGLang's list.

use hob_core::{EngineError, RelevanceScore, RerankRequest, Reranking};
use serde::Deserialize;
use serde_json::json;

use crate::wire::client::Endpoint;
use crate::wire::error_response::unknown_model;
use crate::wire::token_count;

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Object {
        model: Option<String>,
        results: Vec<WireScore>,
        usage: Option<WireUsage>,
    },
    /// SGLang.
    List(Vec<WireScore>),
}

#[derive(Deserialize)]
struct WireScore {
    index: usize,
    #[serde(alias = "score")]
    relevance_score: f64,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "token_count::optional")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count::optional")]
    total_tokens: Option<u64>,
}

/// Scores all documents.
pub(super) async fn post(endpoint: &Endpoint, request: &RerankRequest) -> Result<Reranking, EngineError> {
    let RerankRequest { model, query, documents } = request;
    let json = json!({ "model": model, "query": query, "documents": documents }).to_string();
    let response = endpoint.post("/v1/rerank", json.into_bytes()).await?;
    let response = endpoint.accept(response).await.map_err(|error| explain(endpoint, model, error))?;
    let body = endpoint.body(response).await?;
    let answer = serde_json::from_slice(&body).map_err(|error| endpoint.malformed(error.to_string()))?;
    let (answered_by, results, usage) = match answer {
        Answer::Object { model, results, usage } => (model, results, usage),
        Answer::List(results) => (None, results, None),
    };
    let mut seen = vec![false; documents.len()];
    for result in &results {
        match seen.get_mut(result.index) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(endpoint.malformed("it scored a document twice, or one that it was not sent")),
        }
    }
    if seen.contains(&false) {
        return Err(endpoint.malformed("it did not score every document"));
    }
    let score = |result: WireScore| RelevanceScore { index: result.index, score: result.relevance_score };
    Ok(Reranking {
        model: answered_by.unwrap_or_else(|| model.clone()),
        scores: results.into_iter().map(score).collect(),
        prompt_tokens: usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens)),
    }
    .sorted())
}

/// A server without the path, or whose model compares no texts, cannot do it. Their words for the latter differ.
fn explain(endpoint: &Endpoint, model: &str, error: EngineError) -> EngineError {
    match unknown_model(error, model) {
        EngineError::Refused { status: 404 | 405 | 501, message, .. } => {
            endpoint.unsupported("rerank", Some(&message))
        }
        EngineError::Refused { status: 400, message, .. } if message.contains("support") => {
            endpoint.unsupported("rerank", Some(&message))
        }
        other => other,
    }
}
