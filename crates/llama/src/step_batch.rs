//! The batch of a step: the tokens of all sequences that take part, and which of their rows of scores are needed.

use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::batch_plan::Share;
use crate::context_memory::seq_id;
use crate::prefix_cache::Slots;
use crate::sequence::{Scored, Sequence};

/// A row of scores.
pub(crate) struct ScoredRow {
    /// The sequence that gets it.
    pub(crate) at: usize,
    pub(crate) row: i32,
    /// The position of the prompt that it is about; `None` if the sequence chooses its next token from it. The rows of its guesses
    /// follow.
    pub(crate) position: Option<usize>,
}

/// Puts each share of the step into the batch; gives back which sequence gets its scores from which row.
pub(crate) fn fill(
    batch: &mut LlamaBatch<'_>,
    slots: &Slots,
    alive: &[Sequence],
    active: &[usize],
    plan: &[Share],
) -> Vec<ScoredRow> {
    batch.clear();
    let mut outputs = Vec::with_capacity(plan.len());
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
            if is_added && (is_first || sequence.scores_prompt()) {
                let position = (!is_first).then_some(read + offset);
                outputs.push(ScoredRow { at, row: batch.n_tokens() - 1, position });
            }
        }
    }
    outputs
}
