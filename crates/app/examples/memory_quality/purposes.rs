//! What the limits of relevance cost and save: how much each kind of search still finds, and how many questions about something else
//! get nothing, as they should.

use hob_memory::{MemoryBackend, MemoryService, SearchPurpose};
use serde::Serialize;

use crate::Result;
use crate::judge::{Answer, SearchMode, answer, finds_any, mean};
use crate::set::{Question, Set};

/// From all passages to those that a model gets unasked.
const PURPOSES: [(SearchPurpose, &str); 3] = [
    (SearchPurpose::AllPassages, "all"),
    (SearchPurpose::UserRequest, "search"),
    (SearchPurpose::Context, "context"),
];

/// One kind of search on one set.
#[derive(Serialize)]
pub struct PurposeRow {
    pub backend: MemoryBackend,
    pub purpose: &'static str,
    pub recall_at_5: f64,
    /// Of all passages, among the first twenty; else among the five that a caller gets.
    pub mrr: f64,
    /// The mean number of passages for a question of the set, up to five each.
    pub passages: f64,
    /// The share of unrelated questions that get no passage.
    pub unrelated_without_passage: f64,
}

/// A row for each backend and purpose. Only the files of the set are indexed, so those that answer the unrelated questions are not there.
pub async fn judge_purposes(
    memory: &MemoryService,
    set: &Set,
    unrelated: &[&Question],
) -> Result<Vec<PurposeRow>> {
    let mut rows = Vec::new();
    for backend in MemoryBackend::ALL {
        for (purpose, name) in PURPOSES {
            let mode = SearchMode { backend, purpose };
            let mut answers: Vec<Answer> = Vec::new();
            for question in &set.questions {
                answers.push(answer(memory, set, question, mode).await?);
            }
            let mut without_passage = Vec::new();
            for question in unrelated {
                without_passage.push(!finds_any(memory, question, mode).await?);
            }
            rows.push(PurposeRow {
                backend,
                purpose: name,
                recall_at_5: mean(answers.iter().map(|answer| answer.recall_at_5)),
                mrr: mean(answers.iter().map(Answer::reciprocal_rank)),
                passages: mean(answers.iter().map(|answer| answer.passages as f64)),
                unrelated_without_passage: mean(without_passage.into_iter().map(f64::from)),
            });
        }
    }
    Ok(rows)
}
