//! The agent that writes its thoughts and actions as text, for models without function calling.

use hob_core::{
    Answer, EngineError, FinishReason, GenerateRequest, Message, Role, ToolCall, ToolDefinition, ToolResult,
};
use serde_json::{Map, Value, json};

use crate::protocol::{
    ModelTurn, Protocol, RequestedCalls, ShownResult, TextFilter, instruct, refuse_forced_call,
    refuse_unsupported,
};
use crate::react_text::{FinalAnswerFilter, ReactStep, parse, render};

const OBSERVATION: &str = "Observation: ";
/// Keeps a model from inventing results.
const STOP: &str = "\nObservation:";
/// The number of stop sequences that chat-completions engines accept. Those of the caller come first.
const MAX_STOPS: usize = 4;

pub(crate) struct React;

impl Protocol for React {
    fn name(&self) -> &'static str {
        "react"
    }

    fn prepare(&self, request: &mut GenerateRequest, tools: &[ToolDefinition]) -> Result<(), EngineError> {
        refuse_unsupported(self.name(), request)?;
        refuse_forced_call(self.name(), request)?;
        if request.sampling.logprobs {
            return Err(EngineError::Unsupported {
                engine: self.name().to_owned(),
                field: "logprobs".to_owned(),
                hint: Some("its answer is only a part of the model's output".to_owned()),
            });
        }
        if tools.is_empty() {
            return Ok(());
        }
        instruct(&mut request.messages, instructions(tools));
        let stops = &mut request.sampling.stop;
        if stops.len() < MAX_STOPS {
            stops.push(STOP.to_owned());
        }
        Ok(())
    }

    fn read(&self, answer: &Answer, tools: &[ToolDefinition]) -> ModelTurn {
        let step = parse(&answer.content);
        let said = Message::new(Role::Assistant, render(&step));
        match step {
            ReactStep::Answer { answer, .. } => ModelTurn::Answer(answer),
            ReactStep::Act { thought, action, input } => {
                let so_far = if thought.is_empty() { answer.content.trim().to_owned() } else { thought };
                // An incomplete action must not run. Only a JSON object shows where the input ends.
                if answer.finish_reason == FinishReason::Length && first_object(&input).is_none() {
                    return ModelTurn::Answer(so_far);
                }
                let tool = tools.iter().find(|tool| tool.name.eq_ignore_ascii_case(&action));
                let arguments = arguments(&input, tool);
                let name = tool.map_or(action, |tool| tool.name.clone());
                // The text has no id, and there is never more than one call.
                let call = ToolCall { id: "action".to_owned(), name, arguments };
                ModelTurn::Calls(Box::new(RequestedCalls { calls: vec![call], said, so_far }))
            }
        }
    }

    fn show(&self, _calls: &[ToolCall], results: &[ToolResult]) -> Vec<ShownResult> {
        results
            .iter()
            .map(|result| ShownResult {
                message: Message::new(Role::User, format!("{OBSERVATION}{}", result.content)),
                tool: result.tool_name.clone(),
                label: OBSERVATION,
            })
            .collect()
    }

    fn text_filter(&self) -> Option<Box<dyn TextFilter>> {
        Some(Box::new(FinalAnswerFilter::default()))
    }
}

fn instructions(tools: &[ToolDefinition]) -> String {
    let mut text = String::from(
        "You can use tools. To use one, write exactly this and then stop:\n\n\
         Thought: what you want to find out\n\
         Action: the name of one tool\n\
         Action Input: its arguments as one JSON object\n\n\
         The next message contains the result after the word Observation. Repeat this until you know enough, then write:\n\n\
         Thought: why you know enough\n\
         Final Answer: your answer\n\n\
         The tools:\n",
    );
    for tool in tools {
        let in_full = || {
            let description = tool.description.as_deref().unwrap_or_default();
            let parameters = tool.parameters.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string);
            format!("{}: {description} Arguments: {parameters}", tool.name)
        };
        text.push_str(&format!("- {}\n", tool.signature().unwrap_or_else(in_full)));
    }
    text
}

/// The arguments in the text after `Action Input:`. If a tool has one parameter, plain text is its value.
fn arguments(input: &str, tool: Option<&ToolDefinition>) -> String {
    if input.is_empty() {
        return "{}".to_owned();
    }
    if let Some(object) = first_object(input) {
        return Value::Object(object).to_string();
    }
    // A broken object is not the value of a parameter. The tool runner tells the model what is wrong with it.
    if input.starts_with('{') {
        return input.to_owned();
    }
    let Some((name, schema)) = tool.and_then(only_parameter) else { return input.to_owned() };
    let value = match serde_json::from_str(input) {
        Ok(value @ Value::String(_)) => value,
        Ok(value) if schema.get("type") != Some(&json!("string")) => value,
        _ => Value::String(input.to_owned()),
    };
    Value::Object(Map::from_iter([(name.clone(), value)])).to_string()
}

/// The JSON object at the start of an input. Models often continue after it.
fn first_object(input: &str) -> Option<Map<String, Value>> {
    match serde_json::Deserializer::from_str(input).into_iter::<Value>().next() {
        Some(Ok(Value::Object(object))) => Some(object),
        _ => None,
    }
}

/// The only parameter of a tool, or the only required one.
fn only_parameter(tool: &ToolDefinition) -> Option<(&String, &Value)> {
    let parameters = tool.parameters.as_ref()?;
    let properties = parameters.get("properties")?.as_object()?;
    if properties.len() == 1 {
        return properties.iter().next();
    }
    match parameters.get("required")?.as_array()?.as_slice() {
        [required] => properties.get_key_value(required.as_str()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(parameters: Value) -> ToolDefinition {
        ToolDefinition { name: "t".into(), description: None, parameters: Some(parameters), strict: None }
    }

    #[test]
    fn a_plain_text_is_the_value_of_the_only_parameter() {
        let text = tool(json!({ "properties": { "expression": { "type": "string" } } }));
        let number = tool(json!({ "properties": { "n": { "type": "integer" } } }));
        let one_required = tool(json!({ "properties": { "url": {}, "depth": {} }, "required": ["url"] }));
        let two = tool(json!({ "properties": { "a": {}, "b": {} }, "required": ["a", "b"] }));
        for (input, tool, expected) in [
            ("2+2", &text, r#"{"expression":"2+2"}"#),
            ("\"2+2\"", &text, r#"{"expression":"2+2"}"#),
            ("42", &text, r#"{"expression":"42"}"#),
            ("42", &number, r#"{"n":42}"#),
            ("http://a.b", &one_required, r#"{"url":"http://a.b"}"#),
            ("{\"expression\": \"1\"} and then I wait", &text, r#"{"expression":"1"}"#),
            ("1, 2", &two, "1, 2"),
            ("", &two, "{}"),
            ("{\"expression\": \"1\n2\"}", &text, "{\"expression\": \"1\n2\"}"),
            ("{\"expression\": \"1", &text, "{\"expression\": \"1"),
        ] {
            assert_eq!(arguments(input, Some(tool)), expected, "{input}");
        }
        assert_eq!(arguments("2+2", None), "2+2");
    }

    #[test]
    fn the_callers_stop_sequences_come_first() {
        let tools = [tool(json!({}))];
        let mut request = GenerateRequest::default();
        request.sampling.stop = vec!["END".into()];
        React.prepare(&mut request, &tools).unwrap();
        assert_eq!(request.sampling.stop, ["END", "\nObservation:"]);
        request.sampling.stop = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        React.prepare(&mut request, &tools).unwrap();
        assert_eq!(request.sampling.stop, ["a", "b", "c", "d"]);
    }
}
