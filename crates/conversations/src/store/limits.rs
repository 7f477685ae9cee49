//! How much is saved. Pure: shared by all databases.

use std::borrow::Cow;
use std::time::SystemTime;

use hob_core::Moment;

use crate::responses::ResponseOwner;

/// Turns of one chat, on all branches.
pub const MAX_TURNS: i64 = 2_000;

/// Bytes of one chat: its turns and its settings.
pub const MAX_CHAT_BYTES: i64 = 32 << 20;

/// Bytes of one text.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// Bytes of a system prompt. Lists of chats and of assistants have all of them in full.
pub const MAX_SYSTEM_BYTES: usize = 64 << 10;

/// Files and pictures of one question.
pub const MAX_ATTACHMENTS: usize = 16;

/// Bytes of one of them, and of all of one question.
pub const MAX_ATTACHMENT_BYTES: usize = 8 << 20;

/// Bytes of an answer besides its text: reasoning, sources, steps.
pub const MAX_ANSWER_DETAIL_BYTES: usize = 4 << 20;

/// Sources, and steps, of one answer.
pub const MAX_ANSWER_PARTS: usize = 512;

/// Characters of a title, and of the name of an assistant.
pub const MAX_TITLE_CHARS: usize = 200;

/// Tools in settings.
pub const MAX_TOOLS: usize = 64;

/// Characters of the names in settings.
pub const MAX_NAME_CHARS: usize = 300;

/// Assistants of one caller.
pub const MAX_ASSISTANTS: i64 = 200;

/// Marks the end of a truncated text.
pub(crate) const CUT: &str = "\n[the rest was too long to keep]";

/// What one caller may have saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatLimits {
    pub chats: i64,
    /// Of all chats.
    pub bytes: i64,
    pub turns: i64,
    pub chat_bytes: i64,
    pub assistants: i64,
}

const OWNER: ChatLimits = ChatLimits {
    chats: 20_000,
    bytes: 1 << 30,
    turns: MAX_TURNS,
    chat_bytes: MAX_CHAT_BYTES,
    assistants: MAX_ASSISTANTS,
};

/// One member: a quarter of the owner's, so that a team fits.
const MEMBER: ChatLimits = ChatLimits { chats: OWNER.chats / 4, bytes: OWNER.bytes / 4, ..OWNER };

impl ChatLimits {
    pub fn of(owner: &ResponseOwner) -> Self {
        if owner.is_owner() { OWNER } else { MEMBER }
    }
}

/// The caller of a change, and how much it may save.
pub(super) struct Room<'a> {
    pub(super) owner: &'a ResponseOwner,
    pub(super) limits: ChatLimits,
    pub(super) now: SystemTime,
}

impl Room<'_> {
    pub(super) fn microseconds(&self) -> i64 {
        Moment::of(self.now).microseconds()
    }
}

/// The text, or as much of it as is saved.
pub(crate) fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_TEXT_BYTES {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

/// The title of a conversation that begins with this question.
pub(crate) fn title(question: &str) -> String {
    let words = question.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_TITLE_CHARS).collect()
}
