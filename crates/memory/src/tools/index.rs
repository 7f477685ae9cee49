//! `memory_index`: indexes files in directories that the owner allows.

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

const SETTING: &str = "[tools] file_roots";

/// The number of failed files that are named.
const NAMED: usize = 5;

pub struct MemoryIndexTool {
    memory: Arc<MemoryService>,
    files: Arc<AllowedRoots>,
}

impl MemoryIndexTool {
    /// A model chooses the path, so it must be in `files`.
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
        // The report contains file names.
        untrusted_output: true,
        // Large folders take long. After a timeout, the next call continues.
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
                "nothing can be indexed: the user has allowed no directory. Set {SETTING} in config.toml."
            )));
        }
        let files = Arc::clone(&self.files);
        let place = hob_db::spawn_blocking(move || locate(&path, &files))
            .await
            .map_err(|error| ToolError::new(format!("cannot resolve the path: {error}")))??;
        // By components, because the path below a root may be empty.
        let path: PathBuf = place.root.join(&place.below).components().collect();
        let report = self.memory.index(&path).await.map_err(ToolError::new)?;
        Ok(summary(&report))
    }
}

fn summary(report: &IndexReport) -> String {
    let IndexReport { files, indexed, unchanged, added, skipped, removed, chunks, failed, .. } = report;
    // Files that are only new in the collection were not read again.
    let unchanged = unchanged + added;
    let mut text = format!(
        "Checked {files} files: {indexed} indexed ({chunks} passages), {unchanged} unchanged, {skipped} not text, \
         {removed} deleted, {failed} failed."
    );
    for warning in report.warnings.iter().take(NAMED) {
        text += &format!("\n{}: {}", warning.path.display(), warning.reason);
    }
    text
}
