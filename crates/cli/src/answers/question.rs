//! A question as plain data: what the command line asks for, for an app in this process or for a running server.

use hob_conversations::{AttachmentKind, SavedAttachment};
use hob_core::message::file_text;
use hob_core::model::DEFAULT_MODEL;
use hob_core::{
    AgentPreference, AnswerDefaults, Caller, Content, ContentPart, GenerateRequest, Image, InvalidValue,
    JsonSchema, MaxTokens, MemoryUse, Message, Permit, Reach, RequestSource, ResponseFormat, Role, Sampling,
    Temperature, ToolChoice, random_id,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the caller's schema, which some providers require.
const SCHEMA_NAME: &str = "answer";

/// A question, and how it is to be answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AskQuestion {
    pub command: AskingCommand,
    /// `None` for the default model, which may have a fallback.
    pub model: Option<String>,
    /// The engine that must have the model; `None` for any.
    pub engine: Option<String>,
    /// The conversation, the question last.
    pub messages: Vec<AskMessage>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub top_p: Option<f64>,
    pub seed: Option<i64>,
    /// `None` for the engine itself.
    pub agent: Option<String>,
    /// The tools that the agent may use; `None` for all.
    pub tools: Option<Vec<String>>,
    pub requires_tool: bool,
    /// Whether the model gets passages from the memory.
    pub uses_memory: bool,
    /// The schema of the answer.
    pub schema: Option<Value>,
    /// Whether the answer comes as one event instead of piece by piece.
    pub is_whole: bool,
}

/// The command that asks. It is part of the name of the run in events and records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskingCommand {
    #[default]
    Ask,
    Chat,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskMessage {
    pub role: AskRole,
    pub text: String,
    /// Pictures and documents. They come before the text. Their authors need not be the user, so they taint a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<SavedAttachment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskRole {
    System,
    User,
    Assistant,
}

impl From<AskRole> for Role {
    fn from(role: AskRole) -> Self {
        match role {
            AskRole::System => Role::System,
            AskRole::User => Role::User,
            AskRole::Assistant => Role::Assistant,
        }
    }
}

impl AskMessage {
    pub fn new(role: AskRole, text: impl Into<String>) -> Self {
        AskMessage { role, text: text.into(), attachments: Vec::new() }
    }

    fn into_message(self) -> Message {
        if self.attachments.is_empty() {
            return Message::new(self.role.into(), self.text);
        }
        let part = |attachment: SavedAttachment| match attachment.kind {
            AttachmentKind::Text => ContentPart::Text(file_text(&attachment.name, &attachment.content)),
            AttachmentKind::Image => ContentPart::Image(Image { url: attachment.content, detail: None }),
        };
        let parts = self.attachments.into_iter().map(part).chain([ContentPart::Text(self.text)]).collect();
        Message::new(self.role.into(), Content::Parts(parts))
    }
}

impl AskQuestion {
    /// The local user, who may use all tools.
    pub(super) fn caller(&self) -> Caller {
        let agent = match &self.agent {
            Some(agent) => AgentPreference::Named(agent.clone()),
            None => AgentPreference::None,
        };
        let permit = Permit { only: self.tools.clone(), ..Permit::up_to(Reach::Act) };
        let memory = if self.uses_memory { MemoryUse::Allowed } else { MemoryUse::Unwanted };
        let run = match self.command {
            AskingCommand::Ask => random_id("ask-"),
            AskingCommand::Chat => random_id("chat-"),
        };
        Caller { permit, agent, memory, ..Caller::trusted(RequestSource::Ask, run) }
    }

    pub(super) fn into_request(self, defaults: AnswerDefaults) -> Result<GenerateRequest, InvalidValue> {
        let response_format = match self.schema {
            None => ResponseFormat::Text,
            Some(schema) => ResponseFormat::JsonSchema(JsonSchema {
                name: SCHEMA_NAME.to_owned(),
                description: None,
                schema,
                strict: None,
            }),
        };
        Ok(GenerateRequest {
            model: self.model.unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            messages: self.messages.into_iter().map(AskMessage::into_message).collect(),
            temperature: self.temperature.map(Temperature::new).transpose()?,
            max_tokens: self.max_tokens.map(|tokens| MaxTokens::new(tokens.into())).transpose()?,
            defaults,
            sampling: Sampling { top_p: self.top_p, seed: self.seed, ..Sampling::default() },
            tool_choice: self.requires_tool.then_some(ToolChoice::Required),
            response_format,
            ..GenerateRequest::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> SavedAttachment {
        SavedAttachment { name: "x.png".into(), kind: AttachmentKind::Image, content: "data:x".into() }
    }

    #[test]
    fn files_come_before_the_text() {
        let document =
            SavedAttachment { name: "a.txt".into(), kind: AttachmentKind::Text, content: "one".into() };
        let message = AskMessage {
            attachments: vec![picture(), document],
            ..AskMessage::new(AskRole::User, "Compare.")
        };
        let parts = vec![
            ContentPart::Image(Image { url: "data:x".into(), detail: None }),
            ContentPart::Text("File a.txt:\n\none\n\nEnd of file a.txt.".into()),
            ContentPart::Text("Compare.".into()),
        ];
        assert_eq!(message.into_message(), Message::new(Role::User, Content::Parts(parts)));
    }

    #[test]
    fn a_question_survives_its_way_to_the_server() {
        let question = AskQuestion {
            command: AskingCommand::Chat,
            model: Some("m".into()),
            engine: Some("ollama".into()),
            messages: vec![
                AskMessage::new(AskRole::System, "Be brief."),
                AskMessage { attachments: vec![picture()], ..AskMessage::new(AskRole::User, "What?") },
            ],
            temperature: Some(0.5),
            max_tokens: Some(9),
            top_p: Some(0.9),
            seed: Some(7),
            agent: Some("react".into()),
            tools: Some(vec!["calculator".into()]),
            requires_tool: true,
            uses_memory: true,
            schema: Some(serde_json::json!({ "type": "object" })),
            is_whole: true,
        };
        let text = serde_json::to_string(&question).expect("JSON");
        assert_eq!(serde_json::from_str::<AskQuestion>(&text).expect("the same"), question);
    }

    #[test]
    fn a_question_becomes_a_request_of_its_caller() {
        let question = AskQuestion {
            messages: vec![AskMessage::new(AskRole::User, "What?")],
            temperature: Some(0.5),
            agent: Some("react".into()),
            tools: Some(vec!["calculator".into()]),
            ..AskQuestion::default()
        };
        let caller = question.caller();
        assert_eq!(caller.agent, AgentPreference::Named("react".into()));
        assert_eq!(caller.permit.only, Some(vec!["calculator".to_owned()]));
        assert_eq!(caller.memory, MemoryUse::Unwanted);
        let request = question.into_request(AnswerDefaults::default()).expect("valid");
        let expected = GenerateRequest {
            model: DEFAULT_MODEL.into(),
            messages: vec![Message::new(Role::User, "What?")],
            temperature: Some(Temperature::new(0.5).expect("valid")),
            ..GenerateRequest::default()
        };
        assert_eq!(request, expected);
    }

    #[test]
    fn numbers_of_another_program_are_checked() {
        let hot = AskQuestion { temperature: Some(9.0), ..AskQuestion::default() };
        assert!(hot.into_request(AnswerDefaults::default()).is_err());
        let none = AskQuestion { max_tokens: Some(0), ..AskQuestion::default() };
        assert!(none.into_request(AnswerDefaults::default()).is_err());
    }
}
