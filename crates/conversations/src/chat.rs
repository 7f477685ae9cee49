//! Chats and their parts, as the pages and the terminal save and show them. The JSON of these types is both what is stored and what callers see.

use std::fmt;

use hob_core::Moment;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::types::{ChatId, SavedTurn, TurnEnding, TurnNumber};

/// How the questions of a chat are asked. `None` is the default of the server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, expecting = "an object")]
pub struct SavedSettings {
    pub model: Option<String>,
    pub agent: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    /// Whether the memory is searched.
    pub documents: Option<bool>,
    /// The tools that the agent may use, among those that the caller may use; `None` for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The id of the saved assistant that the settings come from.
    pub assistant: Option<String>,
}

/// A change of settings: fields that are not given stay as they are, and `null` removes a value.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, expecting = "an object")]
pub struct SettingsChange {
    #[serde(deserialize_with = "given")]
    pub model: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    pub agent: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    pub system: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    pub temperature: Option<Option<f64>>,
    #[serde(deserialize_with = "given")]
    pub max_tokens: Option<Option<u32>>,
    #[serde(deserialize_with = "given")]
    pub documents: Option<Option<bool>>,
    #[serde(deserialize_with = "given")]
    pub tools: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "given")]
    pub assistant: Option<Option<String>>,
}

fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

impl SettingsChange {
    /// The settings after the change.
    pub fn applied_to(self, before: SavedSettings) -> SavedSettings {
        SavedSettings {
            model: self.model.unwrap_or(before.model),
            agent: self.agent.unwrap_or(before.agent),
            system: self.system.unwrap_or(before.system),
            temperature: self.temperature.unwrap_or(before.temperature),
            max_tokens: self.max_tokens.unwrap_or(before.max_tokens),
            documents: self.documents.unwrap_or(before.documents),
            tools: self.tools.unwrap_or(before.tools),
            assistant: self.assistant.unwrap_or(before.assistant),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentKind {
    Text,
    Image,
}

/// A file or a picture of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub struct SavedAttachment {
    pub name: String,
    pub kind: AttachmentKind,
    /// The text of a file, or a picture as a `data:` URL.
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub struct SavedQuestion {
    pub text: String,
    #[serde(default)]
    pub attachments: Vec<SavedAttachment>,
}

/// A passage that the model got with the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub struct SavedSource {
    pub document: String,
    pub passage: String,
    #[serde(default)]
    pub score: f64,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub struct SavedStep {
    pub tool: String,
    #[serde(default)]
    pub arguments: Value,
    /// `null` for a call that did not end.
    #[serde(default)]
    pub result: Value,
    #[serde(default)]
    pub success: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub struct SavedUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub struct SavedAnswer {
    pub text: String,
    #[serde(default)]
    pub reasoning: Option<String>,
    pub model: String,
    #[serde(default)]
    pub sources: Vec<SavedSource>,
    #[serde(default)]
    pub steps: Vec<SavedStep>,
    #[serde(default)]
    pub usage: Option<SavedUsage>,
    pub ending: TurnEnding,
    #[serde(default)]
    pub error: Option<String>,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTurn {
    pub question: String,
    /// Files and pictures of the question.
    pub attachments: Vec<SavedAttachment>,
    pub answer: String,
    pub ending: TurnEnding,
    /// The model that answered.
    pub model: String,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatSummary {
    pub id: ChatId,
    /// Without a name of its own, the beginning of its first question, on one line.
    pub title: String,
    pub pinned: bool,
    /// Of all branches.
    pub turns: u64,
    pub created: Moment,
    pub last_used: Moment,
    pub settings: SavedSettings,
}

/// The current branch of a conversation, without questions that have no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    pub chat: ChatId,
    /// Oldest first.
    pub turns: Vec<ChatTurn>,
    /// Where the last of them is saved.
    pub last: Option<SavedTurn>,
}

/// A turn in the tree of a chat. Turns with the same parent are branches.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnNode {
    pub number: TurnNumber,
    pub parent: Option<TurnNumber>,
    pub question: SavedQuestion,
    /// `None` until an answer is saved.
    pub answer: Option<SavedAnswer>,
    pub created: Moment,
}

/// A chat with all branches.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedChat {
    pub summary: ChatSummary,
    /// The end of the branch that is shown; `None` without turns.
    pub current: Option<TurnNumber>,
    /// In the order in which they were asked.
    pub turns: Vec<TurnNode>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewChat {
    /// `None`: the first question gives it one.
    pub title: Option<String>,
    pub settings: SavedSettings,
}

/// What changes; `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatChange {
    pub title: Option<String>,
    pub pinned: Option<bool>,
    pub settings: Option<SettingsChange>,
    pub current: Option<TurnNumber>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewQuestion {
    /// The turn that it continues; `None` begins the chat, or another branch of its beginning.
    pub parent: Option<TurnNumber>,
    pub question: SavedQuestion,
}

/// A place in a list of chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatCursor {
    pub(crate) pinned: i64,
    pub(crate) last_used: i64,
    pub(crate) id: i64,
}

impl ChatCursor {
    /// Before the first chat.
    pub(crate) const START: ChatCursor = ChatCursor { pinned: i64::MAX, last_used: i64::MAX, id: i64::MAX };

    pub(crate) fn after(chat: &ChatSummary) -> Self {
        ChatCursor {
            pinned: i64::from(chat.pinned),
            last_used: chat.last_used.microseconds(),
            id: chat.id.get(),
        }
    }

    /// As callers send it back.
    pub fn to_text(self) -> String {
        format!("{}-{}-{}", self.pinned, self.last_used, self.id)
    }

    /// `None` for what is no cursor.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-').map(|part| part.parse().ok());
        let mut next = || parts.next().flatten();
        let cursor = ChatCursor { pinned: next()?, last_used: next()?, id: next()? };
        parts.next().is_none().then_some(cursor)
    }
}

/// Which chats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatPageQuery {
    /// Words that the title or one turn of a chat has, or begins with; all chats without one.
    pub words: Option<String>,
    pub limit: usize,
    pub after: Option<ChatCursor>,
}

/// Chats, the pinned ones first, and then those that were used last.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatPage {
    pub chats: Vec<ChatSummary>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<ChatCursor>,
}

/// Whether a chat was changed.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatChanged {
    Changed(Box<ChatSummary>),
    NoSuchChat,
    /// `ChatChange::current` is not a turn of the chat.
    NoSuchTurn,
    /// All chats of the caller together have too many bytes for the new settings.
    StorageFull,
}

/// Whether a question or an answer was saved.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnSaved {
    Saved(Box<TurnNode>),
    NoSuchChat,
    /// The chat has no such turn.
    NoSuchTurn,
    /// The chat has too many turns or bytes.
    ChatFull,
    /// All chats of the caller together have too many bytes.
    StorageFull,
}

/// The number of a saved assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AssistantId(pub(crate) i64);

impl AssistantId {
    /// The number in a text; `None` when it cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|id| *id > 0).map(AssistantId)
    }
}

impl fmt::Display for AssistantId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Settings with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedAssistant {
    pub id: AssistantId,
    pub name: String,
    pub settings: SavedSettings,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AssistantChange {
    pub name: Option<String>,
    pub settings: Option<SettingsChange>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_of_settings_leaves_what_it_does_not_name() {
        let before = SavedSettings {
            model: Some("qwen3:8b".into()),
            system: Some("Be brief.".into()),
            ..SavedSettings::default()
        };
        let change: SettingsChange =
            serde_json::from_value(json!({ "system": null, "temperature": 0.5, "tools": [] }))
                .expect("a change");
        let after = SavedSettings {
            temperature: Some(0.5),
            model: before.model.clone(),
            tools: Some(Vec::new()),
            ..SavedSettings::default()
        };
        assert_eq!(change.applied_to(before), after);
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is_one() {
        let cursor = ChatCursor { pinned: 1, last_used: 1_700_000_000_000_000, id: 7 };
        assert_eq!(ChatCursor::parse(&cursor.to_text()), Some(cursor));
        for text in ["", "1", "1-2", "1-2-3-4", "a-b-c", "1--3"] {
            assert_eq!(ChatCursor::parse(text), None, "{text}");
        }
    }
}
