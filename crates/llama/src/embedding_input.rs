//! Tokenises texts to embed, within the context of the model.

use hob_core::{EmbedInputs, EmbedRequest, EngineError, Overlong};

use crate::error::{bad_request, context_exceeded, unsupported};
use crate::loaded_model::LoadedModel;

/// The texts of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) inputs: Vec<Vec<i32>>,
    /// The texts that were cut.
    pub(crate) cut: Vec<usize>,
}

impl Texts {
    /// Slow with long texts.
    pub(crate) fn read(loaded: &LoadedModel, request: &EmbedRequest) -> Result<Self, EngineError> {
        if loaded.compares_texts() {
            let message = format!("'{}' compares texts and makes no vectors; use it to rerank", loaded.id);
            return Err(bad_request(message, Some("model")));
        }
        check_dimensions(loaded, request.dimensions)?;
        let context = loaded.longest_embedded() as usize;
        let closing = loaded.tokens("", true).last().copied();
        let mut texts = Texts { inputs: Vec::with_capacity(request.inputs.len()), cut: Vec::new() };
        for index in 0..request.inputs.len() {
            let mut tokens = match &request.inputs {
                EmbedInputs::Texts(inputs) => loaded.tokens_of_words(&inputs[index], true),
                EmbedInputs::Tokens(inputs) => {
                    loaded.known_tokens(&format!("input[{index}]"), &inputs[index])?
                }
            };
            if tokens.is_empty() {
                return Err(bad_request(
                    format!("input[{index}] is empty, which '{}' cannot embed", loaded.id),
                    Some("input"),
                ));
            }
            if tokens.len() > context {
                if request.overlong == Overlong::Refuse {
                    return Err(too_long(loaded, index, tokens.len(), context));
                }
                cut(&mut tokens, context, closing);
                texts.cut.push(index);
            }
            texts.inputs.push(tokens);
        }
        Ok(texts)
    }
}

fn check_dimensions(loaded: &LoadedModel, wanted: Option<u32>) -> Result<(), EngineError> {
    let made = loaded.model.n_embd();
    match wanted {
        Some(wanted) if i64::from(wanted) != i64::from(made) => {
            let hint = format!("'{}' has vectors of {made} numbers only", loaded.id);
            Err(unsupported("dimensions", Some(&hint)))
        }
        _ => Ok(()),
    }
}

fn too_long(loaded: &LoadedModel, index: usize, tokens: usize, context: usize) -> EngineError {
    context_exceeded(
        format!(
            "input[{index}] has {tokens} tokens; the maximum context length is {context} tokens for '{}'",
            loaded.id
        ),
        "input",
    )
}

/// Keeps the beginning, and the closing token of the model if it has one.
fn cut(tokens: &mut Vec<i32>, context: usize, closing: Option<i32>) {
    let closed_by = tokens.last().copied().filter(|last| Some(*last) == closing);
    tokens.truncate(context);
    if let (Some(last), Some(closing)) = (tokens.last_mut(), closed_by) {
        *last = closing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_keeps_the_closing_token() {
        let cut_of = |closing| {
            let mut tokens = vec![101, 1, 2, 3, 4, 102];
            cut(&mut tokens, 4, closing);
            tokens
        };
        assert_eq!(cut_of(Some(102)), [101, 1, 2, 102]);
        assert_eq!(cut_of(Some(101)), [101, 1, 2, 3], "it only opens them");
        assert_eq!(cut_of(None), [101, 1, 2, 3]);
    }
}
