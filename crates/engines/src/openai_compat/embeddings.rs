//! `POST /v1/embeddings` in the OpenAI format.

use hob_core::{EmbedInputs, EmbedRequest, Embeddings, EngineError, Overlong};
use serde::{Deserialize, Serialize};

use crate::embeddings::{EmbeddingBatch, EmbeddingCollector, Input, MAX_INPUTS, OverlongPolicy, batches};
use crate::wire::client::Endpoint;
use crate::wire::error_response::unknown_model;
use crate::wire::token_count;

#[derive(Serialize)]
struct Body<'a, T> {
    model: &'a str,
    input: &'a [T],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
    /// vLLM's own field: the most tokens of an input, or -1 for the model's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncate_prompt_tokens: Option<i64>,
}

#[derive(Deserialize)]
struct Answer {
    model: Option<String>,
    data: Vec<Datum>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Datum {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default, deserialize_with = "token_count::optional")]
    prompt_tokens: Option<u64>,
}

/// Requests the embeddings of all inputs, in as many requests as needed.
pub(crate) async fn post(
    endpoint: &Endpoint,
    path: &str,
    request: &EmbedRequest,
    overlong_policy: OverlongPolicy,
) -> Result<Embeddings, EngineError> {
    match &request.inputs {
        EmbedInputs::Texts(texts) => post_all(endpoint, path, request, (texts, overlong_policy)).await,
        EmbedInputs::Tokens(lists) => post_all(endpoint, path, request, (lists, overlong_policy)).await,
    }
}

async fn post_all<T: Input + Serialize + Sync>(
    endpoint: &Endpoint,
    path: &str,
    request: &EmbedRequest,
    (inputs, overlong_policy): (&[T], OverlongPolicy),
) -> Result<Embeddings, EngineError> {
    let cuts = overlong_policy == OverlongPolicy::CutsOnRequest && request.overlong == Overlong::Cut;
    let mut collected = EmbeddingCollector::new(endpoint, request, overlong_policy);
    for inputs in batches(inputs, MAX_INPUTS) {
        let body = Body {
            model: &request.model,
            input: inputs,
            encoding_format: "float",
            dimensions: request.dimensions,
            truncate_prompt_tokens: cuts.then_some(-1),
        };
        let json = serde_json::to_vec(&body).map_err(|error| endpoint.malformed(error.to_string()))?;
        let response = endpoint.post(path, json).await?;
        let response = endpoint.accept(response).await.map_err(|error| explain(endpoint, request, error))?;
        let batch = read(&endpoint.body(response).await?).map_err(|reason| endpoint.malformed(reason))?;
        collected.add(inputs.len(), batch)?;
    }
    Ok(collected.finish())
}

/// A server that runs a text model has no embeddings, and each engine reports that differently.
fn explain(endpoint: &Endpoint, request: &EmbedRequest, error: EngineError) -> EngineError {
    match unknown_model(error, &request.model) {
        EngineError::Refused { status: 404 | 501, message, .. } => {
            let hint = format!("this server has no embedding model ({message})");
            endpoint.unsupported("embeddings", Some(&hint))
        }
        other => other,
    }
}

fn read(body: &[u8]) -> Result<EmbeddingBatch, String> {
    let mut answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    // The format does not guarantee the order.
    answer.data.sort_by_key(|datum| datum.index);
    if !answer.data.iter().map(|datum| datum.index).eq(0..answer.data.len()) {
        return Err("its embeddings are not numbered from zero".to_owned());
    }
    Ok(EmbeddingBatch {
        model: answer.model.filter(|model| !model.is_empty()),
        vectors: answer.data.into_iter().map(|datum| datum.embedding).collect(),
        prompt_tokens: answer.usage.and_then(|usage| usage.prompt_tokens),
        load_time: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_in_the_order_of_their_texts() {
        let batch = read(
            br#"{"data":[{"index":1,"embedding":[2.0]},{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":3}}"#,
        )
        .unwrap();
        assert_eq!((batch.vectors, batch.prompt_tokens), (vec![vec![1.0], vec![2.0]], Some(3)));
        assert_eq!(batch.model, None);
    }

    #[test]
    fn a_vector_that_is_missing_or_there_twice_is_noticed() {
        for data in ["[0, 0]", "[0, 2]", "[1]"] {
            let indices: Vec<usize> = serde_json::from_str(data).unwrap();
            let data: Vec<_> = indices
                .iter()
                .map(|index| serde_json::json!({ "index": index, "embedding": [1.0] }))
                .collect();
            let body = serde_json::json!({ "data": data }).to_string();
            assert!(read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
