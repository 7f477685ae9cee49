//! The place of a service in a running app, in which it can be replaced without a restart. Knows nothing of how it is opened.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hob_channels::ChannelService;
use tokio::sync::watch;

/// A service, if there is one. Clones are the same place.
pub struct ServiceSlot<T> {
    service: Arc<ArcSwapOption<T>>,
    changed: Arc<watch::Sender<()>>,
}

/// The place of the channels.
pub type ChannelSlot = ServiceSlot<ChannelService>;

impl<T> ServiceSlot<T> {
    pub fn holding(service: Option<Arc<T>>) -> Self {
        ServiceSlot { service: Arc::new(ArcSwapOption::new(service)), changed: Arc::default() }
    }

    pub fn get(&self) -> Option<Arc<T>> {
        self.service.load_full()
    }

    pub(crate) fn set(&self, service: Option<Arc<T>>) {
        self.service.store(service);
        self.changed.send_replace(());
    }

    /// Says when the service is replaced.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

impl<T> Clone for ServiceSlot<T> {
    fn clone(&self) -> Self {
        ServiceSlot { service: Arc::clone(&self.service), changed: Arc::clone(&self.changed) }
    }
}

impl<T> Default for ServiceSlot<T> {
    fn default() -> Self {
        ServiceSlot::holding(None)
    }
}
