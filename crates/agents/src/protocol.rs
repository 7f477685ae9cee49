//! The conversation of an agent with its model. Pure: asks no engine and runs no tool.

use hob_core::{
    Answer, Content, ContentPart, EngineError, GenerateRequest, Message, Role, ToolCall, ToolChoice,
    ToolDefinition, ToolResult,
};

/// The meaning of a turn of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModelTurn {
    /// The final answer.
    Answer(String),
    Calls(Box<RequestedCalls>),
}

/// The tool calls that a model requests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestedCalls {
    /// Never empty.
    pub(crate) calls: Vec<ToolCall>,
    /// The message of the model for the conversation.
    pub(crate) said: Message,
    /// The answer if the run must end here.
    pub(crate) so_far: String,
}

/// A result for the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownResult {
    pub(crate) message: Message,
    /// The name of the tool.
    pub(crate) tool: String,
    /// The text before the result.
    pub(crate) label: &'static str,
}

pub(crate) trait Protocol: Send + Sync {
    fn name(&self) -> &'static str;

    /// Prepares the request: adds the tools and the instructions.
    fn prepare(&self, request: &mut GenerateRequest, tools: &[ToolDefinition]) -> Result<(), EngineError>;

    fn read(&self, answer: &Answer, tools: &[ToolDefinition]) -> ModelTurn;

    /// The results as messages for the model.
    fn show(&self, calls: &[ToolCall], results: &[ToolResult]) -> Vec<ShownResult>;

    /// Selects which part of a turn's text the listener gets while it is generated. `None`: the turn is the answer, and the listener
    /// gets all its pieces as they are.
    fn text_filter(&self) -> Option<Box<dyn TextFilter>>;

    /// The number of calls of a turn that run concurrently.
    fn max_parallel(&self) -> usize {
        8
    }
}

/// Forwards or holds back the text of a turn. What it forwards is always a prefix of what [`Protocol::read`] returns for the
/// complete text; the rest follows at the end of the turn.
pub(crate) trait TextFilter: Send {
    fn pass(&mut self, piece: &str) -> String;
}

/// Forwards all text at once, except trailing blanks: models write line feeds before a call.
#[derive(Default)]
pub(crate) struct ForwardAll {
    blanks: String,
    begun: bool,
}

impl TextFilter for ForwardAll {
    fn pass(&mut self, piece: &str) -> String {
        if self.begun {
            return piece.to_owned();
        }
        self.blanks.push_str(piece);
        self.begun = !self.blanks.trim_start().is_empty();
        if self.begun { std::mem::take(&mut self.blanks) } else { String::new() }
    }
}

/// Forwards nothing before the text is complete.
pub(crate) struct HoldBack;

impl TextFilter for HoldBack {
    fn pass(&mut self, _piece: &str) -> String {
        String::new()
    }
}

/// Refuses what an agent with tools cannot do.
pub(crate) fn refuse_unsupported(agent: &str, request: &GenerateRequest) -> Result<(), EngineError> {
    let unsupported = |field: &str, hint: &str| EngineError::Unsupported {
        engine: agent.to_owned(),
        field: field.to_owned(),
        hint: Some(hint.to_owned()),
    };
    if request.answers() > 1 {
        return Err(unsupported("n", "an agent returns one answer; ask the engine directly for several"));
    }
    if !request.tools.is_empty() {
        return Err(unsupported(
            "tools",
            "an agent uses its own tools; ask the engine directly to get the calls",
        ));
    }
    Ok(())
}

/// Refuses a forced call, which only function calling supports.
pub(crate) fn refuse_forced_call(agent: &str, request: &GenerateRequest) -> Result<(), EngineError> {
    match request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::Function(_)) => Err(EngineError::Unsupported {
            engine: agent.to_owned(),
            field: "tool_choice".to_owned(),
            hint: Some("only the orchestrator supports a required tool call".to_owned()),
        }),
        Some(ToolChoice::Auto | ToolChoice::None) | None => Ok(()),
    }
}

/// Adds instructions to those of the caller, in the last leading system message: many chat templates accept only one.
pub(crate) fn instruct(messages: &mut Vec<Message>, instructions: String) {
    let leading = messages.iter_mut().take_while(|message| message.role == Role::System).last();
    let Some(message) = leading else {
        messages.insert(0, Message::new(Role::System, instructions));
        return;
    };
    match &mut message.content {
        Content::Empty => message.content = Content::Text(instructions),
        Content::Text(text) => {
            text.push_str("\n\n");
            text.push_str(&instructions);
        }
        Content::Parts(parts) => parts.push(ContentPart::Text(instructions)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_added_to_those_of_the_caller() {
        let system = |text: &str| Message::new(Role::System, text);
        let user = Message::new(Role::User, "hi");
        let cases = [
            (vec![user.clone()], vec![system("use tools"), user.clone()]),
            (vec![system("be kind"), user.clone()], vec![system("be kind\n\nuse tools"), user.clone()]),
            (
                vec![system("be kind"), system("be brief"), user.clone(), system("now")],
                vec![system("be kind"), system("be brief\n\nuse tools"), user, system("now")],
            ),
        ];
        for (mut before, after) in cases {
            instruct(&mut before, "use tools".into());
            assert_eq!(before, after);
        }
        let mut parts = vec![Message::new(Role::System, "")];
        parts[0].content = Content::Parts(vec![ContentPart::Text("be kind".into())]);
        instruct(&mut parts, "use tools".into());
        let joined =
            Content::Parts(vec![ContentPart::Text("be kind".into()), ContentPart::Text("use tools".into())]);
        assert_eq!(parts[0].content, joined);
    }

    #[test]
    fn blanks_are_heard_only_before_a_word() {
        let mut text_filter = ForwardAll::default();
        let forwarded: Vec<String> =
            ["\n", " ", "a", " ", "b"].iter().map(|piece| text_filter.pass(piece)).collect();
        assert_eq!(forwarded, ["", "", "\n a", " ", "b"]);
    }
}
