//! The request body, serialized from [`GenerateRequest`] without a copy of the conversation.

use hob_core::{
    AnswerWarning, GenerateRequest, REASONING_EFFORT, ResponseFormat, ToolChoice, ToolDefinition,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::contents::{Conversation, WireTurn};
use crate::cloud::translate;
use crate::wire::unsupported_field::UnsupportedField;

/// Google's own fields that a caller may add to a request.
const OWN_FIELDS: [&str; 5] = ["cachedContent", GENERATION_CONFIG, "safetySettings", TOP_K, REASONING_EFFORT];

/// Its fields override the ones that Hob writes, because the caller used Google's own names.
const GENERATION_CONFIG: &str = "generationConfig";

/// Not a field of chat completions, but clients send it to every engine.
const TOP_K: &str = "top_k";

/// The request's body.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<WireTurn<'a>>,
    contents: Vec<WireTurn<'a>>,
    generation_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(flatten)]
    own: Map<String, Value>,
    /// The caller's fields that are not sent and have no effect.
    #[serde(skip)]
    pub(super) ignored: Vec<AnswerWarning>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<&'a Value>,
}

/// Translates `request` into Google's format, or names the field that the format lacks.
pub(super) fn body(request: &GenerateRequest) -> Result<Body<'_>, UnsupportedField> {
    translate::refuse([
        ("logprobs", request.sampling.logprobs),
        ("top_logprobs", request.sampling.top_logprobs.is_some()),
    ])?;
    let Conversation { system, turns } = Conversation::of(&request.messages)?;
    let mut own = translate::own_fields(&request.extra, &OWN_FIELDS);
    Ok(Body {
        system_instruction: system,
        contents: turns,
        generation_config: generation_config(request, &mut own)?,
        tools: (!request.tools.is_empty())
            .then(|| [Tools { function_declarations: request.tools.iter().map(function).collect() }]),
        tool_config: tool_config(request),
        own,
        ignored: translate::ignored(request, &OWN_FIELDS)?,
    })
}

fn generation_config(
    request: &GenerateRequest,
    own: &mut Map<String, Value>,
) -> Result<Map<String, Value>, UnsupportedField> {
    let sampling = &request.sampling;
    // Google's seeds have 32 bits.
    if sampling.seed.is_some_and(|seed| i32::try_from(seed).is_err()) {
        return Err(UnsupportedField::because("seed", "a seed has 32 bits in Gemini"));
    }
    let (mime_type, schema) = match &request.response_format {
        ResponseFormat::Text => (None, None),
        ResponseFormat::JsonObject => (Some("application/json"), None),
        ResponseFormat::JsonSchema(schema) => {
            (Some("application/json"), Some(translate::described(schema).into_owned()))
        }
    };
    let stop = (!sampling.stop.is_empty()).then(|| json!(sampling.stop));
    let fields = [
        // Google advises against every temperature but the model's own, so only a temperature that the caller set is
        // sent.
        ("temperature", request.temperature.map(|value| json!(value.get()))),
        ("maxOutputTokens", request.max_tokens().map(|value| json!(value))),
        ("topP", sampling.top_p.map(|value| json!(value))),
        ("topK", own.remove(TOP_K)),
        ("stopSequences", stop),
        ("seed", sampling.seed.map(|value| json!(value))),
        ("presencePenalty", sampling.presence_penalty.map(|value| json!(value))),
        ("frequencyPenalty", sampling.frequency_penalty.map(|value| json!(value))),
        ("candidateCount", sampling.n.map(|value| json!(value))),
        ("responseMimeType", mime_type.map(|value| json!(value))),
        ("responseJsonSchema", schema),
        ("thinkingConfig", thinking(own.remove(REASONING_EFFORT))?),
    ];
    let mut config: Map<String, Value> =
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    match own.remove(GENERATION_CONFIG) {
        None => {}
        Some(Value::Object(additions)) => config.extend(additions),
        Some(_) => return Err(UnsupportedField::because(GENERATION_CONFIG, "it must be an object")),
    }
    Ok(config)
}

/// Google's own translation of an effort. Its models of the third generation accept tokens too.
fn thinking(effort: Option<Value>) -> Result<Option<Value>, UnsupportedField> {
    let Some(effort) = effort else { return Ok(None) };
    let tokens = match effort.as_str() {
        Some("none") => 0,
        Some("minimal" | "low") => 1_024,
        Some("medium") => 8_192,
        Some("high" | "xhigh" | "max") => 24_576,
        _ => {
            let hint = "it is 'none', 'low', 'medium' or 'high'";
            return Err(UnsupportedField::because(REASONING_EFFORT, hint));
        }
    };
    Ok(Some(json!({ "thinkingBudget": tokens })))
}

fn function(definition: &ToolDefinition) -> Function<'_> {
    Function {
        name: &definition.name,
        description: definition.description.as_deref(),
        parameters_json_schema: definition.parameters.as_ref(),
    }
}

fn tool_config(request: &GenerateRequest) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    // In Google's API either all functions are strict or none is. A forced call follows its schema in any case.
    let strict = request.tools.iter().any(|tool| tool.strict == Some(true));
    let config = match &request.tool_choice {
        None | Some(ToolChoice::Auto) if strict => json!({ "mode": "VALIDATED" }),
        None => return None,
        Some(ToolChoice::Auto) => json!({ "mode": "AUTO" }),
        Some(ToolChoice::None) => json!({ "mode": "NONE" }),
        Some(ToolChoice::Required) => json!({ "mode": "ANY" }),
        Some(ToolChoice::Function(name)) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    };
    Some(json!({ "functionCallingConfig": config }))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
