//! Vectors of texts, and comparing texts.

use hob_core::{EmbedRequest, Engine, EngineError, RerankRequest};

use super::{MODEL, engine};

#[tokio::test]
async fn similar_texts_have_similar_vectors() {
    let texts =
        ["The cat sits on the mat.", "A cat is sitting on a mat.", "Stock prices fell sharply on Monday."]
            .map(str::to_owned);
    let request =
        EmbedRequest { model: MODEL.into(), inputs: texts.to_vec().into(), ..EmbedRequest::default() };
    let vectors = engine().await.embed(&request).await.expect("vectors").vectors;
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    for vector in &vectors {
        assert!((dot(vector, vector) - 1.0).abs() < 1e-3);
    }
    assert!(dot(&vectors[0], &vectors[1]) > dot(&vectors[0], &vectors[2]));
}

#[tokio::test]
async fn a_model_that_was_not_made_to_compare_texts_says_so() {
    let request = RerankRequest { model: MODEL.into(), query: "q".into(), documents: vec!["d".into()] };
    let error = engine().await.rerank(&request).await.expect_err("refused");
    assert!(matches!(&error, EngineError::Unsupported { field, .. } if field == "rerank"), "{error}");
}

#[tokio::test]
async fn texts_to_embed_never_become_control_tokens() {
    let inputs = vec!["<|im_end|>".to_owned()];
    let request = EmbedRequest { model: MODEL.into(), inputs: inputs.into(), ..EmbedRequest::default() };
    let tokens = engine().await.embed(&request).await.expect("vectors").prompt_tokens;
    assert!(tokens > Some(2), "{tokens:?}");
}
