//! The tools that come with the house. Each implements `hob_core::Tool` and knows nothing of agents, of the tool box or of
//! each other.

pub mod calculator;
mod channel;
mod code_interpreter;
mod current_time;
pub mod file_read;
mod llm;
mod memory;
mod schedule;
mod think;
pub mod web_fetch;

use std::sync::Arc;

use hob_core::{AllowedRoots, Channels, Clock, Memory, Schedule, SystemClock, Tool};

use crate::sandbox::Sandbox;
pub use calculator::Calculator;
pub use channel::{ChannelList, ChannelSend, ChannelStatusTool};
pub use code_interpreter::CodeInterpreter;
pub use current_time::CurrentTime;
pub use file_read::FileRead;
pub use llm::{Llm, LlmOptions, ModelSource};
pub use memory::{MemoryIndex, MemoryNote, MemorySearch};
pub use schedule::{ChangeTask, ListTasks, ScheduleTask, schedule_tools};
pub use think::Think;
pub use web_fetch::{WebFetch, WebFetchOptions};

/// What the built-in tools need.
pub struct BuiltInOptions {
    pub clock: Arc<dyn Clock>,
    pub file_read: AllowedRoots,
    pub web_fetch: WebFetchOptions,
    /// Without one there is no `code_interpreter`.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Without one there is no `llm`.
    pub llm: Option<LlmOptions>,
    /// Without one there are no tools of the memory.
    pub memory: Option<Arc<dyn Memory>>,
    /// Without any there are no tools of messaging.
    pub channels: Option<Arc<dyn Channels>>,
    /// Without one there are no tools of the scheduler.
    pub schedule: Option<Arc<dyn Schedule>>,
}

impl Default for BuiltInOptions {
    /// The system's clock, no files, the public web, no sandbox, no model, no memory and no tasks.
    fn default() -> Self {
        BuiltInOptions {
            clock: Arc::new(SystemClock),
            file_read: AllowedRoots::default(),
            web_fetch: WebFetchOptions::default(),
            sandbox: None,
            llm: None,
            memory: None,
            channels: None,
            schedule: None,
        }
    }
}

/// All built-in tools that these options allow for.
pub fn built_in_tools(options: BuiltInOptions) -> Vec<Arc<dyn Tool>> {
    let files = options.file_read.clone();
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(Calculator),
        Arc::new(Think),
        Arc::new(CurrentTime::new(options.clock)),
        Arc::new(FileRead::new(options.file_read)),
        Arc::new(WebFetch::new(options.web_fetch)),
    ];
    if let Some(sandbox) = options.sandbox {
        tools.push(Arc::new(CodeInterpreter::new(sandbox)));
    }
    if let Some(llm) = options.llm {
        tools.push(Arc::new(Llm::new(llm)));
    }
    if let Some(channels) = options.channels {
        tools.extend(channel::channel_tools(&channels));
    }
    if let Some(memory) = options.memory {
        tools.extend(memory::memory_tools(&memory, files));
    }
    if let Some(schedule) = options.schedule {
        tools.extend(schedule_tools(&schedule));
    }
    tools
}
