//! Sampling options under Ollama's names, what it does with a text that its context cannot hold, and which additional fields of a
//! caller belong to Ollama.

use hob_core::{GenerateRequest, REASONING_EFFORT, Sampling};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::wire::unsupported_field::UnsupportedField;

/// Additional fields that Ollama's request has. `options` is merged with Hob's options, and the reasoning effort
/// becomes `think`.
pub const OWN_FIELDS: [&str; 6] = ["keep_alive", "options", "shift", "think", "truncate", REASONING_EFFORT];

/// Ollama's options that callers send at the top level, as for vLLM and llama.cpp.
pub const OWN_OPTIONS: [&str; 19] = [
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

/// What Ollama does if the context is full. By default, it drops the oldest messages or the beginning of the text without saying
/// so. Versions that do not know these fields ignore them.
#[derive(Debug, Serialize)]
pub(super) struct FullContext<'a> {
    /// Whether a prompt that is too long is shortened.
    truncate: &'a Value,
    /// Whether the beginning is dropped when the answer fills the context. Otherwise the answer ends there.
    shift: &'a Value,
}

impl<'a> FullContext<'a> {
    /// As the caller wants it, whose additional fields are `extra`.
    pub(super) fn of(extra: &'a Map<String, Value>) -> Self {
        let own =
            |name: &str| extra.get(name).filter(|value| !value.is_null()).unwrap_or(&Value::Bool(false));
        FullContext { truncate: own("truncate"), shift: own("shift") }
    }
}

/// The context that the caller chose, in tokens.
pub(super) fn chosen_context(request: &GenerateRequest) -> Option<u64> {
    options(request, 0).ok()?.get("num_ctx")?.as_u64()
}

/// The `options` of the request for the answer with the index `answer`. The caller's chat-completions fields override
/// Ollama's names at the top level, these override the caller's `options`, and these override Hob's defaults.
pub fn options(request: &GenerateRequest, answer: u32) -> Result<Map<String, Value>, UnsupportedField> {
    let mut options = Map::new();
    let defaults = [
        ("temperature", request.temperature().map(|value| json!(value))),
        ("num_predict", request.max_tokens().map(|value| json!(value))),
    ];
    options.extend(defaults.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    match request.extra.get("options") {
        None | Some(Value::Null) => {}
        Some(Value::Object(given)) => options.extend(given.clone()),
        Some(_) => return Err(UnsupportedField::because("options", "it must be an object")),
    }
    let beside =
        request.extra.iter().filter(|(name, value)| OWN_OPTIONS.contains(&name.as_str()) && !value.is_null());
    options.extend(beside.map(|(name, value)| (name.clone(), value.clone())));
    options.extend(given(request, answer));
    Ok(options)
}

/// The values that the caller set.
fn given(request: &GenerateRequest, answer: u32) -> impl Iterator<Item = (String, Value)> {
    let Sampling {
        top_p,
        stop,
        seed,
        presence_penalty,
        frequency_penalty,
        // Not part of `options`: these are fields of the request, or decide how many requests are sent.
        n: _,
        logprobs: _,
        top_logprobs: _,
    } = &request.sampling;
    [
        ("temperature", request.temperature.map(|temperature| json!(temperature.get()))),
        ("num_predict", request.max_tokens.map(|most| json!(most.get()))),
        ("top_p", top_p.map(|value| json!(value))),
        // The same seed would give the same answer again.
        ("seed", seed.map(|value| json!(value.wrapping_add(i64::from(answer))))),
        ("stop", (!stop.is_empty()).then(|| json!(stop))),
        ("presence_penalty", presence_penalty.map(|value| json!(value))),
        ("frequency_penalty", frequency_penalty.map(|value| json!(value))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
}
