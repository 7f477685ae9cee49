//! `memory_store`: a note for later.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{Memory, Note, Reach, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::arguments;
use super::told;

/// The longest note, in characters.
const LONGEST: usize = 100_000;

/// The tool.
pub struct MemoryNote {
    memory: Arc<dyn Memory>,
}

impl MemoryNote {
    pub fn new(memory: Arc<dyn Memory>) -> Self {
        MemoryNote { memory }
    }
}

#[derive(Deserialize)]
struct Arguments {
    content: String,
    title: Option<String>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "memory_store".to_owned(),
    description: "Remembers a note for later conversations: a fact, a decision, a preference of the user."
        .to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "content": {
                "type": "string", "minLength": 1, "maxLength": LONGEST,
                "description": "The note, in words that will be understood without this conversation"
            },
            "title": { "type": ["string", "null"], "maxLength": 200, "description": "What it is about" }
        },
        "required": ["content"],
        "additionalProperties": false
    }),
    // Whatever is remembered is told to models later, so strangers must not get to put it there.
    reach: Reach::Act,
    timeout: None,
});

#[async_trait]
impl Tool for MemoryNote {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { content, title } = arguments::read(arguments)?;
        let name = self.memory.store(Note { title, text: content }).await.map_err(told)?;
        Ok(format!("Remembered as {name}."))
    }
}
