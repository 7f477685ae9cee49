//! Documents in the order in which they answer a question, by a model that was made to compare texts.

use hob_core::{EngineError, RelevanceScore, RerankRequest, Reranking};
use llama_cpp_2::token::LlamaToken;

use crate::error::{context_exceeded, unsupported};
use crate::loaded_model::LoadedModel;

/// The question with each document, as the model reads the two. Takes time with long texts.
pub(crate) fn pairs(loaded: &LoadedModel, request: &RerankRequest) -> Result<Vec<Vec<i32>>, EngineError> {
    if !loaded.compares_texts() {
        let hint = format!("'{}' was not made to compare texts", loaded.id);
        return Err(unsupported("rerank", Some(&hint)));
    }
    let template = rerank_template(loaded);
    let most = loaded.longest_embedded() as usize;
    let pair = |(index, document): (usize, &String)| {
        let tokens = match &template {
            Some(template) => {
                // The document may contain the name of the place for the question.
                let (before, after) = template.split_once("{document}").unwrap_or((template, ""));
                let fill = |text: &str| text.replace("{query}", &request.query);
                loaded.tokens(&format!("{}{document}{}", fill(before), fill(after)), true)
            }
            None => joined(loaded, &request.query, document),
        };
        if tokens.len() > most {
            let message = format!(
                "documents[{index}] has {} tokens with the query; the maximum context length is {most} tokens for '{}'",
                tokens.len(),
                loaded.id
            );
            return Err(context_exceeded(message, "documents"));
        }
        Ok(tokens)
    };
    request.documents.iter().enumerate().map(pair).collect()
}

/// The text that some models have for a question and a document.
fn rerank_template(loaded: &LoadedModel) -> Option<String> {
    let template = loaded.model.meta_val_str("tokenizer.chat_template.rerank").ok()?;
    template.contains("{document}").then_some(template)
}

/// The question and the document between the model's tokens for the ends of texts.
fn joined(loaded: &LoadedModel, query: &str, document: &str) -> Vec<i32> {
    let vocab = loaded.model.vocab();
    let known = |token: LlamaToken, wanted: bool| Some(token.0).filter(|token| wanted && *token >= 0);
    // Some vocabularies end a text with the separator.
    let end = known(vocab.eos(), true).or(known(vocab.sep(), true)).filter(|_| vocab.should_add_eos());
    let mut tokens: Vec<i32> = known(vocab.bos(), vocab.should_add_bos()).into_iter().collect();
    tokens.extend(loaded.tokens_of_words(query, false));
    tokens.extend(end);
    tokens.extend(known(vocab.sep(), vocab.should_add_sep()));
    tokens.extend(loaded.tokens_of_words(document, false));
    tokens.extend(end);
    tokens
}

/// The documents by their scores.
pub(crate) fn ranking(model: &str, vectors: &[Vec<f32>], prompt_tokens: u64) -> Reranking {
    let score = |vector: &Vec<f32>| vector.first().copied().unwrap_or(f32::NEG_INFINITY).into();
    let scores =
        vectors.iter().enumerate().map(|(index, vector)| RelevanceScore { index, score: score(vector) });
    Reranking { model: model.to_owned(), scores: scores.collect(), prompt_tokens: Some(prompt_tokens) }
        .sorted()
}
