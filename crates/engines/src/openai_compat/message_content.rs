//! The `content` of an answer: a text, or a list of parts. Mistral sends a list while its model thinks:
//! `[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"4"}]`.

use serde::Deserialize;
use serde_json::Value;

/// The content, with texts of the type `T`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "'content' is neither a text nor a list of parts")]
pub(super) enum MessageContent<T> {
    Text(T),
    Parts(Vec<Value>),
}

impl<T: From<String>> MessageContent<T> {
    /// What the model thought, and what it says.
    pub(super) fn split(self) -> (Option<T>, Option<T>) {
        match self {
            MessageContent::Text(text) => (None, Some(text)),
            MessageContent::Parts(parts) => {
                let thoughts = parts.iter().filter_map(|part| part["thinking"].as_array()).flatten();
                (texts(thoughts), texts(&parts))
            }
        }
    }
}

/// The texts of all parts that have one; references have none.
fn texts<'a, T: From<String>>(parts: impl IntoIterator<Item = &'a Value>) -> Option<T> {
    let text: String = parts.into_iter().filter_map(|part| part["text"].as_str()).collect();
    (!text.is_empty()).then(|| text.into())
}
