//! The agent that uses the engine's own function calling.

use hob_core::{
    Answer, Content, EngineError, GenerateRequest, Message, REASONING_CONTENT, Role, SealedReasoning,
    ToolCall, ToolChoice, ToolDefinition, ToolResult, tool_arguments,
};

use crate::protocol::{
    ForwardAll, ModelTurn, Protocol, RequestedCalls, ShownResult, TextFilter, refuse_unsupported,
};

pub(crate) struct Orchestrator;

impl Protocol for Orchestrator {
    fn name(&self) -> &'static str {
        "orchestrator"
    }

    fn prepare(&self, request: &mut GenerateRequest, tools: &[ToolDefinition]) -> Result<(), EngineError> {
        refuse_unsupported(self.name(), request)?;
        let can_be_called = match &request.tool_choice {
            Some(ToolChoice::Required) => !tools.is_empty(),
            Some(ToolChoice::Function(name)) => tools.iter().any(|tool| tool.name == *name),
            Some(ToolChoice::Auto | ToolChoice::None) | None => true,
        };
        if !can_be_called {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            let hint = match names.as_slice() {
                [] => "this caller has no tools".to_owned(),
                names => format!("the tools of this caller are {}", names.join(", ")),
            };
            return Err(EngineError::Unsupported {
                engine: self.name().to_owned(),
                field: "tool_choice".to_owned(),
                hint: Some(hint),
            });
        }
        if request.tool_choice != Some(ToolChoice::None) {
            request.tools = tools.to_vec();
        }
        Ok(())
    }

    fn read(&self, answer: &Answer, _tools: &[ToolDefinition]) -> ModelTurn {
        if answer.tool_calls.is_empty() {
            return ModelTurn::Answer(answer.content.clone());
        }
        // Some models write line feeds before a call.
        let content = match answer.content.as_str() {
            blank if blank.trim().is_empty() => Content::Empty,
            text => text.into(),
        };
        ModelTurn::Calls(Box::new(RequestedCalls {
            calls: answer.tool_calls.clone(),
            so_far: content.text().into_owned(),
            said: said(answer, content),
        }))
    }

    fn show(&self, calls: &[ToolCall], results: &[ToolResult]) -> Vec<ShownResult> {
        calls
            .iter()
            .zip(results)
            .map(|(call, result)| ShownResult {
                message: Message::tool_result(call.id.as_str(), result.content.as_str()),
                tool: call.name.clone(),
                label: "",
            })
            .collect()
    }

    fn text_filter(&self) -> Option<Box<dyn TextFilter>> {
        Some(Box::new(ForwardAll::default()))
    }
}

/// The turn as engines accept it in a history. The reasoning belongs to it: Anthropic and others refuse calls without theirs.
fn said(answer: &Answer, content: Content) -> Message {
    let mut message = Message::new(Role::Assistant, content);
    message.tool_calls = answer.tool_calls.iter().map(replayed).collect();
    if let Some(reasoning) = &answer.reasoning {
        message.extra.insert(REASONING_CONTENT.to_owned(), reasoning.as_str().into());
    }
    SealedReasoning::add_to(&mut message.extra, &answer.sealed_reasoning);
    message
}

/// A call whose arguments are broken beyond mending has none. Its result says what was wrong with them.
fn replayed(call: &ToolCall) -> ToolCall {
    let arguments = tool_arguments::replayable(&call.arguments).unwrap_or(tool_arguments::NONE.into());
    ToolCall { arguments: arguments.into_owned(), ..call.clone() }
}
