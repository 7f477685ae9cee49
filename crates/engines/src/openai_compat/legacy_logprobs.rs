//! Token probabilities in the form of text completions, turned into that of chat completions. Every other part of Hob
//! knows only the latter.

use serde_json::{Map, Value, json};

/// The same probabilities as `{"content": […]}`. A value in that form already, as llama.cpp sends it, stays as it is.
pub(super) fn in_chat_form(logprobs: Value) -> Value {
    let Some(tokens) = logprobs.get("tokens").and_then(Value::as_array) else { return logprobs };
    let list = |name: &str| logprobs.get(name).and_then(Value::as_array);
    let (chosen, alternatives) = (list("token_logprobs"), list("top_logprobs"));
    let at = |list: Option<&Vec<Value>>, index: usize| {
        list.and_then(|list| list.get(index)).cloned().unwrap_or_default()
    };
    let content: Vec<Value> = (0..tokens.len())
        .map(|index| {
            let top = match at(alternatives, index) {
                Value::Object(top) => best_first(top),
                _ => Vec::new(),
            };
            json!({
                "token": tokens[index],
                // Of the first token of an echoed prompt nothing is known.
                "logprob": at(chosen, index),
                "bytes": tokens[index].as_str().map(str::as_bytes),
                "top_logprobs": top,
            })
        })
        .collect();
    json!({ "content": content })
}

/// The order of an object's members means nothing.
fn best_first(top: Map<String, Value>) -> Vec<Value> {
    let mut top: Vec<(String, f64)> =
        top.into_iter().filter_map(|(token, logprob)| Some((token, logprob.as_f64()?))).collect();
    top.sort_by(|one, other| other.1.total_cmp(&one.1));
    top.into_iter()
        .map(|(token, logprob)| json!({ "token": token, "logprob": logprob, "bytes": token.as_bytes() }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_a_text_completion_become_one_entry_for_each_token() {
        let legacy = json!({
            "tokens": ["a", "b"],
            "token_logprobs": [null, -0.5],
            "top_logprobs": [null, { "c": -2.0, "b": -0.5 }],
            "text_offset": [0, 1],
        });
        assert_eq!(
            in_chat_form(legacy),
            json!({ "content": [
                { "token": "a", "logprob": null, "bytes": [97], "top_logprobs": [] },
                { "token": "b", "logprob": -0.5, "bytes": [98], "top_logprobs": [
                    { "token": "b", "logprob": -0.5, "bytes": [98] },
                    { "token": "c", "logprob": -2.0, "bytes": [99] },
                ] },
            ] })
        );
        let chat = json!({ "content": [{ "token": "a", "logprob": -1.0 }] });
        assert_eq!(in_chat_form(chat.clone()), chat);
    }
}
