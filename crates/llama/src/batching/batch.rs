//! The batch of a step: the tokens of all sequences that take part, and which of their rows of scores are needed.
#![expect(unsafe_code, reason = "the wrapper has no function for all rows of scores together")]

use std::{ptr, slice};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use super::plan::Share;
use crate::context_memory::seq_id;
use crate::prefix_cache::Slots;
use crate::sequence::{Scored, Sequence};

/// A row of scores.
pub(crate) struct ScoredRow {
    /// The sequence that gets it.
    pub(crate) at: usize,
    /// Its number among the rows of the step.
    pub(crate) row: usize,
    /// The position of the prompt that it is about; `None` if the sequence chooses its next token from it. The rows of its guesses
    /// follow.
    pub(crate) position: Option<usize>,
}

/// The rows of scores of a step.
#[derive(Default)]
pub(crate) struct StepRows {
    /// Those that sequences get. Those of guesses are not among them.
    pub(crate) used: Vec<ScoredRow>,
    /// The place in the batch of the token of each row.
    tokens: Vec<i32>,
}

/// The scores of a step.
pub(crate) struct StepScores<'context> {
    rows: &'context [f32],
    /// The length of a row.
    vocabulary: usize,
}

impl StepRows {
    /// Notes that the last token of the batch has a row, and returns its number.
    fn add(&mut self, batch: &LlamaBatch<'_>) -> usize {
        self.tokens.push(batch.n_tokens() - 1);
        self.tokens.len() - 1
    }

    /// The scores of the step, which must be the last one of the context. Asks llama.cpp twice, however many rows there are: it waits
    /// for a card each time, which takes longer than to find a row.
    pub(crate) fn scores<'context>(&self, context: &'context LlamaContext<'_>) -> StepScores<'context> {
        let Some(&last_token) = self.tokens.last() else {
            return StepScores { rows: &[], vocabulary: 0 };
        };
        // This also puts the rows in the order of the batch, if they were computed in another one.
        let first = context.get_logits();
        let last = context.get_logits_ith(last_token);
        let (start, vocabulary, count) = (first.as_ptr(), first.len(), self.tokens.len());
        let place_of_last = start.wrapping_add(vocabulary * (count - 1));
        assert!(ptr::eq(place_of_last, last.as_ptr()), "the rows of scores are not those of the step");
        // SAFETY: llama.cpp stores the rows of a step in one piece of memory, one after the other; the first and the last one are as
        // far apart as these rows are long. The memory is not Rust's, so the pointer may leave the row that it was returned for.
        // Nothing changes the rows while the context is borrowed.
        let rows =
            unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(start.addr()), vocabulary * count) };
        let scores = StepScores { rows, vocabulary };
        debug_assert!(
            (0..)
                .zip(&self.tokens)
                .all(|(row, &token)| ptr::eq(scores.row(row), context.get_logits_ith(token))),
            "the rows of scores are not in the order of the batch"
        );
        scores
    }
}

impl<'context> StepScores<'context> {
    pub(crate) fn row(&self, row: usize) -> &'context [f32] {
        let start = row * self.vocabulary;
        &self.rows[start..start + self.vocabulary]
    }
}

/// Puts each share of the step into the batch; gives back which sequence gets its scores from which row.
pub(crate) fn fill(
    batch: &mut LlamaBatch<'_>,
    slots: &Slots,
    alive: &[Sequence],
    active: &[usize],
    plan: &[Share],
) -> StepRows {
    batch.clear();
    let mut rows = StepRows::default();
    for share in plan {
        let at = active[share.index];
        let sequence = &alive[at];
        let seq = seq_id(sequence.slot);
        let read = slots.len(sequence.slot);
        let start = slots.position(sequence.slot, read);
        let (tokens, scored) = sequence.next_tokens(share.tokens);
        let last = tokens.len().saturating_sub(1);
        // The row that the next token is chosen from.
        let first = match scored {
            Scored::None => None,
            Scored::All => Some(0),
            Scored::Last => Some(last),
        };
        for (offset, &token) in tokens.iter().enumerate() {
            let is_first = first == Some(offset);
            let scores = is_first || scored == Scored::All || sequence.scores_prompt();
            let place = i32::try_from(start + offset).unwrap_or(i32::MAX);
            // The plan never exceeds the batch.
            let is_added = batch.add(LlamaToken(token), place, &[seq], scores).is_ok();
            if !is_added || !scores {
                continue;
            }
            let row = rows.add(batch);
            if is_first || sequence.scores_prompt() {
                let position = (!is_first).then_some(read + offset);
                rows.used.push(ScoredRow { at, row, position });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use llama_cpp_2::context::params::LlamaContextParams;

    use super::*;
    use crate::backends::backend;
    use crate::fixtures::{on_processor, stored_model};
    use crate::loaded_model::LoadedModel;

    /// The greatest difference between the scores of two rows.
    fn difference(one: &[f32], other: &[f32]) -> f32 {
        one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn the_rows_of_a_step_are_those_of_its_tokens_however_it_is_divided() {
        let stored = stored_model();
        let loaded = LoadedModel::load_file(&stored, &stored.path, &on_processor()).expect("a model");
        let mut computed_at_once: Option<Vec<Vec<f32>>> = None;
        // llama.cpp computes a batch in parts of so many tokens. If the sequences do not share their memory, a part has as many tokens
        // of each of them as of the others, so the rows are computed in another order.
        for (part, shared) in [(32, true), (1, true), (4, true), (5, true), (3, false), (32, false)] {
            let params = LlamaContextParams::default()
                .with_n_ctx(NonZeroU32::new(768))
                .with_n_batch(32)
                .with_n_ubatch(part)
                .with_n_seq_max(3)
                .with_kv_unified(shared)
                .with_n_threads(1)
                .with_n_threads_batch(1);
            let mut context =
                loaded.model.new_context(backend().expect("llama.cpp"), params).expect("a context");
            // A batch without scores after one with them, and the other way round.
            for scored in [&[1, 4, 5, 10, 11][..], &[], &[11]] {
                context.clear_kv_cache();
                let mut batch = LlamaBatch::new(32, 1);
                let mut rows = StepRows::default();
                // The first sequence has tokens 0 to 3 of the batch, and the next one those after them.
                for token in 0..12 {
                    let is_scored = scored.contains(&token);
                    let added = batch.add(LlamaToken(100 + token), token % 4, &[token / 4], is_scored);
                    added.expect("there is space");
                    if is_scored {
                        rows.add(&batch);
                    }
                }
                context.decode(&mut batch).expect("a step");
                let scores = rows.scores(&context);
                assert_eq!(scores.rows.len(), scored.len() * scores.vocabulary);
                let found: Vec<&[f32]> = (0..scored.len()).map(|row| scores.row(row)).collect();
                let expected: Vec<&[f32]> =
                    scored.iter().map(|&token| context.get_logits_ith(token)).collect();
                assert!(found == expected, "parts of {part}: {scored:?}");
                let all =
                    computed_at_once.get_or_insert_with(|| found.iter().map(|row| row.to_vec()).collect());
                for (row, &token) in found.iter().zip(scored) {
                    let differences: Vec<f32> = all.iter().map(|other| difference(row, other)).collect();
                    let closest = (0..all.len()).min_by(|&a, &b| differences[a].total_cmp(&differences[b]));
                    let own = [1, 4, 5, 10, 11].iter().position(|&other| other == token);
                    assert_eq!(closest, own, "parts of {part}: {differences:?}");
                }
            }
        }
    }
}
