//! `file_read`: text files in the directories that the owner allows.

mod open;
mod text;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::allowed_path::{AllowedRoots, locate};
use hob_core::{Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use text::Window;

/// The setting that names the directories.
const SETTING: &str = "[tools] file_roots";

#[derive(Debug)]
pub struct FileRead {
    options: Arc<AllowedRoots>,
}

impl FileRead {
    pub fn new(options: AllowedRoots) -> Self {
        FileRead { options: Arc::new(options) }
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: PathBuf,
    offset: Option<usize>,
    limit: Option<usize>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    untrusted_output: true,
    ..ToolSpec::new(
        "file_read",
        "Reads lines of a text file. Only files in directories that the user allowed.",
        Reach::Read,
        object_schema(
            json!({
                "path": { "type": "string", "description": "Absolute, or relative to an allowed directory" },
                "offset": { "type": ["integer", "null"], "minimum": 1, "description": "First line, counted from 1" },
                "limit": { "type": ["integer", "null"], "minimum": 1, "description": "Number of lines; all by default" }
            }),
            &["path"],
        ),
    )
});

#[async_trait]
impl Tool for FileRead {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { path, offset, limit } = tool_arguments::read(arguments)?;
        if self.options.roots.is_empty() {
            return Err(ToolError::new(format!(
                "no file can be read: the user has allowed no directory. Set {SETTING} in config.toml."
            )));
        }
        let window = Window { first: offset.unwrap_or(1).max(1), count: limit.unwrap_or(usize::MAX) };
        let options = Arc::clone(&self.options);
        let reading = tokio::task::spawn_blocking(move || {
            let place = locate(&path, &options)?;
            let file = open::open(&place)?;
            text::read(file, window, &path)
        });
        reading.await.map_err(|error| ToolError::new(format!("cannot read the file: {error}")))?
    }
}
