//! The tools of messaging: `channel_send`, `channel_list` and `channel_status`.

mod list;
mod send;
mod status;

use std::sync::Arc;

use hob_core::Tool;

use crate::service::ChannelService;

pub use list::ChannelList;
pub use send::ChannelSend;
pub use status::ChannelStatusTool;

/// The tools of messaging.
pub fn channel_tools(channels: &Arc<ChannelService>) -> [Arc<dyn Tool>; 3] {
    [
        Arc::new(ChannelSend::new(Arc::clone(channels))),
        Arc::new(ChannelList::new(Arc::clone(channels))),
        Arc::new(ChannelStatusTool::new(Arc::clone(channels))),
    ]
}
