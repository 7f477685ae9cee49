//! Prepares a request: the tokens of its prompt and the constraint of its answer.

use hob_core::{CompletionRequest, EngineError, GenerateRequest, Message, Prompt, ToolDefinition};
use llama_cpp_2::model::LlamaChatMessage;
use serde_json::{Value, json};

use crate::constraint::{self, Constraint};
use crate::control_tokens::{self, Origin};
use crate::error::{bad_request, context_exceeded, unsupported};
use crate::loaded_model::{LoadedModel, Template};
use crate::reasoning::{self, Thought};
use crate::request::AnswerOptions;
use crate::template::{Conversation, TemplateError};
use crate::tools;

/// A request, ready for the worker.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) prompt: Vec<i32>,
    pub(crate) ask: AnswerOptions,
    pub(crate) constraint: Constraint,
    pub(crate) thought: Thought,
}

/// Prepares a request. Slow with long conversations. One with schemas must run in `grammar_thread`.
pub(crate) fn prepare(loaded: &LoadedModel, request: &GenerateRequest) -> Result<Prepared, EngineError> {
    let ask = answer_options(loaded, request)?;
    let constraint = Constraint::read(loaded, request)?;
    let text = render(loaded, &request.messages, constraint::offered(request), &ask)?;
    let prompt = tokenize(loaded, &text);
    check_length(loaded, &prompt, "messages")?;
    // The grammar describes the answer, so there can be no reasoning before it.
    let thinks = constraint.grammar.is_none() && reasoning::is_begun_by(&text);
    let thought = if thinks { Thought::Begun } else { Thought::Possible };
    Ok(Prepared { prompt, ask, constraint, thought })
}

/// Reads a text to continue, as [`prepare`] does a conversation.
pub(crate) fn prepare_completion(
    loaded: &LoadedModel,
    request: &CompletionRequest,
) -> Result<Prepared, EngineError> {
    if request.echo {
        let hint = "it returns no probabilities of the prompt; leave out 'echo' or 'logprobs'";
        return Err(unsupported("echo", Some(hint)));
    }
    let settings = request.settings();
    let ask = answer_options(loaded, &settings)?;
    let constraint = Constraint::read(loaded, &settings)?;
    let prompt = match (&request.prompt, &request.suffix) {
        (Prompt::Text(text), None) => loaded.tokens(text, true),
        (Prompt::Tokens(tokens), None) => loaded.known_tokens("prompt", tokens)?,
        (Prompt::Text(prefix), Some(suffix)) => around_gap(loaded, prefix, suffix)?,
        (Prompt::Tokens(_), Some(_)) => {
            return Err(unsupported("prompt", Some("with a suffix it must be text, not tokens")));
        }
    };
    check_length(loaded, &prompt, "prompt")?;
    Ok(Prepared { prompt, ask, constraint, thought: Thought::None })
}

/// The texts around a gap, between the model's own tokens for that. Nothing in the texts is a control token.
fn around_gap(loaded: &LoadedModel, prefix: &str, suffix: &str) -> Result<Vec<i32>, EngineError> {
    let vocab = loaded.model.vocab();
    let [before, after, gap] = [vocab.fim_pre(), vocab.fim_suf(), vocab.fim_mid()].map(|token| token.0);
    if before < 0 || after < 0 || gap < 0 {
        let hint = format!(
            "'{}' has no tokens to fill in the middle; choose a model for code, such as one of Qwen-Coder",
            loaded.id
        );
        return Err(unsupported("suffix", Some(&hint)));
    }
    let begin = Some(vocab.bos().0).filter(|bos| vocab.should_add_bos() && *bos >= 0);
    let mut tokens: Vec<i32> = begin.into_iter().chain([before]).collect();
    tokens.extend(loaded.tokens_of_words(prefix, false));
    tokens.push(after);
    tokens.extend(loaded.tokens_of_words(suffix, false));
    tokens.push(gap);
    Ok(tokens)
}

fn answer_options(loaded: &LoadedModel, request: &GenerateRequest) -> Result<AnswerOptions, EngineError> {
    let mut ask = AnswerOptions::read(request, loaded.parallel)?;
    ask.place_effort(template_source(loaded));
    if ask.ignore_eos {
        let vocab = loaded.model.vocab();
        let ends = [vocab.eos(), vocab.eot()];
        ask.sampling
            .bias
            .extend(ends.iter().filter(|token| token.0 >= 0).map(|token| (token.0, f32::NEG_INFINITY)));
    }
    Ok(ask)
}

/// The tokens of the prompt, to read them ahead.
pub(crate) fn prompt_of(loaded: &LoadedModel, request: &GenerateRequest) -> Result<Vec<i32>, EngineError> {
    let mut ask = AnswerOptions::read(request, loaded.parallel)?;
    ask.place_effort(template_source(loaded));
    let text = render(loaded, &request.messages, constraint::offered(request), &ask)?;
    let prompt = tokenize(loaded, &text);
    check_length(loaded, &prompt, "messages")?;
    Ok(prompt)
}

/// The program of the model's own template, which can have variables.
fn template_source(loaded: &LoadedModel) -> Option<&str> {
    match &loaded.template {
        Template::Own(template) => Some(template.source()),
        Template::BuiltIn(_) => None,
    }
}

/// Whether the prompt of `field` is neither empty nor too long.
fn check_length(loaded: &LoadedModel, prompt: &[i32], field: &str) -> Result<(), EngineError> {
    let context = loaded.context_size.context as usize;
    if prompt.is_empty() {
        let message = match field {
            "messages" => "the conversation is empty once the model's template is applied",
            _ => "the prompt is empty, and the model has no token to begin a text with",
        };
        return Err(bad_request(message, Some(field)));
    }
    if prompt.len() >= context {
        return Err(context_exceeded(
            format!(
                "This model's maximum context length is {context} tokens. However, your {field} resulted in {} tokens, which \
                 leaves '{}' no room for an answer. Please reduce the length of the {field}.",
                prompt.len(),
                loaded.id
            ),
            field,
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
            let described: Vec<Value> =
                tools.iter().map(|tool| control.mark_value(tools::described(tool))).collect();
            let signatures = control.mark_fields(tools::signatures(tools, &described));
            let variables = control.mark_fields(ask.template_variables.clone());
            let render = |messages: &[Value]| {
                let tools = described.as_slice();
                template.render(&Conversation {
                    messages,
                    tools,
                    signatures: &signatures,
                    variables: &variables,
                })
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
