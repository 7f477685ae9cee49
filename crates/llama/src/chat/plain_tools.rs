//! Tools in words: for models whose template does not support tools, with calls and results as plain text, and short signatures
//! for long lists. Knows nothing of llama.cpp.

use hob_core::{Message, Role, ToolCall, ToolDefinition};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value, json};

/// The most tools that a template prints as JSON, the form that models are trained on. With more, the prompt becomes long: JSON
/// of the agent's 18 tools has 1,250 tokens in Qwen's format, their signatures have 500.
const MAX_JSON_TOOLS: usize = 8;

/// The signatures of a long list of tools, by their names.
pub(crate) fn signatures(tools: &[ToolDefinition]) -> Map<String, Value> {
    if tools.len() <= MAX_JSON_TOOLS {
        return Map::new();
    }
    tools.iter().filter_map(|tool| Some((tool.name.clone(), tool.signature()?.into()))).collect()
}

/// The schema of a tool's arguments: always an object.
pub(crate) fn parameters(tool: &ToolDefinition) -> Value {
    match &tool.parameters {
        Some(Value::Object(schema)) if !schema.is_empty() => {
            let mut schema = schema.clone();
            schema.entry("type").or_insert_with(|| "object".into());
            Value::Object(schema)
        }
        _ => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    }
}

/// A tool in the chat-completions format, with this schema of its arguments.
pub(crate) fn tool_value(tool: &ToolDefinition, parameters: Value) -> Value {
    let mut function = json!({ "name": tool.name });
    if let Some(description) = &tool.description {
        function["description"] = description.as_str().into();
    }
    function["parameters"] = parameters;
    json!({ "type": "function", "function": function })
}

/// A tool on one line, which needs a third of the tokens of the JSON; the JSON if that would lose something.
fn listed(tool: &ToolDefinition) -> String {
    tool.signature().unwrap_or_else(|| spaced_json(&tool_value(tool, parameters(tool))["function"]))
}

/// Explains tools to a model whose template does not.
fn explanation(tools: &[ToolDefinition]) -> String {
    let list: Vec<String> = tools.iter().map(listed).collect();
    format!(
        "You can call these functions, given by their arguments or as JSON with a schema of them:\n{}\n\n\
         To call a function, answer with its name and arguments in this form and nothing else:\n\
         <tool_call>\n{{\"name\": \"function\", \"arguments\": {{\"argument\": \"value\"}}}}\n</tool_call>\n\
         When no function helps, answer in words.",
        list.join("\n")
    )
}

/// A call as the model would have written it.
fn written(call: &ToolCall) -> String {
    let arguments =
        serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone()));
    let call = spaced_json(&json!({ "name": call.name, "arguments": arguments }));
    format!("<tool_call>\n{call}\n</tool_call>")
}

/// The conversation with calls and results as plain text.
pub(crate) fn spelled_history(messages: &[Message]) -> Vec<Message> {
    let mut plain: Vec<Message> = Vec::with_capacity(messages.len() + 1);
    for message in messages {
        match message.role {
            Role::Assistant if !message.tool_calls.is_empty() => {
                let mut text = message.content.text().into_owned();
                for call in &message.tool_calls {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&written(call));
                }
                plain.push(Message::new(Role::Assistant, text));
            }
            Role::Tool => {
                let result = format!("<tool_response>\n{}\n</tool_response>", message.content.text());
                plain.push(Message::new(Role::User, result));
            }
            _ => plain.push(message.clone()),
        }
    }
    plain
}

/// The conversation for a template without tools: explained in the system message, calls and results as plain text.
pub(crate) fn spelled_out(messages: &[Message], tools: &[ToolDefinition]) -> Vec<Message> {
    let mut plain = spelled_history(messages);
    if !tools.is_empty() {
        let explained = explanation(tools);
        match plain.first_mut().filter(|message| message.role == Role::System) {
            Some(system) => {
                let text = format!("{}\n\n{explained}", system.content.text());
                *system = Message::new(Role::System, text);
            }
            None => plain.insert(0, Message::new(Role::System, explained)),
        }
    }
    plain
}

/// JSON with a blank after each comma and colon, as models know it.
fn spaced_json(value: &Value) -> String {
    let mut out = Vec::new();
    match value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => value.to_string(),
    }
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Calling, ChatTemplate, Conversation};

    fn weather() -> ToolDefinition {
        ToolDefinition {
            name: "weather".into(),
            description: Some("The weather in a city".into()),
            parameters: Some(
                json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
            ),
            strict: None,
        }
    }

    #[test]
    fn a_tool_is_explained_on_one_line_if_that_is_complete() {
        assert_eq!(listed(&weather()), "weather(city: string): The weather in a city");
        let properties = json!({"city": {"type": "string", "description": "With its country"}});
        let detailed = ToolDefinition {
            parameters: Some(json!({"type": "object", "properties": properties})),
            ..weather()
        };
        assert!(listed(&detailed).starts_with("{\"name\": \"weather\""), "{}", listed(&detailed));
    }

    #[test]
    fn a_long_list_of_tools_is_printed_as_signatures() {
        let source = "{% for tool in tools %}{{ tool | tojson }}\n{{ tool.function | tojson(indent=4) }}\n{% endfor %}";
        let template = ChatTemplate::new(source, "", "").expect("a template");
        let printed = |count: usize| {
            let tools = vec![weather(); count];
            let values: Vec<Value> = tools.iter().map(|tool| tool_value(tool, parameters(tool))).collect();
            let conversation = Conversation {
                messages: &[],
                tools: &values,
                signatures: &signatures(&tools),
                variables: &Map::new(),
                calling: Calling::Never,
            };
            template.render(&conversation).expect("a text").prompt
        };
        let line = "weather(city: string): The weather in a city\n";
        assert_eq!(printed(MAX_JSON_TOOLS + 1), line.repeat(2 * (MAX_JSON_TOOLS + 1)));
        let json = printed(MAX_JSON_TOOLS);
        assert_eq!(json.matches("{\"type\": \"function\"").count(), MAX_JSON_TOOLS, "{json}");
    }

    #[test]
    fn a_history_of_calls_is_text_for_a_model_without_tools() {
        let call =
            ToolCall { id: "c1".into(), name: "weather".into(), arguments: "{\"city\":\"Rome\"}".into() };
        let history = [
            Message::new(Role::System, "Be brief."),
            Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") },
            Message::tool_result("c1", "sunny"),
        ];
        let plain = spelled_out(&history, &[weather()]);
        assert!(plain[0].content.text().starts_with("Be brief.\n\nYou can call these functions"));
        assert_eq!(
            plain[1].content.text(),
            "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"
        );
        assert_eq!(plain[2], Message::new(Role::User, "<tool_response>\nsunny\n</tool_response>"));
    }
}
