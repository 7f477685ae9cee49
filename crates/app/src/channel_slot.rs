//! The place of the channels in a running app, in which they can be replaced without a restart. Knows nothing of how they are opened.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hob_channels::ChannelService;
use tokio::sync::watch;

/// The channels, if there are any. Clones are the same place.
#[derive(Clone, Default)]
pub struct ChannelSlot {
    channels: Arc<ArcSwapOption<ChannelService>>,
    changed: Arc<watch::Sender<()>>,
}

impl ChannelSlot {
    pub fn holding(channels: Option<Arc<ChannelService>>) -> Self {
        ChannelSlot { channels: Arc::new(ArcSwapOption::new(channels)), changed: Arc::default() }
    }

    pub fn get(&self) -> Option<Arc<ChannelService>> {
        self.channels.load_full()
    }

    pub(crate) fn set(&self, channels: Option<Arc<ChannelService>>) {
        self.channels.store(channels);
        self.changed.send_replace(());
    }

    /// Says when the channels are replaced.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
