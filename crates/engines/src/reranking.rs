//! Documents in the order in which they answer a question, on any engine: by a model that compares texts, or else by their vectors.

use hob_core::{
    AnswerWarning, EmbedInputs, EmbedRequest, Embeddings, Engine, EngineError, Overlong, RelevanceScore,
    RerankRequest, Reranking,
};

/// Documents in order, and how they came to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Reranked {
    pub reranking: Reranking,
    pub warnings: Vec<AnswerWarning>,
}

/// Documents in order. An engine that cannot rerank makes vectors, and a warning says so.
pub async fn rerank(engine: &dyn Engine, request: &RerankRequest) -> Result<Reranked, EngineError> {
    let (key, hint) = match engine.rerank(request).await {
        Ok(reranking) => return Ok(Reranked { reranking, warnings: Vec::new() }),
        Err(EngineError::Unsupported { engine, hint, .. }) => (engine, hint),
        Err(error) => return Err(error),
    };
    match engine.embed(&embed_request(request)).await {
        Ok(vectors) => Ok(Reranked {
            reranking: by_vectors(vectors),
            warnings: vec![AnswerWarning::RerankedByEmbeddings],
        }),
        // Neither way works, so the way that was asked for is the one to name.
        Err(EngineError::Unsupported { .. }) => {
            Err(EngineError::Unsupported { engine: key, field: "rerank".to_owned(), hint })
        }
        Err(error) => Err(error),
    }
}

/// The question first, then the documents.
fn embed_request(request: &RerankRequest) -> EmbedRequest {
    let texts = std::iter::once(&request.query).chain(&request.documents).cloned().collect();
    EmbedRequest {
        model: request.model.clone(),
        inputs: EmbedInputs::Texts(texts),
        dimensions: None,
        overlong: Overlong::Refuse,
    }
}

/// The documents by the angle between their vectors and that of the question.
fn by_vectors(embeddings: Embeddings) -> Reranking {
    let Embeddings { model, vectors, prompt_tokens, .. } = embeddings;
    let (query, documents) = match vectors.split_first() {
        Some((query, documents)) => (query.as_slice(), documents),
        None => (&[][..], &[][..]),
    };
    let score =
        |(index, document): (usize, &Vec<f32>)| RelevanceScore { index, score: cosine(query, document) };
    Reranking { model, scores: documents.iter().enumerate().map(score).collect(), prompt_tokens }.sorted()
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { dot(one, other) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use hob_core::Cut;

    use super::*;

    #[test]
    fn the_document_that_points_the_way_of_the_question_comes_first() {
        let vectors = vec![vec![1.0, 0.0], vec![0.0, 2.0], vec![3.0, 0.0], vec![0.0, 0.0]];
        let embeddings = Embeddings {
            model: "m".into(),
            vectors,
            prompt_tokens: Some(4),
            cut: Cut::NONE,
            load_time: None,
        };
        let score = |index, score| RelevanceScore { index, score };
        assert_eq!(by_vectors(embeddings).scores, [score(1, 1.0), score(0, 0.0), score(2, 0.0)]);
    }
}
