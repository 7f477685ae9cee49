//! The place of the channels in a running app. It can be empty, and filled later without a restart. Knows nothing of how they are opened.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hob_channels::ChannelService;

/// The channels, if there are any. Clones are the same place.
#[derive(Clone, Default)]
pub struct ChannelSlot(Arc<ArcSwapOption<ChannelService>>);

impl ChannelSlot {
    pub fn holding(channels: Option<Arc<ChannelService>>) -> Self {
        ChannelSlot(Arc::new(ArcSwapOption::new(channels)))
    }

    pub fn get(&self) -> Option<Arc<ChannelService>> {
        self.0.load_full()
    }

    pub(crate) fn fill(&self, channels: Arc<ChannelService>) {
        self.0.store(Some(channels));
    }
}
