//! How tokens are chosen, in Ollama's words, and what of a caller's unknown fields is Ollama's own.

use hob_core::{GenerateRequest, Sampling, is_annotation};
use serde_json::{Map, Value, json};

use super::request::Unsupported;

/// Fields of Ollama's request that the chat-completions format does not have. `options` is merged into ours.
const OWN_FIELDS: [&str; 3] = ["keep_alive", "options", "think"];

/// Options of Ollama that callers write beside the others, as they do for vLLM and llama.cpp.
const OWN_OPTIONS: [&str; 19] = [
    "main_gpu",
    "min_p",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "num_batch",
    "num_ctx",
    "num_gpu",
    "num_keep",
    "num_predict",
    "num_thread",
    "numa",
    "penalize_newline",
    "repeat_last_n",
    "repeat_penalty",
    "top_k",
    "typical_p",
    "use_mlock",
    "use_mmap",
];

/// The `options` of a request. What the caller says in our fields counts most, then Ollama's names beside them, then the
/// caller's `options`; our defaults only fill what is left.
pub fn options(request: &GenerateRequest) -> Result<Map<String, Value>, Unsupported> {
    let mut options = Map::new();
    options.insert("temperature".to_owned(), json!(request.temperature()));
    options.insert("num_predict".to_owned(), json!(request.max_tokens()));
    match request.extra.get("options") {
        None | Some(Value::Null) => {}
        Some(Value::Object(given)) => options.extend(given.clone()),
        Some(_) => return Err(Unsupported::new("options").because("it must be an object")),
    }
    for (name, value) in wishes(&request.extra) {
        if OWN_OPTIONS.contains(&name.as_str()) {
            options.insert(name.clone(), value.clone());
        } else if !OWN_FIELDS.contains(&name.as_str()) {
            return Err(Unsupported::new(name));
        }
    }
    options.extend(given(request));
    Ok(options)
}

/// Fields that ask for something: clients write `null` for what they leave open, and some only speak of themselves.
fn wishes(extra: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    extra.iter().filter(|(name, value)| !value.is_null() && !is_annotation(name))
}

/// The caller's own values.
fn given(request: &GenerateRequest) -> impl Iterator<Item = (String, Value)> {
    let Sampling {
        top_p,
        stop,
        seed,
        presence_penalty,
        frequency_penalty,
        // Not of the options: refused or written by the request.
        n: _,
        logprobs: _,
        top_logprobs: _,
    } = &request.sampling;
    [
        ("temperature", request.temperature.map(|temperature| json!(temperature.get()))),
        ("num_predict", request.max_tokens.map(|most| json!(most.get()))),
        ("top_p", top_p.map(|value| json!(value))),
        ("seed", seed.map(|value| json!(value))),
        ("stop", (!stop.is_empty()).then(|| json!(stop))),
        ("presence_penalty", presence_penalty.map(|value| json!(value))),
        ("frequency_penalty", frequency_penalty.map(|value| json!(value))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
}
