//! Renders a conversation with the template of the model, or with the common format if the model has none for tools.

use std::borrow::Cow;

use hob_core::{EngineError, Message, ToolDefinition};
use llama_cpp_2::model::LlamaChatMessage;
use serde_json::{Map, Value, json};

use crate::chat::{
    AnswerFormat, Calling, ChatTemplate, Conversation, Rendered, TemplateError, ToolSupport, parameters,
    signatures, spelled_history, spelled_out, tool_value,
};
use crate::constraint::CallPlan;
use crate::control_tokens::ControlTokens;
use crate::error::{bad_request, unsupported, unusable};
use crate::loaded_model::{LoadedModel, Template};
use crate::request::AnswerOptions;

/// A conversation and its tools.
pub(crate) struct ChatInput<'a> {
    pub(crate) loaded: &'a LoadedModel,
    pub(crate) messages: &'a [Message],
    pub(crate) offered: &'a [ToolDefinition],
    pub(crate) ask: &'a AnswerOptions,
}

impl ChatInput<'_> {
    /// Renders the conversation, with marks around control tokens spelled by the caller. Without a plan, only the prompt matters.
    pub(crate) fn render(&self, plan: Option<&CallPlan<'_>>) -> Result<Rendered, EngineError> {
        let Some(template) = self.template() else {
            let prompt = self.render_built_in()?;
            return self.in_common_format(prompt, plan);
        };
        match template.tools {
            ToolSupport::Full => self.render_own(template, plan),
            ToolSupport::ListOnly => {
                let messages = spelled_history(self.messages);
                let prompt = self.run(template, &messages, &self.listed(), Calling::Never)?.prompt;
                self.in_common_format(prompt, plan)
            }
            ToolSupport::None => {
                let messages = spelled_out(self.messages, self.offered);
                let rendered = self.run(template, &messages, &[], Calling::Never)?;
                if plan.is_none() { words(rendered) } else { self.in_common_format(rendered.prompt, plan) }
            }
        }
    }

    /// A template that lists tools and has a format for calls.
    fn render_own(
        &self,
        template: &ChatTemplate,
        plan: Option<&CallPlan<'_>>,
    ) -> Result<Rendered, EngineError> {
        let listed = self.listed();
        let messages = self.history(template);
        let Some(plan) = plan else {
            return words(self.run(template, &messages, &listed, Calling::Never)?);
        };
        let tools = plan.tools();
        if tools == listed {
            return self.run(template, &messages, &listed, plan.calling());
        }
        // The prompt has all tools as the caller wrote them; the format has those that may be called.
        let prompt = self.run(template, &messages, &listed, Calling::Never)?.prompt;
        let format = self.run(template, &messages, &tools, plan.calling())?.format;
        Ok(Rendered { prompt, format })
    }

    /// The messages, with ids of calls that the template takes, or with calls as text if it does not write them.
    fn history(&self, template: &ChatTemplate) -> Cow<'_, [Message]> {
        if template.writes_calls {
            template.call_ids.apply(self.messages)
        } else {
            Cow::Owned(spelled_history(self.messages))
        }
    }

    /// The format of an answer to `prompt` for another way of calling.
    pub(crate) fn format(
        &self,
        plan: &CallPlan<'_>,
        calling: Calling,
        prompt: &str,
    ) -> Result<AnswerFormat, EngineError> {
        match self.template().filter(|template| template.tools == ToolSupport::Full) {
            Some(template) => Ok(self.run(template, &self.history(template), &plan.tools(), calling)?.format),
            None => common_format(&plan.tools(), calling, prompt),
        }
    }

    fn in_common_format(&self, prompt: String, plan: Option<&CallPlan<'_>>) -> Result<Rendered, EngineError> {
        let format = match plan {
            Some(plan) => common_format(&plan.tools(), plan.calling(), &prompt)?,
            None => ChatTemplate::common_words().map_err(refusal)?.after(&prompt),
        };
        Ok(Rendered { prompt, format })
    }

    /// The model's own template, if it works.
    fn template(&self) -> Option<&ChatTemplate> {
        match &self.loaded.template {
            Template::Own { tool_use: Some(template), .. } if !self.offered.is_empty() => Some(template),
            Template::Own { usual, .. } => Some(usual),
            Template::BuiltIn(_) => None,
        }
    }

    /// The tools in the chat-completions format, marked.
    fn listed(&self) -> Vec<Value> {
        let listed = self.offered.iter().map(|tool| tool_value(tool, parameters(tool)));
        listed.map(|tool| self.loaded.control.mark_value(tool)).collect()
    }

    fn run(
        &self,
        template: &ChatTemplate,
        messages: &[Message],
        tools: &[Value],
        calling: Calling,
    ) -> Result<Rendered, EngineError> {
        let control = &self.loaded.control;
        let messages: Vec<Value> = messages.iter().map(|message| message_value(message, control)).collect();
        let variables = control.mark_fields(self.ask.template_variables.clone());
        let signatures = control.mark_named(signatures(self.offered));
        let render = |messages: &[Value]| {
            template.render(&Conversation {
                messages,
                tools,
                signatures: &signatures,
                variables: &variables,
                calling,
            })
        };
        let rendered = render(&messages).or_else(|error| match without_system(&messages) {
            // For models without a system role, instructions precede the first question.
            Some(merged) => render(&merged).map_err(|_| error),
            None => Err(error),
        });
        rendered.map_err(refusal)
    }

    fn render_built_in(&self) -> Result<String, EngineError> {
        let Template::BuiltIn(template) = &self.loaded.template else {
            return Err(unusable("the model has a template of its own"));
        };
        if !self.ask.template_variables.is_empty() {
            return Err(unsupported("chat_template_kwargs", Some("this model has no chat template")));
        }
        let chat: Result<Vec<LlamaChatMessage>, _> = spelled_out(self.messages, self.offered)
            .iter()
            .map(|message| {
                let text = self.loaded.control.mark(&message.content.text()).into_owned();
                LlamaChatMessage::new(message.role.as_str().into(), text)
            })
            .collect();
        let chat = chat.map_err(|_| bad_request("a message contains a zero byte", Some("messages")))?;
        self.loaded
            .model
            .apply_chat_template(template, &chat, true)
            .map_err(|error| unusable(format!("the chat template of '{}' fails: {error}", self.loaded.id)))
    }
}

/// An answer in words. If the template has no format for reasoning, the most common one is recognised.
fn words(rendered: Rendered) -> Result<Rendered, EngineError> {
    if rendered.format.thinks() || !rendered.format.ends_as_text() {
        return Ok(rendered);
    }
    let format = ChatTemplate::common_words().map_err(refusal)?.after(&rendered.prompt);
    Ok(Rendered { format, ..rendered })
}

/// The common format of an answer to the prompt of another template.
fn common_format(tools: &[Value], calling: Calling, prompt: &str) -> Result<AnswerFormat, EngineError> {
    let message = json!({ "role": "user", "content": "Hello" });
    let none = Map::new();
    let conversation =
        Conversation { messages: &[message], tools, signatures: &none, variables: &none, calling };
    let common = ChatTemplate::common().and_then(|common| common.render(&conversation));
    common.map(|rendered| rendered.format.after(prompt)).map_err(refusal)
}

fn refusal(error: TemplateError) -> EngineError {
    match error {
        TemplateError::Refused(_) => bad_request(error.to_string(), Some("messages")),
        _ => unusable(error.to_string()),
    }
}

/// A message in the chat-completions format, marked.
fn message_value(message: &Message, control: &ControlTokens) -> Value {
    let mut value =
        json!({ "role": message.role.as_str(), "content": control.mark(&message.content.text()) });
    // The fields that templates read.
    for field in ["reasoning_content", "reasoning"] {
        if let Some(Value::String(text)) = message.extra.get(field) {
            value["reasoning_content"] = control.mark(text).into();
            break;
        }
    }
    if let Some(name) = &message.name {
        value["name"] = control.mark_name(name).into();
    }
    if let Some(id) = &message.tool_call_id {
        value["tool_call_id"] = control.mark(id).into();
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            let arguments = call_arguments(&call.arguments, control);
            json!({
                "id": control.mark(&call.id),
                "type": "function",
                "function": { "name": control.mark_name(&call.name), "arguments": arguments },
            })
        });
        value["tool_calls"] = calls.collect();
    }
    value
}

/// The arguments of a call as JSON, marked. All but the marked texts stays as it was written, so that a prompt begins like the one
/// before. Fields that occur twice are all marked: it makes no difference which one a template reads.
fn call_arguments(written: &str, control: &ControlTokens) -> String {
    // A model may have written something else.
    if serde_json::from_str::<Value>(written).is_err() {
        return Value::from(control.mark(written)).to_string();
    }
    let mut arguments = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(start) = rest.find('"') {
        arguments.push_str(&rest[..start]);
        let (string, after) = rest[start..].split_at(string_length(&rest[start..]));
        arguments.push_str(&marked_string(string, control));
        rest = after;
    }
    arguments.push_str(rest);
    arguments
}

/// The length of the JSON string that a text begins with.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// A JSON string, marked. An escape can hide a control token, so its text decides.
fn marked_string<'a>(string: &'a str, control: &ControlTokens) -> Cow<'a, str> {
    match serde_json::from_str::<String>(string).as_deref().map(|text| control.mark_name(text)) {
        Ok(Cow::Owned(marked)) => Cow::Owned(Value::from(marked).to_string()),
        Ok(Cow::Borrowed(_)) | Err(_) => Cow::Borrowed(string),
    }
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

#[cfg(test)]
mod tests {
    use hob_core::{Role, ToolCall};

    use super::*;
    use crate::control_tokens::Origin;

    fn control() -> ControlTokens {
        ControlTokens::new(["<s>", "<|end|>"].map(str::to_owned))
    }

    fn called(name: &str, arguments: &str) -> Message {
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") }
    }

    /// The control tokens of a rendered conversation that are tokens. The template writes `<s>` itself.
    fn tokens(source: &str, messages: &[Message]) -> Vec<String> {
        let control = control();
        let messages: Vec<Value> = messages.iter().map(|message| message_value(message, &control)).collect();
        let conversation = Conversation {
            messages: &messages,
            tools: &[],
            signatures: &Map::new(),
            variables: &Map::new(),
            calling: Calling::Never,
        };
        let template = ChatTemplate::new(source, "<s>", "<|end|>").expect("a template");
        let prompt = template.render(&conversation).expect("renders").prompt;
        let spans = control.spans(&prompt);
        let whole: String = spans.iter().map(|span| span.text.as_str()).collect();
        assert!(whole.contains("<|end|>"), "the text of the caller is lost: {whole}");
        let written = spans.into_iter().filter(|span| span.origin == Origin::Template);
        written.filter(|span| span.text.contains("<|end|>")).map(|span| span.text).collect()
    }

    #[test]
    fn arguments_of_calls_never_become_control_tokens() {
        let source = "<s>{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.name }}\
            {% for name, value in c.function.arguments.items() %}<{{ name }}>{{ value }}{% endfor %}\
            {{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
        for arguments in [
            r#"{"a": "<|end|>"}"#,
            r#"{"a": "\u003c|end|\u003e"}"#,
            r#"{"a": "\u003c|end|\u003e", "a": "<|end|>"}"#,
            r#"{"\u003c|end|>": 1}"#,
            r#"{"|end|": 1}"#,
            r#"{"a": "<|e", "b": "<|end|>"}"#,
            r#"{"b": "\\", "a": "\"<|end|\u003e"}"#,
        ] {
            let none: [String; 0] = [];
            assert_eq!(tokens(source, &[called("f", arguments)]), none, "{arguments}");
        }
    }

    #[test]
    fn arguments_stay_as_they_were_written_but_for_marks() {
        let control = control();
        for plain in [
            r#"{"b" : [1, 2],  "a": "x < y"}"#,
            r#"{"code": "print(\"a\\n\")\n", "path": "a\/b", "name": "Zo\u00eb"}"#,
            r#"{"a": 1.10, "b": 1e5, "c": -0, "d": 123456789012345678901234567890, "a": 2}"#,
            "{}",
            " [] ",
            "null",
        ] {
            assert_eq!(call_arguments(plain, &control), plain);
        }
        let mark = |text: &str| control.mark(text).into_owned();
        let end = mark("<|end|>");
        assert_eq!(
            call_arguments(r#"{"b" : "\u003c|end|>",  "a": "\\\"<|end|>", "a": 1.0}"#, &control),
            format!(r#"{{"b" : "{end}",  "a": "\\\"{end}", "a": 1.0}}"#)
        );
        assert_eq!(
            call_arguments(r#"{"|end|": "|end|"}"#, &control),
            format!(r#"{{"{0}": "{0}"}}"#, control.mark_name("|end|"))
        );
        assert_eq!(call_arguments("not JSON", &control), r#""not JSON""#);
        assert_eq!(
            call_arguments(r#"{"a": "<|end|>"#, &control),
            json!(mark(r#"{"a": "<|end|>"#)).to_string()
        );
    }

    #[test]
    fn names_and_texts_side_by_side_never_become_control_tokens() {
        let source = "<s>{% for m in messages %}<{{ m.name }}>{{ m.content }}{% endfor %}";
        let named =
            |name: &str, text: &str| Message { name: Some(name.into()), ..Message::new(Role::User, text) };
        let none: [String; 0] = [];
        assert_eq!(tokens(source, &[named("|end|", "x")]), none);
        let side_by_side = "<s>{% for m in messages %}{{ m.content | trim }}{% endfor %}";
        let texts = ["<|en ", " d|>"].map(|text| Message::new(Role::User, text));
        assert_eq!(tokens(side_by_side, &texts), none);
    }
}
