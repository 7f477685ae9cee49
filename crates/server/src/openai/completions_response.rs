//! The body of a text completion that is not streamed, and token probabilities in its older form.

use hob_core::{Answer, Generation};
use serde::Serialize;
use serde_json::{Map, Value};

use super::chat_response::WireUsage;

/// What the bodies and the chunks of one answer share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompletionForm<'a> {
    pub(crate) id: &'a str,
    pub(crate) created: u64,
    /// How many alternatives of a token the caller asked for. Some engines send more.
    pub(crate) alternatives: usize,
}

/// The body.
#[derive(Debug, Serialize)]
pub(crate) struct TextCompletion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    usage: WireUsage,
}

#[derive(Debug, Serialize)]
struct Choice<'a> {
    text: &'a str,
    index: usize,
    logprobs: Option<LegacyLogprobs>,
    finish_reason: &'a str,
}

impl<'a> TextCompletion<'a> {
    pub(crate) fn new(form: CompletionForm<'a>, generation: &'a Generation) -> Self {
        let choice = |(index, answer): (usize, &'a Answer)| Choice {
            text: &answer.content,
            index,
            logprobs: answer
                .logprobs
                .as_ref()
                .and_then(|logprobs| LegacyLogprobs::read(logprobs, form.alternatives, &mut 0)),
            finish_reason: answer.finish_reason.as_str(),
        };
        TextCompletion {
            id: form.id,
            object: "text_completion",
            created: form.created,
            model: &generation.model,
            choices: generation.answers().enumerate().map(choice).collect(),
            usage: generation.usage.map(WireUsage::from).unwrap_or_default(),
        }
    }
}

/// Four lists with one entry for each token.
#[derive(Debug, Serialize, PartialEq, Default)]
pub(crate) struct LegacyLogprobs {
    tokens: Vec<String>,
    /// Null for the first token of an echoed prompt.
    token_logprobs: Vec<Value>,
    top_logprobs: Vec<Option<Map<String, Value>>>,
    /// Where the token begins in the text, in characters.
    text_offset: Vec<usize>,
}

impl LegacyLogprobs {
    /// From the form of chat completions. `offset` is where the first token begins, and then where the next one does. `None`
    /// where there are none.
    pub(crate) fn read(logprobs: &Value, alternatives: usize, offset: &mut usize) -> Option<Self> {
        let content = logprobs.get("content")?.as_array()?;
        let mut lists = LegacyLogprobs::default();
        for entry in content {
            let token = entry.get("token").and_then(Value::as_str).unwrap_or_default();
            lists.text_offset.push(*offset);
            *offset += token.chars().count();
            lists.tokens.push(token.to_owned());
            let logprob = entry.get("logprob").cloned().unwrap_or_default();
            lists.top_logprobs.push(match logprob.is_null() {
                true => None,
                false => Some(top(entry, alternatives)),
            });
            lists.token_logprobs.push(logprob);
        }
        Some(lists)
    }
}

fn top(entry: &Value, alternatives: usize) -> Map<String, Value> {
    let listed = entry.get("top_logprobs").and_then(Value::as_array).into_iter().flatten();
    listed
        .take(alternatives)
        .filter_map(|token| Some((token.get("token")?.as_str()?.to_owned(), token.get("logprob")?.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn probabilities_have_the_form_of_text_completions() {
        let chat = json!({ "content": [
            { "token": "é", "logprob": null, "top_logprobs": [] },
            { "token": " b", "logprob": -0.5, "top_logprobs": [
                { "token": " b", "logprob": -0.5 }, { "token": " c", "logprob": -2.0 },
            ] },
        ] });
        let mut offset = 3;
        let lists = LegacyLogprobs::read(&chat, 1, &mut offset).unwrap();
        assert_eq!(
            serde_json::to_value(lists).unwrap(),
            json!({
                "tokens": ["é", " b"], "token_logprobs": [null, -0.5], "top_logprobs": [null, { " b": -0.5 }],
                "text_offset": [3, 4],
            })
        );
        assert_eq!(offset, 6);
    }
}
