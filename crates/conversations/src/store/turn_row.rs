//! A turn as both databases store it, and the tree that the turns of a chat are.

use hob_core::Moment;
use hob_db::UnreadableColumn;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::chat::{
    ChatTurn, SavedAnswer, SavedAttachment, SavedQuestion, SavedSettings, SavedSource, SavedStep, SavedUsage,
    TurnNode,
};
use crate::types::{TurnEnding, TurnNumber};

/// `parent` of a turn that continues the one with the next lower number. Older versions wrote only such turns.
const TURN_BEFORE: i64 = -1;

/// The parent of the turn `turn` in SQL, with what [`nodes`] makes of it: 0 for none.
pub(crate) const PARENT: &str = "coalesce((SELECT max(other.number) FROM chat_turn AS other \
    WHERE other.chat = turn.chat AND other.number < turn.number AND (turn.parent = -1 OR other.number = turn.parent)), 0)";

/// `state` of a turn without an answer.
pub(crate) const UNANSWERED: &str = "none";

/// The columns of a turn.
pub(crate) struct TurnRow {
    pub(crate) number: i64,
    pub(crate) parent: i64,
    pub(crate) question: String,
    pub(crate) attachments: String,
    pub(crate) answer: String,
    pub(crate) detail: String,
    pub(crate) ending: String,
    pub(crate) state: String,
    pub(crate) model: String,
    pub(crate) created: i64,
}

/// The parts of an answer that are one column.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct AnswerDetail {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<SavedSource>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<SavedStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<SavedUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// JSON of a value of our own, which cannot fail.
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn from_json<T: DeserializeOwned + Default>(column: &'static str, text: &str) -> Result<T, UnreadableColumn> {
    if text.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_str(text).map_err(|error| UnreadableColumn::new(column, error))
}

pub(crate) fn write_settings(settings: &SavedSettings) -> String {
    to_json(settings)
}

pub(crate) fn read_settings(text: &str) -> Result<SavedSettings, UnreadableColumn> {
    from_json("settings", text)
}

pub(crate) fn write_attachments(attachments: &[SavedAttachment]) -> String {
    if attachments.is_empty() { String::new() } else { to_json(&attachments) }
}

/// The column `detail` of an answer.
pub(crate) fn write_detail(answer: &SavedAnswer) -> String {
    let SavedAnswer { reasoning, sources, steps, usage, error, .. } = answer.clone();
    match to_json(&AnswerDetail { reasoning, sources, steps, usage, error }) {
        empty if empty == "{}" => String::new(),
        detail => detail,
    }
}

/// The columns `ending` and `state`. An older Hob reads only the first, and knows two endings.
pub(crate) fn write_ending(ending: TurnEnding) -> (&'static str, &'static str) {
    match ending {
        TurnEnding::Complete => ("complete", ""),
        TurnEnding::Stopped => ("stopped", ""),
        TurnEnding::Cut => ("stopped", "cut"),
        TurnEnding::Failed => ("stopped", "failed"),
    }
}

/// `None` without an answer.
fn read_ending(ending: &str, state: &str) -> Result<Option<TurnEnding>, UnreadableColumn> {
    match (state, ending) {
        (UNANSWERED, _) => Ok(None),
        ("cut", _) => Ok(Some(TurnEnding::Cut)),
        ("failed", _) => Ok(Some(TurnEnding::Failed)),
        ("", "complete") => Ok(Some(TurnEnding::Complete)),
        ("", "stopped") => Ok(Some(TurnEnding::Stopped)),
        _ => Err(UnreadableColumn::new("ending", format!("unknown value '{ending} {state}'"))),
    }
}

impl TurnRow {
    fn read(self, parent: Option<TurnNumber>) -> Result<TurnNode, UnreadableColumn> {
        let answer = match read_ending(&self.ending, &self.state)? {
            None => None,
            Some(ending) => {
                let detail: AnswerDetail = from_json("detail", &self.detail)?;
                let AnswerDetail { reasoning, sources, steps, usage, error } = detail;
                let (text, model) = (self.answer, self.model);
                Some(SavedAnswer { text, reasoning, model, sources, steps, usage, ending, error })
            }
        };
        let attachments = from_json("attachments", &self.attachments)?;
        Ok(TurnNode {
            number: TurnNumber::new(self.number),
            parent,
            question: SavedQuestion { text: self.question, attachments },
            answer,
            created: Moment::from_microseconds(self.created),
        })
    }
}

/// The turns of a chat, whose rows are in the order of their numbers. A turn whose parent made room begins the chat.
pub(crate) fn nodes(rows: Vec<TurnRow>) -> Result<Vec<TurnNode>, UnreadableColumn> {
    let mut nodes: Vec<TurnNode> = Vec::with_capacity(rows.len());
    for row in rows {
        let parent = match row.parent {
            TURN_BEFORE => nodes.last().map(|node| node.number),
            parent => {
                let parent = TurnNumber::new(parent);
                nodes.binary_search_by_key(&parent, |node| node.number).ok().map(|_| parent)
            }
        };
        nodes.push(row.read(parent)?);
    }
    Ok(nodes)
}

/// A turn whose parent is resolved.
pub(crate) fn node(row: TurnRow) -> Result<TurnNode, UnreadableColumn> {
    let parent = (row.parent > 0).then(|| TurnNumber::new(row.parent));
    row.read(parent)
}

/// The end of the branch that is shown.
pub(crate) fn current(stored: i64, nodes: &[TurnNode]) -> Option<TurnNumber> {
    let stored = TurnNumber::new(stored);
    let is_there = nodes.binary_search_by_key(&stored, |node| node.number).is_ok();
    if is_there { Some(stored) } else { nodes.last().map(|node| node.number) }
}

/// The answered turns from the beginning to `end`. A parent has a lower number, so this ends.
pub(crate) fn branch(nodes: &[TurnNode], end: Option<TurnNumber>) -> Vec<(TurnNumber, ChatTurn)> {
    let mut turns = Vec::new();
    let mut next = end;
    while let Some(number) = next {
        let Ok(at) = nodes.binary_search_by_key(&number, |node| node.number) else { break };
        let TurnNode { question, answer, parent, .. } = &nodes[at];
        if let Some(answer) = answer {
            let turn = ChatTurn {
                question: question.text.clone(),
                attachments: question.attachments.clone(),
                answer: answer.text.clone(),
                ending: answer.ending,
                model: answer.model.clone(),
            };
            turns.push((number, turn));
        }
        next = *parent;
    }
    turns.reverse();
    turns
}
