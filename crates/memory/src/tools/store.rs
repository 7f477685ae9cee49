//! `memory_store`: saves a note.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{Effect, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::service::MemoryService;
use crate::types::Note;

/// The longest note, in characters.
const LONGEST: usize = 100_000;

pub struct MemoryStoreTool {
    memory: Arc<MemoryService>,
}

impl MemoryStoreTool {
    pub fn new(memory: Arc<MemoryService>) -> Self {
        MemoryStoreTool { memory }
    }
}

#[derive(Deserialize)]
struct Arguments {
    content: String,
    title: Option<String>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    effect: Effect::Persists,
    ..ToolSpec::new(
        "memory_store",
        "Saves a note for later conversations. It may be a fact, a decision or a preference of the user.",
        // Models read notes later, so a stranger must not be able to write one.
        Reach::Act,
        object_schema(
            json!({
                "content": {
                    "type": "string", "minLength": 1, "maxLength": LONGEST, "description": "The note, clear without this conversation" },
                "title": { "type": ["string", "null"], "maxLength": 200, "description": "The subject" }
            }),
            &["content"],
        ),
    )
});

#[async_trait]
impl Tool for MemoryStoreTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["title"]
    }

    /// The owner's own text may be saved also in a tainted run.
    fn is_named_by_owner(&self, arguments: &Value, owner_words: &str) -> bool {
        let words = plain(owner_words);
        let is_written = |text: &str| {
            let text = plain(text);
            words.match_indices(&text).any(|(at, _)| {
                let before = words[..at].chars().next_back();
                let behind = words[at + text.len()..].chars().next();
                !text.is_empty() && [before, behind].iter().flatten().all(|c| !c.is_alphanumeric())
            })
        };
        let Ok(Arguments { content, title }) = tool_arguments::read(arguments.clone()) else { return false };
        is_written(&content) && title.is_none_or(|title| is_written(&title))
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { content, title } = tool_arguments::read(arguments)?;
        let name = self.memory.store(Note { title, text: content }).await.map_err(ToolError::new)?;
        Ok(format!("Saved as {name}."))
    }
}

/// The text without case, spacing and final punctuation.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', '!']).to_lowercase()
}
