//! The tools that come with the house. Each implements `hob_core::Tool` and knows nothing of agents, of the tool box or of
//! each other.

mod arguments;
pub mod calculator;
mod code_interpreter;
mod current_time;
pub mod file_read;
mod llm;
mod think;
pub mod web_fetch;

use std::sync::Arc;

use hob_core::Tool;

use crate::sandbox::Sandbox;
pub use calculator::Calculator;
pub use code_interpreter::CodeInterpreter;
pub use current_time::{Clock, CurrentTime};
pub use file_read::{FileRead, FileReadOptions};
pub use llm::{Llm, LlmOptions, ModelSource};
pub use think::Think;
pub use web_fetch::{AddressPolicy, FetchError, WebFetch, WebFetchOptions};

/// What the built-in tools need.
pub struct BuiltInOptions {
    pub clock: Clock,
    pub file_read: FileReadOptions,
    pub web_fetch: WebFetchOptions,
    /// Without one there is no `code_interpreter`.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Without one there is no `llm`.
    pub llm: Option<LlmOptions>,
}

impl Default for BuiltInOptions {
    /// The system's clock, no files, the public web, no sandbox and no model.
    fn default() -> Self {
        BuiltInOptions {
            clock: Arc::new(jiff::Timestamp::now),
            file_read: FileReadOptions::default(),
            web_fetch: WebFetchOptions::default(),
            sandbox: None,
            llm: None,
        }
    }
}

/// All built-in tools that these options allow for.
pub fn built_in_tools(options: BuiltInOptions) -> Result<Vec<Arc<dyn Tool>>, FetchError> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(Calculator),
        Arc::new(Think),
        Arc::new(CurrentTime::new(options.clock)),
        Arc::new(FileRead::new(options.file_read)),
        Arc::new(WebFetch::new(options.web_fetch)?),
    ];
    if let Some(sandbox) = options.sandbox {
        tools.push(Arc::new(CodeInterpreter::new(sandbox)));
    }
    if let Some(llm) = options.llm {
        tools.push(Arc::new(Llm::new(llm)));
    }
    Ok(tools)
}
