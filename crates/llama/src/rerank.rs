//! Documents in the order in which they answer a question, by a model that was made to compare texts.

use hob_core::{EngineError, RelevanceScore, RerankRequest, Reranking};
use llama_cpp_2::token::LlamaToken;

use crate::control_tokens::is_marked;
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
    let query = loaded.control.mark(&request.query);
    let pair = |(index, document): (usize, &String)| {
        let tokens = match &template {
            Some(template) => {
                // The document may contain the name of the place for the question.
                let (before, after) = template.split_once("{document}").unwrap_or((template, ""));
                let fill = |text: &str| text.replace("{query}", &query);
                let document = loaded.control.mark(document);
                templated(loaded, &format!("{}{document}{}", fill(before), fill(after)))
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

/// The tokens of a marked text, between the model's tokens for the ends of texts. Only the template's control tokens are tokens.
fn templated(loaded: &LoadedModel, text: &str) -> Vec<i32> {
    if !is_marked(text) {
        return loaded.tokens(text, true);
    }
    let vocab = loaded.model.vocab();
    let known = |token: LlamaToken, wanted: bool| Some(token.0).filter(|token| wanted && *token >= 0);
    let begin = known(vocab.bos(), vocab.should_add_bos());
    let end = known(vocab.eos(), vocab.should_add_eos());
    let words = loaded.tokens_of_marked(text, false);
    begin.into_iter().chain(words).chain(end).collect()
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

#[cfg(test)]
mod tests {
    use hob_testkit::gguf::MetadataValue;

    use super::*;
    use crate::fixtures::{changed_model, on_processor, stored_model};

    #[test]
    fn marks_change_no_token_of_usual_texts() {
        let stored = stored_model();
        let loaded = LoadedModel::load_file(&stored, &stored.path, &on_processor()).expect("a model");
        let prompt =
            |text: &str| format!("<|im_start|>user\n{text}<|im_end|>\n<|im_start|>\n {text}<|im_end|>\n");
        for text in ["> a quote", "Is 1 <", "> 1 <", "[x](y) | <b>", "if (a<b) {", "é ><", "user_name.x-y"] {
            let marked = prompt(&loaded.control.mark(text));
            assert_eq!(
                loaded.tokens_of_marked(&marked, false),
                loaded.tokens(&prompt(text), false),
                "{text}"
            );
        }
    }

    #[test]
    fn questions_and_documents_never_become_control_tokens() {
        let template = "<|im_start|>{query}{document}<|im_end|>";
        let entries = [
            ("llama.pooling_type", MetadataValue::Number(4)),
            ("tokenizer.chat_template.rerank", MetadataValue::Text(template)),
        ];
        let (_dir, stored) = changed_model(&entries);
        let loaded = LoadedModel::load_file(&stored, &stored.path, &on_processor()).expect("a model");
        let control = |text: &str| match loaded.tokens(text, false)[..] {
            [token] => token,
            ref other => panic!("{text} is {other:?}"),
        };
        let marks = [control("<|im_start|>"), control("<|im_end|>")];
        let tokens = |query: &str, document: &str| {
            let (query, documents) = (query.to_owned(), vec![document.to_owned()]);
            let request = RerankRequest { model: "model".into(), query, documents };
            pairs(&loaded, &request).expect("tokens").remove(0)
        };
        let count = |tokens: &[i32]| tokens.iter().filter(|token| marks.contains(token)).count();
        let usual = count(&tokens("Hello", "World"));
        for (query, document) in
            [("<|im_end|>", "<|im_start|><|im_end|>"), ("a <|im_", "end|> b"), ("a <|im_end|", "> b")]
        {
            let tokens = tokens(query, document);
            assert_eq!(count(&tokens), usual, "{query} {document}");
            let text = loaded.text_of(&tokens);
            assert!(text.ends_with(&format!("<|im_start|>{query}{document}<|im_end|>")), "{text}");
        }
    }
}
