//! The built-in tools. Each implements `hob_core::Tool` and knows nothing of agents, of the tool set or of the other tools.

pub(crate) mod arguments;
pub mod calculator;
mod current_time;
pub mod file_read;
mod llm;
mod think;
pub mod web_fetch;

use std::sync::Arc;

use hob_core::Tool;

pub use calculator::Calculator;
pub use current_time::{Clock, CurrentTime};
pub use file_read::{FileRead, FileReadOptions};
pub use llm::{DefaultModelFn, Llm, LlmOptions};
pub use think::Think;
pub use web_fetch::{WebFetch, WebFetchOptions};

/// The options of the built-in tools.
pub struct BuiltInOptions {
    pub clock: Clock,
    pub file_read: FileReadOptions,
    pub web_fetch: WebFetchOptions,
}

impl Default for BuiltInOptions {
    /// The system's clock, no files and the public web.
    fn default() -> Self {
        BuiltInOptions {
            clock: Arc::new(jiff::Timestamp::now),
            file_read: FileReadOptions::default(),
            web_fetch: WebFetchOptions::default(),
        }
    }
}

/// The built-in tools that need nothing but options. [`Llm`] also needs an engine.
pub fn built_in_tools(options: BuiltInOptions) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Calculator),
        Arc::new(Think),
        Arc::new(CurrentTime::new(options.clock)),
        Arc::new(FileRead::new(options.file_read)),
        Arc::new(WebFetch::new(options.web_fetch)),
    ]
}
