//! The tools of memory, channels and tasks. They reach these through the contracts of `core`.

mod channel;
mod memory;
mod schedule;

pub use channel::{ChannelList, ChannelSend, ChannelStatusTool, channel_tools};
pub use memory::{MemoryIndex, MemoryNote, MemorySearch, memory_tools};
pub use schedule::{ChangeTask, ListTasks, ScheduleTask, schedule_tools};
