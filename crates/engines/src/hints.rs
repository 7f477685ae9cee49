//! Which hints of a caller an engine can follow, and under which names it takes them. One row per engine; what is in no row is left
//! out with a warning.

use hob_core::engine::CLOUD;
use hob_core::{AnswerWarning, GenerateRequest};
use serde_json::{Map, Value, json};

use crate::ollama::options::{OWN_OPTIONS, REASONING_EFFORT};

/// The field with the variables of a chat template.
const TEMPLATE_VARIABLES: &str = "chat_template_kwargs";

/// Sampling that llama.cpp knows beyond the chat-completions API.
const OF_LLAMACPP: [&str; 8] = [
    "min_p",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "repeat_last_n",
    "repeat_penalty",
    "top_k",
    "typical_p",
];
/// More tokens than any context has.
const WHOLE_CONTEXT: u32 = u32::MAX;

const OF_EMBEDDED: [&str; 4] = ["min_p", "repeat_last_n", "repeat_penalty", "top_k"];

/// Adds what this engine can follow of the request's hints to its fields. A field that the caller sent itself stays. Returns what the
/// engine cannot follow.
pub fn place_hints(request: &mut GenerateRequest, engine: &str) -> Vec<AnswerWarning> {
    if request.hints.is_empty() {
        return Vec::new();
    }
    let Placed { fields, ignored } = Placed::of(&request.hints, &request.model, engine);
    for (name, value) in fields {
        request.extra.entry(name).or_insert(value);
    }
    ignored.into_iter().map(AnswerWarning::Ignored).collect()
}

/// Takes back what [`place_hints`] added to a request's fields for the first of two engines, and adds what the second can follow.
pub(crate) fn move_hints(
    (extra, hints): (&mut Map<String, Value>, &Map<String, Value>),
    model: &str,
    [from, to]: [&str; 2],
) {
    for (name, value) in Placed::of(hints, model, from).fields {
        if extra.get(&name) == Some(&value) {
            extra.remove(&name);
        }
    }
    for (name, value) in Placed::of(hints, model, to).fields {
        extra.entry(name).or_insert(value);
    }
}

/// The hints of a request as fields of an engine.
struct Placed {
    fields: Map<String, Value>,
    /// The names of the hints that it cannot follow.
    ignored: Vec<String>,
}

impl Placed {
    fn of(hints: &Map<String, Value>, model: &str, engine: &str) -> Self {
        let mut placed = Placed { fields: Map::new(), ignored: Vec::new() };
        for (name, value) in hints {
            let field = match (engine, name.as_str()) {
                ("ollama", REASONING_EFFORT | "keep_alive") => Some(name.as_str()),
                ("ollama", name) if OWN_OPTIONS.contains(&name) => Some(name),
                ("vllm" | "sglang", "top_k" | "min_p") => Some(name.as_str()),
                ("vllm" | "sglang", "repeat_penalty") => Some("repetition_penalty"),
                ("llamacpp", name) if OF_LLAMACPP.contains(&name) => Some(name),
                ("embedded", name) if OF_EMBEDDED.contains(&name) => Some(name),
                ("vllm" | "sglang" | "llamacpp" | "embedded", REASONING_EFFORT) => {
                    placed.reason_by_template(engine, value);
                    continue;
                }
                (CLOUD, "top_k") if ["claude", "gemini"].iter().any(|family| model.contains(family)) => {
                    Some(name.as_str())
                }
                (CLOUD, REASONING_EFFORT) if is_openai_reasoning_model(model) => Some(name.as_str()),
                _ => None,
            };
            // Below zero it means the whole context, which the embedded engine writes as a large number.
            let value = match (engine, name.as_str(), value.as_i64()) {
                ("embedded", "repeat_last_n", Some(..0)) => json!(WHOLE_CONTEXT),
                _ => value.clone(),
            };
            match field {
                Some(field) => drop(placed.fields.insert(field.to_owned(), value)),
                None => placed.ignored.push(name.clone()),
            }
        }
        placed
    }

    /// Templates of models that think have a variable that turns it off, and some have one for the effort.
    fn reason_by_template(&mut self, engine: &str, effort: &Value) {
        let is_on = effort != "none";
        let mut variables = Map::from_iter([("enable_thinking".to_owned(), json!(is_on))]);
        match engine {
            _ if !is_on => {}
            "vllm" | "sglang" => drop(self.fields.insert(REASONING_EFFORT.to_owned(), effort.clone())),
            _ => drop(variables.insert(REASONING_EFFORT.to_owned(), effort.clone())),
        }
        self.fields.insert(TEMPLATE_VARIABLES.to_owned(), Value::Object(variables));
    }
}

/// OpenAI's other models refuse an effort.
fn is_openai_reasoning_model(model: &str) -> bool {
    let generation = |prefix: &str| -> Option<u32> {
        let digits = model.strip_prefix(prefix)?.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    generation("o").is_some() || generation("gpt-").is_some_and(|generation| generation >= 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    fn asking(model: &str, hints: Value) -> GenerateRequest {
        GenerateRequest { model: model.into(), hints: fields(hints), ..GenerateRequest::default() }
    }

    /// The fields that an engine gets, and the warnings.
    fn placed(engine: &str, model: &str, hints: Value) -> (Value, Vec<String>) {
        let mut request = asking(model, hints);
        let warnings = place_hints(&mut request, engine);
        (Value::Object(request.extra), warnings.iter().map(|warning| warning.text().into_owned()).collect())
    }

    #[test]
    fn every_engine_gets_what_it_knows_by_its_own_name() {
        let hints = json!({ "top_k": 5, "repeat_penalty": 1.1, "num_ctx": 4096 });
        let ignored = |names: &[&str]| names.iter().map(|name| format!("ignored={name}")).collect::<Vec<_>>();
        assert_eq!(placed("ollama", "m", hints.clone()), (hints.clone(), Vec::new()));
        assert_eq!(
            placed("vllm", "m", hints.clone()),
            (json!({ "top_k": 5, "repetition_penalty": 1.1 }), ignored(&["num_ctx"]))
        );
        for engine in ["llamacpp", "embedded"] {
            let expected = (json!({ "top_k": 5, "repeat_penalty": 1.1 }), ignored(&["num_ctx"]));
            assert_eq!(placed(engine, "m", hints.clone()), expected, "{engine}");
        }
        assert_eq!(
            placed(CLOUD, "claude-x", hints.clone()),
            (json!({ "top_k": 5 }), ignored(&["repeat_penalty", "num_ctx"]))
        );
        let all = ignored(&["top_k", "repeat_penalty", "num_ctx"]);
        assert_eq!(placed(CLOUD, "gpt-4o", hints.clone()), (json!({}), all.clone()));
        assert_eq!(placed("litellm", "m", hints), (json!({}), all));
    }

    #[test]
    fn a_penalty_over_the_whole_context_is_one_in_every_engine() {
        let all = json!({ "repeat_last_n": -1 });
        assert_eq!(placed("ollama", "m", all.clone()).0, all);
        assert_eq!(placed("embedded", "m", all).0, json!({ "repeat_last_n": u32::MAX }));
    }

    #[test]
    fn an_effort_is_a_variable_of_the_template_where_models_have_one() {
        let effort = |level: &str| json!({ "reasoning_effort": level });
        assert_eq!(placed("ollama", "m", effort("high")).0, effort("high"));
        assert_eq!(
            placed("embedded", "m", effort("low")).0,
            json!({ "chat_template_kwargs": { "enable_thinking": true, "reasoning_effort": "low" } })
        );
        assert_eq!(
            placed("vllm", "m", effort("low")).0,
            json!({ "reasoning_effort": "low", "chat_template_kwargs": { "enable_thinking": true } })
        );
        for engine in ["vllm", "sglang", "llamacpp", "embedded"] {
            let off = json!({ "chat_template_kwargs": { "enable_thinking": false } });
            assert_eq!(placed(engine, "m", effort("none")).0, off, "{engine}");
        }
    }

    #[test]
    fn openai_gets_an_effort_for_models_that_reason() {
        for (model, reasons) in
            [("o3-mini", true), ("gpt-5", true), ("gpt-6.1-sol", true), ("gpt-4o", false), ("opus", false)]
        {
            let (extra, _) = placed(CLOUD, model, json!({ "reasoning_effort": "low" }));
            assert_eq!(extra.get("reasoning_effort").is_some(), reasons, "{model}");
        }
    }

    #[test]
    fn a_field_of_the_caller_overrides_a_hint() {
        let mut request = asking("m", json!({ "top_k": 5 }));
        request.extra = fields(json!({ "top_k": 7 }));
        assert_eq!(place_hints(&mut request, "vllm"), Vec::new());
        assert_eq!(request.extra, fields(json!({ "top_k": 7 })));
    }

    #[test]
    fn hints_follow_a_request_to_another_engine() {
        let mut request = asking("m", json!({ "repeat_penalty": 1.1, "num_ctx": 4096 }));
        request.extra = fields(json!({ "user": "ann" }));
        place_hints(&mut request, "ollama");
        move_hints((&mut request.extra, &request.hints), "m", ["ollama", "vllm"]);
        assert_eq!(request.extra, fields(json!({ "user": "ann", "repetition_penalty": 1.1 })));
    }
}
