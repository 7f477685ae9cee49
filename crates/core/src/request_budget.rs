//! The request budget: how much a caller may send, field by field. What passes here can still be refused by an engine, but
//! its size and shape can no longer exhaust one.
//!
//! The limits lie far above what real clients send. All checks are iterative: the depth of a caller's input never becomes the
//! depth of our stack. Knows nothing of HTTP; the server turns [`OverBudget`] into a 400.

mod json_values;
mod references;
mod schema;
mod schema_steps;

use std::fmt;

use serde_json::{Map, Value};

use crate::generate::{GenerateRequest, ResponseFormat};
use crate::message::Content;

pub use json_values::{check_body_values, json_values};
pub use schema::check_schema;
pub use schema_steps::can_collect_errors;

/// Values of a JSON body: each object, array, string, number, `true`, `false` and `null` counts. A value of two bytes takes more than a
/// hundred once it is read.
pub const BODY_VALUES: usize = 100_000;
/// Levels of nesting of a JSON body. The JSON reader enforces it.
pub const BODY_DEPTH: usize = 127;
/// Values in all fields of a request that Hob gives no meaning to.
pub const EXTRA_VALUES: usize = 20_000;

pub const MODEL_NAME_CHARS: usize = 512;
pub const MESSAGES: usize = 20_000;
pub const MESSAGE_PARTS: usize = 4_096;
/// Length of the `name` of a message, and of the name of a function that it calls.
pub const MESSAGE_NAME_CHARS: usize = 512;
pub const MESSAGE_TOOL_CALLS: usize = 1_024;

pub const TOOLS: usize = 1_024;
pub const TOOL_NAME_CHARS: usize = 256;
pub const TOOL_DESCRIPTION_CHARS: usize = 65_536;

pub const STOPS: usize = 64;
pub const STOP_CHARS: usize = 1_024;
pub const LOGIT_BIASES: usize = 4_096;
/// Answers to one question.
pub const ANSWERS: usize = 128;
pub const TOP_LOGPROBS: usize = 20;
/// The largest 32-bit number, which some clients send for "no limit".
pub const TOP_K: usize = 2_147_483_647;

/// Values of one JSON Schema, counted as in a body.
pub const SCHEMA_VALUES: usize = 20_000;
/// Levels of nesting of a schema as it is written. An object within an object takes two.
pub const SCHEMA_DEPTH: usize = 64;
/// Levels of nesting once every `$ref` is followed to what has been seen before.
pub const SCHEMA_FOLLOWED_DEPTH: usize = 512;
/// Values of a schema if every `$ref` were replaced by a copy of what it names.
pub const SCHEMA_EXPANDED_VALUES: usize = 250_000;
/// Properties (or definitions) of one object.
pub const SCHEMA_PROPERTIES: usize = 1_000;
/// Length of the name of a property or definition, and of a `$ref`.
pub const SCHEMA_NAME_CHARS: usize = 512;
pub const SCHEMA_PATTERN_CHARS: usize = 4_096;
/// Values of one `enum`.
pub const ENUM_VALUES: usize = 2_000;
/// Text of all `enum` and `const` values of a schema together.
pub const ENUM_BYTES: usize = 262_144;
/// Length of the name of a response format's schema.
pub const SCHEMA_TITLE_CHARS: usize = 256;
pub const SCHEMA_DESCRIPTION_CHARS: usize = 65_536;

pub const PROMPTS: usize = 256;
/// Answers to all prompts together.
pub const TEXT_ANSWERS: usize = 1_024;

pub const EMBEDDING_INPUTS: usize = 2_048;
/// Inputs of Ollama's `/api/embed`, whose clients send all texts at once. An engine gets them in several requests.
pub const OLLAMA_EMBEDDING_INPUTS: usize = 4 * EMBEDDING_INPUTS;
/// Tokens of all inputs together, where they are sent as numbers.
pub const EMBEDDING_TOKENS: usize = 4_000_000;

/// A row of the table of limits in the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub field: &'static str,
    pub what: &'static str,
    pub most: usize,
}

/// All limits, in the order in which the documentation lists them.
pub const LIMITS: &[Limit] = &[
    Limit { field: "any body", what: "JSON values", most: BODY_VALUES },
    Limit { field: "any body", what: "levels of nesting", most: BODY_DEPTH },
    Limit { field: "fields that Hob does not know", what: "JSON values in all of them", most: EXTRA_VALUES },
    Limit { field: "`model`", what: "characters", most: MODEL_NAME_CHARS },
    Limit { field: "`messages`", what: "messages", most: MESSAGES },
    Limit { field: "`messages[].content`", what: "parts", most: MESSAGE_PARTS },
    Limit { field: "`messages[].name`", what: "characters", most: MESSAGE_NAME_CHARS },
    Limit { field: "`messages[].tool_calls`", what: "calls", most: MESSAGE_TOOL_CALLS },
    Limit {
        field: "`messages[].tool_calls[].function.arguments`",
        what: "JSON values in all of them",
        most: BODY_VALUES,
    },
    Limit { field: "`tools`", what: "tools", most: TOOLS },
    Limit { field: "`tools[].function.name`", what: "characters", most: TOOL_NAME_CHARS },
    Limit { field: "`tools[].function.description`", what: "characters", most: TOOL_DESCRIPTION_CHARS },
    Limit { field: "`stop`", what: "sequences", most: STOPS },
    Limit { field: "`stop[]`", what: "characters", most: STOP_CHARS },
    Limit { field: "`logit_bias`", what: "entries", most: LOGIT_BIASES },
    Limit { field: "`n`", what: "answers", most: ANSWERS },
    Limit { field: "`top_logprobs`", what: "alternatives", most: TOP_LOGPROBS },
    Limit { field: "`top_k`", what: "value", most: TOP_K },
    Limit { field: "a JSON Schema", what: "values", most: SCHEMA_VALUES },
    Limit { field: "a JSON Schema", what: "levels of nesting", most: SCHEMA_DEPTH },
    Limit {
        field: "a JSON Schema",
        what: "levels of nesting, every `$ref` followed",
        most: SCHEMA_FOLLOWED_DEPTH,
    },
    Limit { field: "a JSON Schema", what: "values, every `$ref` copied", most: SCHEMA_EXPANDED_VALUES },
    Limit {
        field: "a JSON Schema",
        what: "properties or definitions of one object",
        most: SCHEMA_PROPERTIES,
    },
    Limit { field: "a JSON Schema", what: "characters of a name or `$ref`", most: SCHEMA_NAME_CHARS },
    Limit { field: "a JSON Schema", what: "characters of a `pattern`", most: SCHEMA_PATTERN_CHARS },
    Limit { field: "a JSON Schema", what: "values of one `enum`", most: ENUM_VALUES },
    Limit { field: "a JSON Schema", what: "bytes of all `enum` and `const` values", most: ENUM_BYTES },
    Limit { field: "`response_format.json_schema.name`", what: "characters", most: SCHEMA_TITLE_CHARS },
    Limit {
        field: "`response_format.json_schema.description`",
        what: "characters",
        most: SCHEMA_DESCRIPTION_CHARS,
    },
    Limit { field: "`prompt`", what: "prompts", most: PROMPTS },
    Limit { field: "`n` or `best_of`", what: "answers to all prompts", most: TEXT_ANSWERS },
    Limit { field: "`documents`", what: "documents", most: EMBEDDING_INPUTS },
    Limit { field: "`input` of embeddings", what: "inputs", most: EMBEDDING_INPUTS },
    Limit { field: "`input` of embeddings", what: "tokens sent as numbers", most: EMBEDDING_TOKENS },
    Limit { field: "`input` of `/api/embed`", what: "inputs", most: OLLAMA_EMBEDDING_INPUTS },
];

/// What a caller sent more of than is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverBudget {
    /// The field at fault, such as `tools[3].function.parameters`; empty for the body as a whole.
    pub field: String,
    /// What is wrong with it, such as `has 6,000 properties in one object`.
    pub what: String,
    /// The most that is allowed; `None` where no amount would be.
    pub limit: Option<usize>,
}

impl OverBudget {
    fn new(field: &str, what: String, limit: usize) -> Self {
        OverBudget { field: field.to_owned(), what, limit: Some(limit) }
    }

    /// The JSON body has more values than [`BODY_VALUES`].
    pub fn body_values() -> Self {
        OverBudget::new("", "has too many JSON values".to_owned(), BODY_VALUES)
    }

    /// The JSON body is nested deeper than [`BODY_DEPTH`].
    pub fn body_depth() -> Self {
        OverBudget::new("", "is nested too deep".to_owned(), BODY_DEPTH)
    }

    /// The list at `field` is longer than `limit` allows; `things` is what it lists.
    pub fn too_many(field: &str, count: usize, things: &str, limit: usize) -> Self {
        OverBudget::new(field, format!("has {} {things}", thousands(count)), limit)
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = if self.field.is_empty() { "the request body" } else { &self.field };
        write!(formatter, "{subject} {}", self.what)?;
        match self.limit {
            Some(limit) => write!(formatter, "; the limit is {}", thousands(limit)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for OverBudget {}

/// A number as people read it: `6,000`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn count(field: &str, found: usize, things: &str, limit: usize) -> Result<(), OverBudget> {
    if found > limit { Err(OverBudget::too_many(field, found, things, limit)) } else { Ok(()) }
}

fn length(field: &str, text: &str, limit: usize) -> Result<(), OverBudget> {
    match too_long(text, limit) {
        None => Ok(()),
        Some(found) => Err(OverBudget::new(field, format!("has {} characters", thousands(found)), limit)),
    }
}

/// How many characters `text` has, if those are more than `limit`. They are counted only where there could be.
fn too_long(text: &str, limit: usize) -> Option<usize> {
    (text.len() > limit).then(|| text.chars().count()).filter(|found| *found > limit)
}

/// Checks everything of a request that has a limit. Cheap for what real clients send: nothing is copied.
pub fn check_request(request: &GenerateRequest) -> Result<(), OverBudget> {
    length("model", &request.model, MODEL_NAME_CHARS)?;
    check_messages(request)?;
    check_arguments(request)?;
    check_tools(request)?;
    if let ResponseFormat::JsonSchema(format) = &request.response_format {
        length("response_format.json_schema.name", &format.name, SCHEMA_TITLE_CHARS)?;
        let description = format.description.as_deref().unwrap_or_default();
        length("response_format.json_schema.description", description, SCHEMA_DESCRIPTION_CHARS)?;
        check_schema(&format.schema, "response_format.json_schema.schema")?;
    }
    let sampling = &request.sampling;
    count("stop", sampling.stop.len(), "sequences", STOPS)?;
    for (index, stop) in sampling.stop.iter().enumerate() {
        if stop.len() > STOP_CHARS {
            length(&format!("stop[{index}]"), stop, STOP_CHARS)?;
        }
    }
    let answers = request.answers() as usize;
    if answers > ANSWERS {
        return Err(OverBudget::new("n", format!("asks for {} answers", thousands(answers)), ANSWERS));
    }
    count("top_logprobs", sampling.top_logprobs.unwrap_or(0) as usize, "alternatives", TOP_LOGPROBS)?;
    let mut left = EXTRA_VALUES;
    check_extra(&request.hints, &mut left)?;
    check_extra(&request.extra, &mut left)
}

fn check_messages(request: &GenerateRequest) -> Result<(), OverBudget> {
    count("messages", request.messages.len(), "messages", MESSAGES)?;
    for (index, message) in request.messages.iter().enumerate() {
        if let Content::Parts(parts) = &message.content
            && parts.len() > MESSAGE_PARTS
        {
            count(&format!("messages[{index}].content"), parts.len(), "parts", MESSAGE_PARTS)?;
        }
        if let Some(name) = &message.name
            && name.len() > MESSAGE_NAME_CHARS
        {
            length(&format!("messages[{index}].name"), name, MESSAGE_NAME_CHARS)?;
        }
        if message.tool_calls.len() > MESSAGE_TOOL_CALLS {
            let field = format!("messages[{index}].tool_calls");
            count(&field, message.tool_calls.len(), "calls", MESSAGE_TOOL_CALLS)?;
        }
        for (at, call) in message.tool_calls.iter().enumerate() {
            if call.name.len() > MESSAGE_NAME_CHARS {
                let field = format!("messages[{index}].tool_calls[{at}].function.name");
                length(&field, &call.name, MESSAGE_NAME_CHARS)?;
            }
        }
    }
    Ok(())
}

/// The arguments of calls are JSON within a text, which most engines parse.
fn check_arguments(request: &GenerateRequest) -> Result<(), OverBudget> {
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    if calls.map(|call| call.arguments.len()).sum::<usize>() <= BODY_VALUES {
        return Ok(());
    }
    let mut left = BODY_VALUES;
    for (index, message) in request.messages.iter().enumerate() {
        for (at, call) in message.tool_calls.iter().enumerate() {
            let values = json_values(call.arguments.as_bytes(), left);
            if values > left {
                let field = format!("messages[{index}].tool_calls[{at}].function.arguments");
                let what = "has too many JSON values, together with the other calls".to_owned();
                return Err(OverBudget::new(&field, what, BODY_VALUES));
            }
            left -= values;
        }
    }
    Ok(())
}

fn check_tools(request: &GenerateRequest) -> Result<(), OverBudget> {
    count("tools", request.tools.len(), "tools", TOOLS)?;
    for (index, tool) in request.tools.iter().enumerate() {
        if tool.name.len() > TOOL_NAME_CHARS {
            length(&format!("tools[{index}].function.name"), &tool.name, TOOL_NAME_CHARS)?;
        }
        let description = tool.description.as_deref().unwrap_or_default();
        if description.len() > TOOL_DESCRIPTION_CHARS {
            let field = format!("tools[{index}].function.description");
            length(&field, description, TOOL_DESCRIPTION_CHARS)?;
        }
        if let Some(parameters) = &tool.parameters {
            check_schema(parameters, &format!("tools[{index}].function.parameters"))?;
        }
    }
    Ok(())
}

/// Fields that Hob gives no meaning to, and those that only some engines know. They share the values that are `left`.
fn check_extra(extra: &Map<String, Value>, left: &mut usize) -> Result<(), OverBudget> {
    for (field, value) in extra {
        let values = count_values(value, *left);
        if values > *left {
            let what =
                "has too many values, together with the other fields that Hob does not know".to_owned();
            return Err(OverBudget::new(field, what, EXTRA_VALUES));
        }
        *left -= values;
    }
    if let Some(Value::Object(biases)) = extra.get("logit_bias") {
        count("logit_bias", biases.len(), "entries", LOGIT_BIASES)?;
    }
    if let Some(top_k) = extra.get("top_k").and_then(Value::as_f64)
        && top_k > TOP_K as f64
    {
        return Err(OverBudget::new("top_k", format!("is {}", extra["top_k"]), TOP_K));
    }
    Ok(())
}

/// How many values `value` is made of; stops soon after `enough`.
pub fn count_values(value: &Value, enough: usize) -> usize {
    let mut values = 0;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        values += 1;
        if values > enough {
            break;
        }
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(fields) => waiting.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    values
}

#[cfg(test)]
#[path = "request_budget_tests.rs"]
mod tests;
