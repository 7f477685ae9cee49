//! From a request to the tokens of its prompt and the grammar of its answer.

use hob_core::{EngineError, GenerateRequest, Message, ToolChoice, ToolDefinition};
use llama_cpp_2::model::LlamaChatMessage;
use serde_json::{Value, json};

use crate::control::{self, Control};
use crate::error::{bad_request, unsupported};
use crate::grammar::Grammar;
use crate::loaded::{Loaded, Template};
use crate::request::Ask;
use crate::template::{Conversation, TemplateError};
use crate::thoughts;
use crate::tools::{self, Calls, ToolFormat};

/// A request, ready for the worker.
pub(crate) struct Prepared {
    pub(crate) prompt: Vec<i32>,
    pub(crate) ask: Ask,
    /// The grammar the answer follows from its first token.
    pub(crate) grammar: Option<Grammar>,
    pub(crate) tools: Option<ToolUse>,
    /// Whether the prompt ends inside a thought.
    pub(crate) thinks: bool,
}

/// How tool calls in the answer are written.
pub(crate) struct ToolUse {
    pub(crate) format: ToolFormat,
    /// The grammar that takes over once the model begins a call of its own accord.
    pub(crate) once_called: Option<Grammar>,
    /// Control tokens that mark calls and so must be seen.
    pub(crate) markers: Vec<i32>,
}

/// Reads a request for a model. Takes time with long conversations.
pub(crate) fn prepare(loaded: &Loaded, request: &GenerateRequest) -> Result<Prepared, EngineError> {
    let mut ask = Ask::read(request, loaded.parallel)?;
    if ask.ignore_eos {
        let vocab = loaded.model.vocab();
        let ends = [vocab.eos(), vocab.eot()];
        ask.sampling
            .bias
            .extend(ends.iter().filter(|token| token.0 >= 0).map(|token| (token.0, f32::NEG_INFINITY)));
    }
    let choice = request.tool_choice.clone().unwrap_or(ToolChoice::Auto);
    let offered: &[ToolDefinition] = match choice {
        ToolChoice::None => &[],
        _ => &request.tools,
    };
    let text = render(loaded, &request.messages, offered, &ask)?;
    let prompt = tokenize(loaded, &text);
    check_length(loaded, &prompt)?;

    let (forced, tools) = tool_grammar(loaded, request, &choice, offered)?;
    let grammar = match ask.grammar.as_deref() {
        Some(text) => Some(Grammar::start(&loaded.model, text).ok_or_else(|| {
            bad_request("the schema is more than the grammar engine can enforce", Some("response_format"))
        })?),
        None => forced,
    };
    // A grammar is that of the answer: it leaves no room for a thought before it.
    let thinks = grammar.is_none() && thoughts::is_begun_by(&text);
    Ok(Prepared { prompt, ask, grammar, tools, thinks })
}

fn check_length(loaded: &Loaded, prompt: &[i32]) -> Result<(), EngineError> {
    let context = loaded.room.context as usize;
    if prompt.is_empty() {
        return Err(bad_request(
            "the conversation is empty once the model's template is applied",
            Some("messages"),
        ));
    }
    if prompt.len() >= context {
        return Err(bad_request(
            format!(
                "the prompt has {} tokens, and the context of '{}' has room for {context} with the answer",
                prompt.len(),
                loaded.id
            ),
            Some("messages"),
        ));
    }
    Ok(())
}

/// The grammar that forces a call at once, and how calls are recognised.
fn tool_grammar(
    loaded: &Loaded,
    request: &GenerateRequest,
    choice: &ToolChoice,
    offered: &[ToolDefinition],
) -> Result<(Option<Grammar>, Option<ToolUse>), EngineError> {
    if offered.is_empty() {
        return Ok((None, None));
    }
    let callable: Vec<&ToolDefinition> = match choice {
        ToolChoice::Function(name) => offered.iter().filter(|tool| tool.name == *name).collect(),
        _ => offered.iter().collect(),
    };
    if callable.is_empty() {
        return Err(bad_request(
            "'tool_choice' names a function that is not among 'tools'",
            Some("tool_choice"),
        ));
    }
    let calls = match (choice, request.parallel_tool_calls) {
        (ToolChoice::Function(_), _) | (_, Some(false)) => Calls::One,
        _ => Calls::Several,
    };
    let format = loaded.tool_format;
    let text = format.grammar(&callable, calls).map_err(|(tool, error)| {
        bad_request(format!("the parameters of the tool '{tool}': {error}"), Some("tools"))
    })?;
    let grammar = Grammar::start(&loaded.model, &text).ok_or_else(|| {
        bad_request("the tools are more than the grammar engine can enforce", Some("tools"))
    })?;
    let vocab = loaded.model.vocab();
    let markers = [format.opening(), format.closing()]
        .iter()
        .flat_map(|marker| loaded.tokens(marker, false))
        .filter(|&token| vocab.is_control(llama_cpp_2::token::LlamaToken(token)))
        .collect();
    let forced = matches!(choice, ToolChoice::Required | ToolChoice::Function(_));
    let (now, once_called) = if forced { (Some(grammar), None) } else { (None, Some(grammar)) };
    let tools = ToolUse { format, once_called, markers };
    Ok((now, Some(tools)))
}

/// The tokens of a marked text.
fn tokenize(loaded: &Loaded, text: &str) -> Vec<i32> {
    let vocab = loaded.model.vocab();
    // Most templates write the beginning-of-text token themselves; a second one confuses models.
    let bos = vocab.bos();
    let written = bos.0 >= 0
        && String::from_utf8(loaded.bytes_of(bos.0, true))
            .is_ok_and(|bos| !bos.is_empty() && text.starts_with(&bos));
    if !control::is_marked(text) {
        return loaded.tokens(text, !written);
    }
    let stretches = loaded.control.stretches(text);
    let tokens = stretches.iter().enumerate().flat_map(|(at, stretch)| {
        let add_special = at == 0 && !written;
        match stretch.control {
            Control::Meant => loaded.tokens(&stretch.text, add_special),
            Control::Typed => loaded.tokens_of_words(&stretch.text, add_special),
        }
    });
    tokens.collect()
}

/// The conversation as the model's text, with marks where somebody typed what looks like a control token.
fn render(
    loaded: &Loaded,
    messages: &[Message],
    tools: &[ToolDefinition],
    ask: &Ask,
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
                // Some models know no system role; their instructions go before the first question.
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
                return Err(unsupported(
                    "chat_template_kwargs",
                    Some("this model has no chat template of its own"),
                ));
            }
            let chat: Result<Vec<LlamaChatMessage>, _> = tools::spelled_out(messages, tools)
                .iter()
                .map(|message| {
                    let text = loaded.control.mark(&message.content.text()).into_owned();
                    LlamaChatMessage::new(message.role.as_str().into(), text)
                })
                .collect();
            let chat = chat.map_err(|_| bad_request("a message has a zero byte in it", Some("messages")))?;
            loaded.model.apply_chat_template(template, &chat, true).map_err(|error| {
                crate::error::unusable(format!("the chat template of '{}' fails: {error}", loaded.id))
            })
        }
    }
}

/// A message in the chat-completions form, arguments as objects: templates print them with their own JSON filter.
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

/// The messages with the system message put before the first one of the user.
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
