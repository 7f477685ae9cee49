//! `code_interpreter`: runs code in the sandbox, and only there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_core::{Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Job, Sandbox, ScriptLanguage};

/// Added to the sandbox's own timeout, for the wait and the clean-up.
const MARGIN: Duration = Duration::from_secs(30);

pub struct CodeInterpreter {
    sandbox: Arc<Sandbox>,
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Arguments {
    language: ScriptLanguage,
    code: String,
}

impl CodeInterpreter {
    pub fn new(sandbox: Arc<Sandbox>) -> Self {
        let readable: Vec<String> =
            sandbox.readable().iter().map(|mount| mount.inside.display().to_string()).collect();
        let files = match readable.as_slice() {
            [] => String::new(),
            readable => format!(", with files to read in {},", readable.join(", ")),
        };
        let description = format!(
            "Runs code in a sandbox without network{files} and returns its output. Runs share no state. Only /tmp is writable."
        );
        let spec = ToolSpec {
            // No effect: it has no network, and its files are deleted. A listed directory may appear later, so the list counts.
            untrusted_output: sandbox.may_read(),
            timeout: Some(sandbox.timeout() + MARGIN),
            ..ToolSpec::new(
                "code_interpreter",
                &description,
                Reach::Act,
                object_schema(
                    json!({
                        "language": { "type": "string", "enum": ["python", "sh"] },
                        "code": { "type": "string", "description": "The whole program" }
                    }),
                    &["language", "code"],
                ),
            )
        };
        CodeInterpreter { sandbox, spec }
    }
}

#[async_trait]
impl Tool for CodeInterpreter {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { language, code } = tool_arguments::read(arguments)?;
        let job = Job { mounts: self.sandbox.readable(), ..Job::new(language, code) };
        let outcome = self.sandbox.run(job).await;
        // A program that fails is a result for the model; only a sandbox that fails is an error.
        outcome.map(|outcome| outcome.report()).map_err(ToolError::new)
    }
}
