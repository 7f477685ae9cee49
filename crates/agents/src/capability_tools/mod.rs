//! The tools of channels. They reach these through the contracts of `core`.

mod channel;

pub use channel::{ChannelList, ChannelSend, ChannelStatusTool, channel_tools};
