//! The built-in tools. Each implements `hob_core::Tool` and knows nothing of agents, of the tool set or of the other tools.

pub mod calculator;
mod current_time;
pub mod file_read;
mod llm;
mod think;
pub mod web_fetch;

use std::sync::Arc;

use hob_core::{AllowedRoots, Clock, SystemClock, Tool};

pub use calculator::Calculator;
pub use current_time::CurrentTime;
pub use file_read::FileRead;
pub use llm::{DefaultModelFn, EngineForRun, Llm, LlmOptions, same_engine};
pub use think::Think;
pub use web_fetch::{WebFetch, WebFetchOptions};

/// The options of the built-in tools.
pub struct BuiltInOptions {
    pub clock: Arc<dyn Clock>,
    pub file_read: AllowedRoots,
    pub web_fetch: WebFetchOptions,
}

impl Default for BuiltInOptions {
    /// The system clock, no files, and the public web.
    fn default() -> Self {
        BuiltInOptions {
            clock: Arc::new(SystemClock),
            file_read: AllowedRoots::default(),
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
