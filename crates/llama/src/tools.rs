//! Formats of tool calls: detection, grammar, and an explanation for models whose template does not support tools. Knows nothing
//! of sampling or streams.

use hob_core::{Message, Role, ToolCall, ToolDefinition};
use serde_json::{Map, Value, json};

use crate::grammar::{GrammarText, literal};
use crate::schema::{Enforceable, reference};
use crate::template::spaced_json;

/// The most calls in an answer.
const MAX_CALLS: usize = 16;

/// The most tools that a template prints as JSON, the form that models are trained on. With more, the prompt becomes long: with
/// the agent's 18 tools it has 1,330 tokens in Qwen's format, and 510 with signatures.
const MAX_JSON_TOOLS: usize = 8;

/// The formats that models are trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolFormat {
    /// `<tool_call>{"name": …, "arguments": …}</tool_call>`, once per call: Hermes, Qwen, and the default.
    Tagged,
    /// `[TOOL_CALLS][{"name": …, "arguments": …}, …]`: Mistral.
    List,
    /// `{"name": …, "parameters": …}` as the whole answer: Llama 3.
    Bare,
}

impl ToolFormat {
    /// The format of a chat template.
    pub(crate) fn of_template(source: &str) -> Self {
        if source.contains("[TOOL_CALLS]") {
            ToolFormat::List
        } else if source.contains("<tool_call>") {
            ToolFormat::Tagged
        } else if source.contains("<|python_tag|>") || source.contains("\"parameters\": ") {
            ToolFormat::Bare
        } else {
            ToolFormat::Tagged
        }
    }

    /// The opening of a call, which may be empty.
    pub(crate) fn opening(self) -> &'static str {
        match self {
            ToolFormat::Tagged => "<tool_call>",
            ToolFormat::List => "[TOOL_CALLS]",
            ToolFormat::Bare => "",
        }
    }

    pub(crate) fn closing(self) -> &'static str {
        match self {
            ToolFormat::Tagged => "</tool_call>",
            ToolFormat::List | ToolFormat::Bare => "",
        }
    }

    pub(crate) fn arguments_key(self) -> &'static str {
        match self {
            ToolFormat::Tagged | ToolFormat::List => "arguments",
            ToolFormat::Bare => "parameters",
        }
    }

    /// The texts that mark calls.
    pub(crate) fn marks(self) -> impl Iterator<Item = &'static str> {
        [self.opening(), self.closing()].into_iter().filter(|mark| !mark.is_empty())
    }

    /// The grammar of one or more calls to functions with these names and schemas.
    pub(crate) fn grammar(self, functions: Vec<(&str, Enforceable)>, calls: Calls) -> GrammarText {
        let most = match calls {
            Calls::One => 1,
            Calls::Several => MAX_CALLS,
        };
        let mut definitions = Map::new();
        let mut objects = Vec::with_capacity(functions.len());
        for (at, (name, schema)) in functions.into_iter().enumerate() {
            let prefix = format!("{at}-");
            let arguments = self.arguments_key();
            objects.push(json!({
                "type": "object",
                "properties": { "name": { "const": name }, (arguments): { "$ref": reference(&prefix, 0) } },
                "required": ["name", arguments],
                "additionalProperties": false,
            }));
            definitions.extend(schema.definitions_named(&prefix));
        }
        let object = json!({ "anyOf": objects });
        let (opening, closing) = (literal(self.opening()), literal(self.closing()));
        match self {
            ToolFormat::Tagged => {
                let start = match calls {
                    Calls::One => "call".to_owned(),
                    Calls::Several => format!("call (GAP? call){{0,{}}}", most - 1),
                };
                let rules =
                    format!("start: {start}\ncall: {opening} GAP? json GAP? {closing}\nGAP: /[ \\n]/");
                GrammarText::around(&rules, object, definitions)
            }
            ToolFormat::List => {
                let rules = format!("start: {opening} GAP? json\nGAP: /[ \\n]/");
                let list = json!({ "type": "array", "items": object, "minItems": 1, "maxItems": most });
                GrammarText::around(&rules, list, definitions)
            }
            ToolFormat::Bare => GrammarText::of_document(object, definitions),
        }
    }

    /// A call as the model would have written it, for histories.
    fn write(self, call: &ToolCall) -> String {
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone()));
        let body = spaced_json(&json!({ "name": call.name, (self.arguments_key()): arguments }));
        format!("{}\n{body}\n{}", self.opening(), self.closing())
    }
}

/// The number of calls in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    One,
    Several,
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

/// A tool in the chat-completions format.
pub(crate) fn described(tool: &ToolDefinition) -> Value {
    let mut function = json!({ "name": tool.name });
    if let Some(description) = &tool.description {
        function["description"] = description.as_str().into();
    }
    function["parameters"] = parameters(tool);
    json!({ "type": "function", "function": function })
}

/// A tool on one line, which needs a third of the tokens of the JSON; the JSON if that would lose something.
fn listed(tool: &ToolDefinition) -> String {
    tool.signature().unwrap_or_else(|| spaced_json(&described(tool)["function"]))
}

/// The signatures of a long list of tools, by the JSON that a template prints for a tool or for its function. `described` are the
/// same tools in the chat-completions format.
pub(crate) fn signatures(tools: &[ToolDefinition], described: &[Value]) -> Map<String, Value> {
    let mut signatures = Map::new();
    if tools.len() <= MAX_JSON_TOOLS {
        return signatures;
    }
    for (tool, described) in tools.iter().zip(described) {
        if let Some(signature) = tool.signature() {
            signatures.insert(spaced_json(described), signature.as_str().into());
            signatures.insert(spaced_json(&described["function"]), signature.into());
        }
    }
    signatures
}

/// Explains tools to a model whose template does not.
pub(crate) fn explanation(tools: &[ToolDefinition]) -> String {
    let list: Vec<String> = tools.iter().map(listed).collect();
    format!(
        "You can call these functions, given by their arguments or as JSON with a schema of them:\n{}\n\n\
         To call a function, answer with its name and arguments in this form and nothing else:\n\
         <tool_call>\n{{\"name\": \"function\", \"arguments\": {{\"argument\": \"value\"}}}}\n</tool_call>\n\
         When no function helps, answer in words.",
        list.join("\n")
    )
}

/// The conversation for a template without tools: explained in the system message, calls and results as plain text.
pub(crate) fn spelled_out(messages: &[Message], tools: &[ToolDefinition]) -> Vec<Message> {
    let mut plain: Vec<Message> = Vec::with_capacity(messages.len() + 1);
    for message in messages {
        match message.role {
            Role::Assistant if !message.tool_calls.is_empty() => {
                let mut text = message.content.text().into_owned();
                for call in &message.tool_calls {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&ToolFormat::Tagged.write(call));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{ChatTemplate, Conversation};

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
    fn the_format_follows_the_template() {
        assert_eq!(ToolFormat::of_template("… <tool_call> … tools"), ToolFormat::Tagged);
        assert_eq!(ToolFormat::of_template("[TOOL_CALLS]"), ToolFormat::List);
        assert_eq!(ToolFormat::of_template("{\"name\": x, \"parameters\": y}"), ToolFormat::Bare);
        assert_eq!(ToolFormat::of_template(""), ToolFormat::Tagged);
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
        let template = ChatTemplate::new(source, String::new(), String::new()).expect("a template");
        let printed = |count: usize| {
            let tools = vec![weather(); count];
            let described: Vec<Value> = tools.iter().map(described).collect();
            let (signatures, variables) = (signatures(&tools, &described), Map::new());
            let conversation = Conversation {
                messages: &[],
                tools: &described,
                signatures: &signatures,
                variables: &variables,
            };
            template.render(&conversation).expect("a text")
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
