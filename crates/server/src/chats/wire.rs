//! Chats and turns as callers see them. Their ids are strings.

use hob_conversations::{
    ChatSummary, SavedAnswer, SavedChat, SavedQuestion, SavedSettings, TurnNode, TurnNumber,
};
use hob_core::Moment;
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct WireChat {
    id: String,
    title: String,
    pinned: bool,
    created_at: Moment,
    /// When a question or an answer was saved last.
    updated_at: Moment,
    turns: u64,
    settings: SavedSettings,
}

impl From<ChatSummary> for WireChat {
    fn from(chat: ChatSummary) -> Self {
        WireChat {
            id: chat.id.to_string(),
            title: chat.title,
            pinned: chat.pinned,
            created_at: chat.created,
            updated_at: chat.last_used,
            turns: chat.turns,
            settings: chat.settings,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct WireTurn {
    id: String,
    parent: Option<String>,
    question: SavedQuestion,
    answer: Option<SavedAnswer>,
    created_at: Moment,
}

impl From<TurnNode> for WireTurn {
    fn from(turn: TurnNode) -> Self {
        WireTurn {
            id: turn.number.to_string(),
            parent: turn.parent.map(|parent| parent.to_string()),
            question: turn.question,
            answer: turn.answer,
            created_at: turn.created,
        }
    }
}

/// A chat with all its turns.
#[derive(Serialize)]
pub(super) struct OpenChat {
    #[serde(flatten)]
    chat: WireChat,
    current: Option<String>,
    data: Vec<WireTurn>,
}

impl From<SavedChat> for OpenChat {
    fn from(chat: SavedChat) -> Self {
        OpenChat {
            chat: chat.summary.into(),
            current: chat.current.as_ref().map(TurnNumber::to_string),
            data: chat.turns.into_iter().map(WireTurn::from).collect(),
        }
    }
}
