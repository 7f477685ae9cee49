//! Finding conversations again.

use hob_core::Moment;
use hob_db::DatabaseError;

use super::{ChatId, Chats, Kept, Turn, TurnNumber};

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSummary {
    pub id: ChatId,
    /// How its first question begins, on one line.
    pub title: String,
    pub turns: u64,
    pub last_used: Moment,
}

/// What was said in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Oldest first, and never none.
    pub turns: Vec<Turn>,
    /// Where the last of them is kept.
    pub last: Kept,
}

impl Chats {
    /// The conversations that were used last, the newest first.
    pub fn list(&self, most: usize) -> Result<Vec<ChatSummary>, DatabaseError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.database.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT id, title, (SELECT count(*) FROM chat_turn WHERE chat = chat.id), last_used
                 FROM chat ORDER BY last_used DESC, id DESC LIMIT ?1",
            )?;
            let rows = statement.query_map([most], |row| {
                Ok(ChatSummary {
                    id: ChatId::new(row.get(0)?),
                    title: row.get(1)?,
                    turns: u64::try_from(row.get::<_, i64>(2)?).unwrap_or_default(),
                    last_used: Moment::from_microseconds(row.get(3)?),
                })
            })?;
            rows.collect()
        })
    }

    /// The conversation that was used last.
    pub fn latest(&self) -> Result<Option<ChatId>, DatabaseError> {
        Ok(self.list(1)?.first().map(|chat| chat.id))
    }

    /// A conversation; `None` when there is none of that number.
    pub fn conversation(&self, chat: ChatId) -> Result<Option<Conversation>, DatabaseError> {
        self.database.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT question, answer, ending, model, number FROM chat_turn WHERE chat = ?1 ORDER BY number",
            )?;
            let mut rows = statement.query([chat.get()])?;
            let mut turns = Vec::new();
            let mut last = None;
            while let Some(row) = rows.next()? {
                turns.push(Turn {
                    question: row.get(0)?,
                    answer: row.get(1)?,
                    ending: row.get(2)?,
                    model: row.get(3)?,
                });
                last = Some(Kept { chat, number: TurnNumber::new(row.get(4)?) });
            }
            Ok(last.map(|last| Conversation { turns, last }))
        })
    }
}
