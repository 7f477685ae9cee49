//! `think`: lets a model plan. It has no effect.

use std::sync::LazyLock;

use async_trait::async_trait;
use hob_core::{Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub struct Think;

#[derive(Deserialize)]
struct Arguments {
    thought: String,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::new(
        "think",
        "Records a thought. Use it to plan or to check something before acting; it has no other effect.",
        Reach::Pure,
        object_schema(json!({ "thought": { "type": "string" } }), &["thought"]),
    )
});

#[async_trait]
impl Tool for Think {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { thought } = tool_arguments::read(arguments)?;
        if thought.trim().is_empty() {
            return Err(ToolError::new("the thought is empty"));
        }
        // The thought is already in the conversation, as the arguments of the call.
        Ok("Noted. Continue.".to_owned())
    }
}
