//! Text as the tokens of a model, and back.

use std::sync::Arc;

use hob_core::{DetokenizeRequest, EngineError, TokenizeInput, TokenizeRequest, Tokenized};

use crate::loaded_model::LoadedModel;
use crate::media::{EncodedMedia, is_stand_in};
use crate::prompt::prompt_of;

/// Takes time with long texts.
pub(crate) fn split(
    loaded: &LoadedModel,
    request: &TokenizeRequest,
    files: &[Arc<EncodedMedia>],
) -> Result<Tokenized, EngineError> {
    let tokens = match &request.input {
        TokenizeInput::Text { text, add_special, parse_special: true } => loaded.tokens(text, *add_special),
        TokenizeInput::Text { text, add_special, parse_special: false } => {
            loaded.tokens_of_words(text, *add_special)
        }
        TokenizeInput::Conversation(conversation) => prompt_of(loaded, conversation, files)?,
    };
    let bytes = |token: &i32| match is_stand_in(*token) {
        // A vector of a picture has no text.
        true => Vec::new(),
        false => loaded.bytes_of(*token, true),
    };
    let pieces = request.pieces.then(|| tokens.iter().map(bytes).collect());
    Ok(Tokenized {
        // The numbers of a vocabulary begin with zero; those of vectors are beyond its end.
        tokens: tokens.into_iter().map(i32::cast_unsigned).collect(),
        pieces,
        context: Some(loaded.context_size.context.into()),
    })
}

/// Takes time with long texts.
pub(crate) fn join(loaded: &LoadedModel, request: &DetokenizeRequest) -> Result<String, EngineError> {
    Ok(loaded.text_of(&loaded.known_tokens("tokens", &request.tokens)?))
}
