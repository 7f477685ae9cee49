//! `memory_index`: files below directories that the owner of the machine named, into the memory.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::allowed_path::{AllowedRoots, locate};
use hob_core::{Effect, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::service::MemoryService;
use crate::types::IndexReport;

/// The setting that names the directories.
const SETTING: &str = "[tools] file_roots";

/// Files that could not be read and are named to the model.
const NAMED: usize = 5;

pub struct MemoryIndexTool {
    memory: Arc<MemoryService>,
    files: Arc<AllowedRoots>,
}

impl MemoryIndexTool {
    /// A model's words choose the path, so it must lie where `files` allows, like that of a file it wants to read.
    pub fn new(memory: Arc<MemoryService>, files: AllowedRoots) -> Self {
        MemoryIndexTool { memory, files: Arc::new(files) }
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: PathBuf,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec {
        effect: Effect::Persists,
        // The report names files.
        untrusted_output: true,
        // Large folders take long. What was indexed by then stays, and the next call continues from there.
        timeout: Some(Duration::from_secs(300)),
        ..ToolSpec::new(
            "memory_index",
            "Makes a file or directory searchable. Only changed files are read again. The path must be in a directory that the \
                      user allowed.",
            Reach::Act,
            object_schema(
                json!({
                    "path": { "type": "string", "minLength": 1, "description": "Absolute, or relative to an allowed directory" }
                }),
                &["path"],
            ),
        )
    }
});

#[async_trait]
impl Tool for MemoryIndexTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { path } = tool_arguments::read(arguments)?;
        if self.files.roots.is_empty() {
            return Err(ToolError::new(format!(
                "nothing can be indexed: the user has allowed no directory. The setting is {SETTING} in config.toml."
            )));
        }
        let files = Arc::clone(&self.files);
        let place = tokio::task::spawn_blocking(move || locate(&path, &files))
            .await
            .map_err(|error| ToolError::new(format!("looking for the path failed: {error}")))??;
        // By its parts, because a root itself is joined with nothing.
        let path: PathBuf = place.root.join(&place.below).components().collect();
        let report = self.memory.index(&path).await.map_err(ToolError::new)?;
        Ok(summary(&report))
    }
}

fn summary(report: &IndexReport) -> String {
    let IndexReport { files, indexed, unchanged, skipped, removed, chunks, failed, .. } = report;
    let mut text = format!(
        "Looked at {files} files: {indexed} taken in ({chunks} passages), {unchanged} unchanged, {skipped} not text, \
         {removed} gone, {failed} failed."
    );
    for warning in report.warnings.iter().take(NAMED) {
        text += &format!("\n{}: {}", warning.path.display(), warning.reason);
    }
    text
}
