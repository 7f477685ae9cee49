//! The fields that chat and generate share: options, format, thinking, how long the model stays in memory.

use hob_core::request_budget;
use hob_core::{
    AgentPreference, AnswerWarning, GenerateRequest, JsonSchema, OverBudget, REASONING_EFFORT, ResponseFormat,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::message::WireMessage;
use super::model_name;
use super::options::WireOptions;
use crate::error::{ApiError, ApiResult};
use crate::json::over_budget;
use crate::openai::ignored_fields::IgnoredFields;
use crate::openai::tools::WireTool;
use crate::whole_number::WholeNumber;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Answer,
    /// A request without a question loads the model.
    Load,
    /// The same with `keep_alive: 0` unloads it.
    Unload,
}

/// Whether the answer includes the reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thoughts {
    Shown,
    /// The caller turned thinking off.
    Hidden,
}

/// A valid request.
#[derive(Debug, PartialEq)]
pub(super) struct OllamaRequest {
    pub(super) request: GenerateRequest,
    pub(super) purpose: Purpose,
    pub(super) is_streamed: bool,
    pub(super) thoughts: Thoughts,
    pub(super) agent: AgentPreference,
    /// Fields of the request that have no effect.
    pub(super) warnings: Vec<AnswerWarning>,
}

/// The body of both before it is checked. One type for both, because an error can name a field only if it is no field of a part.
#[derive(Deserialize, Default)]
#[serde(expecting = "an object")]
pub(super) struct WireBody {
    model: Option<String>,
    pub(super) messages: Option<Vec<WireMessage>>,
    pub(super) tools: Option<Vec<WireTool>>,
    pub(super) prompt: Option<String>,
    pub(super) suffix: Option<String>,
    pub(super) system: Option<String>,
    pub(super) template: Option<String>,
    pub(super) raw: Option<bool>,
    pub(super) images: Option<Vec<String>>,
    /// Tokens of an earlier answer, which no other engine could read.
    pub(super) context: Option<Value>,
    stream: Option<bool>,
    format: Option<Value>,
    pub(super) think: Option<Think>,
    keep_alive: Option<Value>,
    options: Option<WireOptions>,
    logprobs: Option<bool>,
    top_logprobs: Option<WholeNumber>,
    /// Hob's own field: the agent that answers this request.
    pub(super) agent: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected true, false, or one of low, medium, high and max")]
pub(super) enum Think {
    Switch(bool),
    Level(String),
}

impl WireBody {
    /// Completes a request that has its messages and tools. Unknown fields have no effect.
    pub(super) fn resolve(
        self,
        mut request: GenerateRequest,
        mut ignored: IgnoredFields,
        is_question: bool,
    ) -> ApiResult<OllamaRequest> {
        request.model = model_name::required(self.model, None)?;
        request.response_format = response_format(self.format)?;
        // Ollama's answers have no limit unless the caller sets one.
        request.defaults.max_tokens = None;
        request.sampling.logprobs = self.logprobs.unwrap_or(false);
        if let Some(options) = self.options {
            options.apply(&mut request, &mut ignored)?;
        }
        let top = self.top_logprobs.map(|WholeNumber(count)| count).filter(|_| request.sampling.logprobs);
        request.sampling.top_logprobs = top.map(top_logprobs).transpose()?;
        let thoughts = match self.think {
            Some(Think::Switch(false)) => Thoughts::Hidden,
            _ => Thoughts::Shown,
        };
        if let Some(effort) = self.think.map(effort).transpose()? {
            request.hints.insert(REASONING_EFFORT.to_owned(), Value::from(effort));
        }
        let mut purpose = if is_question { Purpose::Answer } else { Purpose::Load };
        if let Some(keep_alive) = self.keep_alive.filter(|value| !value.is_null()) {
            let stays = stays_in_memory(&keep_alive)?;
            match purpose {
                Purpose::Answer => drop(request.hints.insert("keep_alive".to_owned(), keep_alive)),
                _ if !stays => purpose = Purpose::Unload,
                _ => ignored.note("keep_alive"),
            }
        }
        for (field, value) in &self.rest {
            if !says_nothing(value) {
                ignored.note(field);
            }
        }
        let agent = AgentPreference::of_field(self.agent);
        request_budget::check_request(&request).map_err(|over| over_budget(as_written(over)))?;
        Ok(OllamaRequest {
            request,
            purpose,
            is_streamed: self.stream.unwrap_or(true),
            thoughts,
            agent,
            warnings: ignored.into_warnings(),
        })
    }
}

/// Clients in Go send every field of a request, the unset ones as empty text, false, or an empty list.
pub(super) fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Names a field as this API does.
fn as_written(over: OverBudget) -> OverBudget {
    let field = match over.field.as_str() {
        "response_format.json_schema.schema" => "format".to_owned(),
        field if field.starts_with("stop") => format!("options.{field}"),
        field => field.replace(".content[", ".images["),
    };
    OverBudget { field, ..over }
}

/// `format` is `json`, a JSON Schema, or nothing.
fn response_format(format: Option<Value>) -> ApiResult<ResponseFormat> {
    match format {
        None | Some(Value::Null) => Ok(ResponseFormat::Text),
        Some(Value::String(word)) if word.is_empty() => Ok(ResponseFormat::Text),
        Some(Value::String(word)) if word == "json" => Ok(ResponseFormat::JsonObject),
        Some(schema @ Value::Object(_)) => Ok(ResponseFormat::JsonSchema(JsonSchema {
            name: "answer".to_owned(),
            description: None,
            schema,
            strict: None,
        })),
        Some(_) => Err(ApiError::invalid("format", "format: expected \"json\" or a JSON Schema")),
    }
}

/// What `think` means for a model. A model that cannot think answers without.
fn effort(think: Think) -> ApiResult<&'static str> {
    match think {
        Think::Switch(false) => Ok("none"),
        Think::Switch(true) => Ok("medium"),
        Think::Level(level) => match level.as_str() {
            "low" => Ok("low"),
            "medium" => Ok("medium"),
            "high" | "max" => Ok("high"),
            other => {
                let message = format!("think: expected true, false, low, medium, high or max, got '{other}'");
                Err(ApiError::invalid("think", message))
            }
        },
    }
}

fn top_logprobs(count: i64) -> ApiResult<u32> {
    let most = u32::try_from(request_budget::TOP_LOGPROBS).unwrap_or(u32::MAX);
    u32::try_from(count).ok().filter(|count| *count <= most).ok_or_else(|| {
        ApiError::invalid("top_logprobs", format!("top_logprobs must be between 0 and {most}, got {count}"))
    })
}

/// Whether a model stays in memory after a request: `keep_alive` is a number of seconds or a text such as `5m`, and zero unloads it.
fn stays_in_memory(keep_alive: &Value) -> ApiResult<bool> {
    let seconds = match keep_alive {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => duration_sign(text),
        _ => None,
    };
    seconds.map(|seconds| seconds != 0.0).ok_or_else(|| {
        let message = "keep_alive: expected a number of seconds, or a text such as \"5m\"";
        ApiError::invalid("keep_alive", message)
    })
}

/// A duration such as `1h30m`, `300ms` or `-1` as a number that is zero if the duration is.
fn duration_sign(text: &str) -> Option<f64> {
    let magnitude = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Ok(number) = magnitude.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    let mut rest = magnitude;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        // The longer units first: `ms` begins like `m`.
        let unit =
            ["ns", "us", "µs", "ms", "s", "m", "h"].into_iter().find(|unit| rest[end..].starts_with(unit))?;
        sum += number;
        rest = &rest[end + unit.len()..];
    }
    (!magnitude.is_empty()).then_some(sum)
}
