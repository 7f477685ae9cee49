//! The tools of memory and channels. They reach these through the contracts of `core`.

mod channel;
mod memory;

pub use channel::{ChannelList, ChannelSend, ChannelStatusTool, channel_tools};
pub use memory::{MemoryIndex, MemoryNote, MemorySearch, memory_tools};
