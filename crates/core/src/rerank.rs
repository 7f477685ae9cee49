//! Documents in the order in which they answer a question.

/// Documents to put in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RerankRequest {
    pub model: String,
    pub query: String,
    pub documents: Vec<String>,
}

/// How well a document answers the question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelevanceScore {
    /// Which of the request's documents.
    pub index: usize,
    /// More is better. The scale is the model's own.
    pub score: f64,
}

/// The documents in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Reranking {
    /// The model that compared them.
    pub model: String,
    /// One of each document, best first.
    pub scores: Vec<RelevanceScore>,
    /// `None` when the engine does not count.
    pub prompt_tokens: Option<u64>,
}

impl Reranking {
    /// Puts scores in order, best first. Equal ones stay in the order of the documents.
    pub fn sorted(mut self) -> Self {
        self.scores.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.index.cmp(&other.index)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_document_comes_first_and_equal_ones_stay_in_order() {
        let score = |index, score| RelevanceScore { index, score };
        let scores = vec![score(0, 0.1), score(1, 0.9), score(2, 0.1)];
        let sorted = Reranking { model: "m".into(), scores, prompt_tokens: None }.sorted();
        assert_eq!(sorted.scores, [score(1, 0.9), score(0, 0.1), score(2, 0.1)]);
    }
}
