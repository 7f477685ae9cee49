//! The tools of channels and tasks. They reach these through the contracts of `core`.

mod channel;
mod schedule;

pub use channel::{ChannelList, ChannelSend, ChannelStatusTool, channel_tools};
pub use schedule::{ChangeTask, ListTasks, ScheduleTask, schedule_tools};
