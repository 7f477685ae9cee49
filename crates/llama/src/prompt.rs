//! Prepares a request: the tokens of its prompt and the constraint of its answer.

use hob_core::{EngineError, GenerateRequest, Message, ToolDefinition};
use llama_cpp_2::model::LlamaChatMessage;
use serde_json::{Value, json};

use crate::constraint::{self, Constraint};
use crate::control_tokens::{self, Origin};
use crate::error::{bad_request, context_exceeded, unsupported};
use crate::loaded_model::{LoadedModel, Template};
use crate::reasoning;
use crate::request::AnswerOptions;
use crate::template::{Conversation, TemplateError};
use crate::tools;

/// A request, ready for the worker.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) prompt: Vec<i32>,
    pub(crate) ask: AnswerOptions,
    pub(crate) constraint: Constraint,
    /// Whether the prompt ends inside reasoning.
    pub(crate) thinks: bool,
}

/// Prepares a request. Slow with long conversations. One with schemas must run in `grammar_thread`.
pub(crate) fn prepare(loaded: &LoadedModel, request: &GenerateRequest) -> Result<Prepared, EngineError> {
    let mut ask = AnswerOptions::read(request, loaded.parallel)?;
    if ask.ignore_eos {
        let vocab = loaded.model.vocab();
        let ends = [vocab.eos(), vocab.eot()];
        ask.sampling
            .bias
            .extend(ends.iter().filter(|token| token.0 >= 0).map(|token| (token.0, f32::NEG_INFINITY)));
    }
    let constraint = Constraint::read(loaded, request)?;
    let text = render(loaded, &request.messages, constraint::offered(request), &ask)?;
    let prompt = tokenize(loaded, &text);
    check_length(loaded, &prompt)?;
    // A grammar applies to the whole text, so there is no reasoning.
    let thinks = constraint.grammar.is_none() && reasoning::is_begun_by(&text);
    Ok(Prepared { prompt, ask, constraint, thinks })
}

/// The tokens of the prompt, to read them ahead.
pub(crate) fn prompt_of(loaded: &LoadedModel, request: &GenerateRequest) -> Result<Vec<i32>, EngineError> {
    let ask = AnswerOptions::read(request, loaded.parallel)?;
    let text = render(loaded, &request.messages, constraint::offered(request), &ask)?;
    let prompt = tokenize(loaded, &text);
    check_length(loaded, &prompt)?;
    Ok(prompt)
}

fn check_length(loaded: &LoadedModel, prompt: &[i32]) -> Result<(), EngineError> {
    let context = loaded.context_size.context as usize;
    if prompt.is_empty() {
        return Err(bad_request(
            "the conversation is empty once the model's template is applied",
            Some("messages"),
        ));
    }
    if prompt.len() >= context {
        return Err(context_exceeded(
            format!(
                "This model's maximum context length is {context} tokens. However, your messages resulted in {} tokens, which \
                 leaves '{}' no room for an answer. Please reduce the length of the messages.",
                prompt.len(),
                loaded.id
            ),
            "messages",
        ));
    }
    Ok(())
}

/// The tokens of a marked text.
fn tokenize(loaded: &LoadedModel, text: &str) -> Vec<i32> {
    let vocab = loaded.model.vocab();
    // Most templates write the beginning-of-text token themselves; a second one confuses models.
    let bos = vocab.bos();
    let written = bos.0 >= 0
        && String::from_utf8(loaded.bytes_of(bos.0, true))
            .is_ok_and(|bos| !bos.is_empty() && text.starts_with(&bos));
    if !control_tokens::is_marked(text) {
        return loaded.tokens(text, !written);
    }
    let spans = loaded.control.spans(text);
    let tokens = spans.iter().enumerate().flat_map(|(at, span)| {
        let add_special = at == 0 && !written;
        match span.origin {
            Origin::Template => loaded.tokens(&span.text, add_special),
            Origin::User => loaded.tokens_of_words(&span.text, add_special),
        }
    });
    tokens.collect()
}

/// Renders the conversation, with marks around control tokens spelled by the caller.
fn render(
    loaded: &LoadedModel,
    messages: &[Message],
    tools: &[ToolDefinition],
    ask: &AnswerOptions,
) -> Result<String, EngineError> {
    match &loaded.template {
        Template::Own(template) => {
            let spelled;
            let (messages, tools) = if template.knows_tools {
                (messages, tools)
            } else {
                spelled = tools::spelled_out(messages, tools);
                (spelled.as_slice(), &[][..])
            };
            let control = &loaded.control;
            let messages: Vec<Value> =
                messages.iter().map(|message| control.mark_value(message_value(message))).collect();
            let tools: Vec<Value> =
                tools.iter().map(|tool| control.mark_value(tools::described(tool))).collect();
            let variables = control.mark_fields(ask.template_variables.clone());
            let render = |messages: &[Value]| {
                template.render(&Conversation { messages, tools: &tools, variables: &variables })
            };
            let rendered = render(&messages).or_else(|error| match without_system(&messages) {
                // For models without a system role, instructions precede the first question.
                Some(merged) => render(&merged).map_err(|_| error),
                None => Err(error),
            });
            rendered.map_err(|error| match error {
                TemplateError::Refused(_) => bad_request(error.to_string(), Some("messages")),
                _ => crate::error::unusable(error.to_string()),
            })
        }
        Template::BuiltIn(template) => {
            if !ask.template_variables.is_empty() {
                return Err(unsupported("chat_template_kwargs", Some("this model has no chat template")));
            }
            let chat: Result<Vec<LlamaChatMessage>, _> = tools::spelled_out(messages, tools)
                .iter()
                .map(|message| {
                    let text = loaded.control.mark(&message.content.text()).into_owned();
                    LlamaChatMessage::new(message.role.as_str().into(), text)
                })
                .collect();
            let chat = chat.map_err(|_| bad_request("a message contains a zero byte", Some("messages")))?;
            loaded.model.apply_chat_template(template, &chat, true).map_err(|error| {
                crate::error::unusable(format!("the chat template of '{}' fails: {error}", loaded.id))
            })
        }
    }
}

/// A message in the chat-completions format, with arguments as objects, which templates print with their own JSON filter.
fn message_value(message: &Message) -> Value {
    let mut value = Value::Object(message.extra.clone());
    value["role"] = message.role.as_str().into();
    value["content"] = message.content.text().into();
    if let Some(name) = &message.name {
        value["name"] = name.as_str().into();
    }
    if let Some(id) = &message.tool_call_id {
        value["tool_call_id"] = id.as_str().into();
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            let arguments = serde_json::from_str::<Value>(&call.arguments)
                .unwrap_or_else(|_| Value::String(call.arguments.clone()));
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": arguments },
            })
        });
        value["tool_calls"] = calls.collect();
    }
    value
}

/// The messages with the system message merged into the first user message.
fn without_system(messages: &[Value]) -> Option<Vec<Value>> {
    let (system, rest) = messages.split_first()?;
    if system["role"] != "system" {
        return None;
    }
    let mut merged = rest.to_vec();
    let first = merged.iter_mut().find(|message| message["role"] == "user")?;
    let text = format!(
        "{}\n\n{}",
        system["content"].as_str().unwrap_or_default(),
        first["content"].as_str().unwrap_or_default()
    );
    first["content"] = text.into();
    Some(merged)
}
