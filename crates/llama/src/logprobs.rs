//! Token probabilities in the chat-completions format. Pure.

use serde_json::{Value, json};

use crate::sampler::keep_top;

/// The probabilities of one token and its alternatives.
#[derive(Debug, PartialEq)]
pub(crate) struct TokenProbabilities {
    pub(crate) chosen: (i32, f32),
    /// The most likely tokens, best first.
    pub(crate) top: Vec<(i32, f32)>,
}

/// The probabilities from the scores of the model, before sampling.
pub(crate) fn probabilities(scores: &[f32], chosen: i32, top: usize) -> TokenProbabilities {
    let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = scores.iter().map(|score| (score - best).exp()).sum();
    let log_sum = best + sum.ln();
    let mut best_first = Vec::new();
    if top > 0 {
        keep_top(scores, top, &mut best_first);
    }
    let chosen_score =
        usize::try_from(chosen).ok().and_then(|at| scores.get(at).copied()).unwrap_or(f32::NEG_INFINITY);
    TokenProbabilities {
        chosen: (chosen, chosen_score - log_sum),
        top: best_first.iter().map(|candidate| (candidate.token, candidate.score - log_sum)).collect(),
    }
}

/// One element of `logprobs.content`.
pub(crate) fn entry(probabilities: &TokenProbabilities, bytes_of: impl Fn(i32) -> Vec<u8>) -> Value {
    let token = |(id, logprob): (i32, f32)| {
        let bytes = bytes_of(id);
        json!({
            "id": id,
            "token": String::from_utf8_lossy(&bytes),
            "bytes": bytes,
            "logprob": logprob,
        })
    };
    let mut value = token(probabilities.chosen);
    value["top_logprobs"] = probabilities.top.iter().map(|&pair| token(pair)).collect();
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_and_the_best_come_first() {
        let scores = [1.0, 3.0, 2.0];
        let all = probabilities(&scores, 2, 3);
        let sum: f32 = all.top.iter().map(|(_, logprob)| logprob.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-5);
        assert_eq!(all.top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(all.chosen, all.top[1]);
    }

    #[test]
    fn an_entry_has_the_chat_completions_form() {
        let scores = [0.0, 0.0];
        let entry = entry(&probabilities(&scores, 1, 1), |id| vec![b'a' + id as u8]);
        let half = 0.5f32.ln();
        assert_eq!(
            entry,
            json!({
                "id": 1, "token": "b", "bytes": [98], "logprob": half,
                "top_logprobs": [{"id": 0, "token": "a", "bytes": [97], "logprob": half}],
            })
        );
    }
}
