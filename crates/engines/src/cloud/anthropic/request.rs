//! The request body, serialized from [`GenerateRequest`] without a copy of the conversation.

use hob_core::{
    AnswerWarning, GenerateRequest, REASONING_EFFORT, ReplyMode, ResponseFormat, ToolChoice, ToolDefinition,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::messages::{Block, Conversation, WireTurn};
use crate::cloud::translate;
use crate::wire::unsupported_field::UnsupportedField;

/// Anthropic's own fields that a caller may add to a request. `output_config` is merged with the field that a
/// response format becomes.
const OWN_FIELDS: [&str; 8] = [
    "cache_control",
    "container",
    "inference_geo",
    "metadata",
    "output_config",
    "service_tier",
    "thinking",
    "top_k",
];

/// The request's body.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<WireTurn<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(flatten)]
    own: Map<String, Value>,
    /// The caller's fields that are not sent and have no effect.
    #[serde(skip)]
    pub(super) ignored: Vec<AnswerWarning>,
}

#[derive(Debug, Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// Translates `request` into Anthropic's format, or names the field that the format lacks.
pub(super) fn body(
    request: &GenerateRequest,
    reply_mode: ReplyMode,
    max_tokens: u32,
) -> Result<Body<'_>, UnsupportedField> {
    let sampling = &request.sampling;
    translate::refuse([
        ("n", request.answers() > 1),
        ("logprobs", sampling.logprobs),
        ("top_logprobs", sampling.top_logprobs.is_some()),
        ("seed", sampling.seed.is_some()),
        ("presence_penalty", translate::is_set(sampling.presence_penalty)),
        ("frequency_penalty", translate::is_set(sampling.frequency_penalty)),
    ])?;
    // Newer models reject every temperature but their own, so only a temperature that the caller set is sent.
    let temperature = request.temperature.map(|temperature| temperature.get());
    if temperature.is_some_and(|temperature| temperature > 1.0) {
        return Err(UnsupportedField::because("temperature", "Anthropic accepts 0.0 to 1.0"));
    }
    let Conversation { system, turns } = Conversation::of(&request.messages)?;
    Ok(Body {
        model: &request.model,
        max_tokens,
        system,
        messages: turns,
        stream: reply_mode == ReplyMode::Streamed,
        temperature,
        top_p: sampling.top_p,
        stop_sequences: &sampling.stop,
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: tool_choice(request),
        own: own(request)?,
        ignored: translate::ignored(request, &[&OWN_FIELDS[..], &[REASONING_EFFORT]].concat())?,
    })
}

fn tool(definition: &ToolDefinition) -> Tool<'_> {
    Tool {
        name: &definition.name,
        description: definition.description.as_deref(),
        // Anthropic requires a schema even for a tool without parameters.
        input_schema: definition
            .parameters
            .clone()
            .unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
        strict: definition.strict.filter(|strict| *strict),
    }
}

fn tool_choice(request: &GenerateRequest) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    let one_at_a_time = request.parallel_tool_calls == Some(false);
    let mut choice = match &request.tool_choice {
        None if !one_at_a_time => return None,
        None | Some(ToolChoice::Auto) => json!({ "type": "auto" }),
        Some(ToolChoice::Required) => json!({ "type": "any" }),
        Some(ToolChoice::Function(name)) => json!({ "type": "tool", "name": name }),
        // The model calls no tool, so a limit on parallel calls has no meaning.
        Some(ToolChoice::None) => return Some(json!({ "type": "none" })),
    };
    if one_at_a_time {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(choice)
}

/// The caller's Anthropic fields, with the response format, which is part of `output_config`.
fn own(request: &GenerateRequest) -> Result<Map<String, Value>, UnsupportedField> {
    let mut own = translate::own_fields(&request.extra, &OWN_FIELDS);
    for (name, value) in &request.anthropic {
        own.entry(name).or_insert_with(|| value.clone());
    }
    think(&mut own, request.extra.get(REASONING_EFFORT))?;
    let format = match &request.response_format {
        ResponseFormat::Text => return Ok(own),
        ResponseFormat::JsonObject => {
            return Err(UnsupportedField::because(
                "response_format",
                "Anthropic returns JSON only with a schema; use the type json_schema",
            ));
        }
        ResponseFormat::JsonSchema(schema) => {
            json!({ "type": "json_schema", "schema": translate::described(schema) })
        }
    };
    match own.entry("output_config").or_insert_with(|| json!({})) {
        Value::Object(config) => {
            config.insert("format".to_owned(), format);
            Ok(own)
        }
        _ => Err(UnsupportedField::because("output_config", "it must be an object")),
    }
}

/// Places the effort of chat completions, unless the caller used Anthropic's own fields for it.
fn think(own: &mut Map<String, Value>, effort: Option<&Value>) -> Result<(), UnsupportedField> {
    let Some(effort) = effort.filter(|effort| !effort.is_null()) else { return Ok(()) };
    let says_so =
        own.contains_key("thinking") || own.get("output_config").is_some_and(|it| !it["effort"].is_null());
    if says_so {
        return Ok(());
    }
    let level = match effort.as_str() {
        Some("none") => {
            own.insert("thinking".to_owned(), json!({ "type": "disabled" }));
            return Ok(());
        }
        Some("minimal") => "low",
        Some(level @ ("low" | "medium" | "high" | "xhigh" | "max")) => level,
        _ => {
            let hint = "Anthropic accepts 'none', 'low', 'medium', 'high', 'xhigh' and 'max'";
            return Err(UnsupportedField::because(REASONING_EFFORT, hint));
        }
    };
    if let Value::Object(config) = own.entry("output_config").or_insert_with(|| json!({})) {
        config.insert("effort".to_owned(), json!(level));
    }
    Ok(())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
