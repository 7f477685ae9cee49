//! How an agent speaks with its model. Pure: asks no engine and runs no tool.

use hob_core::{
    Answer, Content, ContentPart, EngineError, GenerateRequest, Message, Role, ToolCall, ToolChoice,
    ToolDefinition, ToolResult,
};

/// What a turn of the model means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModelTurn {
    /// It is the final answer.
    Answer(String),
    Calls(Box<RequestedCalls>),
}

/// What a model wants done before it goes on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestedCalls {
    /// Never empty.
    pub(crate) calls: Vec<ToolCall>,
    /// What the model said, as the conversation keeps it.
    pub(crate) said: Message,
    /// What the caller gets if the run has to end here.
    pub(crate) so_far: String,
}

/// A result on its way to the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownResult {
    pub(crate) message: Message,
    /// The tool it is of.
    pub(crate) tool: String,
    /// What stands before the result in the message's text.
    pub(crate) label: &'static str,
}

pub(crate) trait Protocol: Send + Sync {
    fn name(&self) -> &'static str;

    /// Makes the caller's request the agent's own: offers the tools, adds instructions.
    fn prepare(&self, request: &mut GenerateRequest, tools: &[ToolDefinition]) -> Result<(), EngineError>;

    fn read(&self, answer: &Answer, tools: &[ToolDefinition]) -> ModelTurn;

    /// The results as the model sees them.
    fn show(&self, calls: &[ToolCall], results: &[ToolResult]) -> Vec<ShownResult>;

    /// Selects which part of a turn's text the listener gets while it is generated.
    fn text_filter(&self) -> Box<dyn TextFilter>;

    /// How many calls of a turn run side by side.
    fn at_once(&self) -> usize {
        8
    }
}

/// Forwards the pieces of a turn's text, or holds them back. What it forwards is always a prefix of what
/// [`Protocol::read`] makes of the whole text; the rest follows at the end of the turn.
pub(crate) trait TextFilter: Send {
    fn pass(&mut self, piece: &str) -> String;
}

/// Forwards all text at once, but blanks only when a word follows: models write line feeds before a call.
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

/// Forwards nothing before the whole text is known.
pub(crate) struct HoldBack;

impl TextFilter for HoldBack {
    fn pass(&mut self, _piece: &str) -> String {
        String::new()
    }
}

/// Refuses what an agent with tools cannot give.
pub(crate) fn refuse_what_cannot_hold(agent: &str, request: &GenerateRequest) -> Result<(), EngineError> {
    let unsupported = |field: &str, hint: &str| EngineError::Unsupported {
        engine: agent.to_owned(),
        field: field.to_owned(),
        hint: Some(hint.to_owned()),
    };
    if request.answers() > 1 {
        return Err(unsupported("n", "an agent works towards one answer; ask the engine itself for several"));
    }
    if !request.tools.is_empty() {
        return Err(unsupported(
            "tools",
            "an agent uses its own; ask the engine itself to get the calls back",
        ));
    }
    Ok(())
}

/// Refuses to force a call: only the engine's own function calling can.
pub(crate) fn refuse_forced_call(agent: &str, request: &GenerateRequest) -> Result<(), EngineError> {
    match request.tool_choice {
        Some(ToolChoice::Required | ToolChoice::Function(_)) => Err(EngineError::Unsupported {
            engine: agent.to_owned(),
            field: "tool_choice".to_owned(),
            hint: Some("only the orchestrator can be made to use a tool".to_owned()),
        }),
        Some(ToolChoice::Auto | ToolChoice::None) | None => Ok(()),
    }
}

/// Adds instructions to the caller's own. They go into the last of the leading system messages, because many chat templates
/// take only one.
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
    fn instructions_join_the_callers_own_and_replace_nothing() {
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
        let heard: Vec<String> =
            ["\n", " ", "a", " ", "b"].iter().map(|piece| text_filter.pass(piece)).collect();
        assert_eq!(heard, ["", "", "\n a", " ", "b"]);
    }
}
