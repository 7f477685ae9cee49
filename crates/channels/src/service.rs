//! What the rest of the program uses: sends, lists, reports, and answers the messages that come in. Knows no configuration file, and
//! nothing of how a question is answered.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_core::{Ask, EventBus};
use parking_lot::Mutex;

use crate::channel_set::ChannelSet;
use crate::gateway::client::{GatewayClient, GatewayOptions};
use crate::inbound::{InboundHandler, InboundRules};
use crate::inbox::MessageHandler;
use crate::seen_messages::{RecentMessages, SeenMessages};
use crate::store::ChannelStore;
use crate::stored_messages::StoredMessages;
use crate::types::{ChannelError, ChannelReport};
use crate::whatsapp::{Whatsapp, WhatsappOptions};

/// The options of a [`ChannelService`].
#[derive(Default)]
pub struct ChannelOptions {
    /// `None` where no gateway is used.
    pub gateway: Option<GatewayOptions>,
    /// `None` where WhatsApp is not used.
    pub whatsapp: Option<WhatsappOptions>,
    /// The rules for answering messages; `None` where messages are not answered.
    pub inbound: Option<InboundRules>,
    /// `None` where nothing can be saved.
    pub store: Option<Arc<dyn ChannelStore>>,
    /// The file that is locked by the one process that answers messages; `None` where there is only one.
    pub lock: Option<PathBuf>,
    /// Gets the events of the channels.
    pub events: EventBus,
}

/// The channels.
pub struct ChannelService {
    channels: ChannelSet,
    inbound: Option<InboundRules>,
    store: Option<Arc<dyn ChannelStore>>,
    lock_path: Option<PathBuf>,
    /// Held while this process is the one that answers.
    lock: Mutex<Option<File>>,
}

impl ChannelService {
    /// Makes the channels, and connects none yet.
    pub fn new(options: ChannelOptions) -> Result<Self, ChannelError> {
        let ChannelOptions { gateway, whatsapp, inbound, store, lock, events } = options;
        let seen_messages: Arc<dyn SeenMessages> = match store.clone() {
            Some(store) => Arc::new(StoredMessages::new(store)),
            None => Arc::new(RecentMessages::default()),
        };
        let gateway = gateway.map(|options| {
            let (events, seen_messages) = (events.clone(), Arc::clone(&seen_messages));
            GatewayClient::new(GatewayOptions { events, seen_messages, ..options })
        });
        let whatsapp = whatsapp.map(|options| {
            let (events, seen_messages) = (events.clone(), Arc::clone(&seen_messages));
            Whatsapp::new(WhatsappOptions { events, seen_messages, ..options })
        });
        Ok(ChannelService {
            channels: ChannelSet { gateway: gateway.transpose()?, whatsapp },
            inbound,
            store,
            lock_path: lock,
            lock: Mutex::default(),
        })
    }

    /// Sends a message. Success means that the channel took it. Dropping the future gives up.
    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        self.channels.send(channel, content, conversation_id).await
    }

    /// The names that [`Self::send`] can reach.
    pub async fn list(&self) -> Result<Vec<String>, ChannelError> {
        self.channels.list().await
    }

    /// The status of the channel with the worst one: `connected` means all of them.
    pub fn report(&self) -> ChannelReport {
        self.channels.report()
    }

    /// Connects, and answers what comes in. Where another process does that already, this one only sends.
    pub fn listen(&self, ask: &Arc<dyn Ask>) {
        match self.lock_path.as_deref().map_or(Claim::Ours(None), claim) {
            Claim::Taken => {
                tracing::warn!("another Hob answers messages already; this one only sends");
                return;
            }
            Claim::Ours(lock) => *self.lock.lock() = lock,
        }
        if let Some(rules) = &self.inbound {
            let inbound = InboundHandler::new(ask, rules.clone(), self.store.clone());
            self.channels.on_message(&(Arc::new(inbound) as Arc<dyn MessageHandler>));
        }
        self.channels.start();
    }

    /// Disconnects. What was taken in and not answered is answered next time.
    pub async fn close(&self) {
        self.channels.close().await;
        *self.lock.lock() = None;
    }
}

/// Whether this process may answer.
enum Claim {
    Ours(Option<File>),
    Taken,
}

/// Claims the right to answer. Where the lock cannot be used, this process answers.
fn claim(path: &Path) -> Claim {
    let lock = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(path));
    match lock.map(|lock| (lock.try_lock(), lock)) {
        Ok((Err(fs::TryLockError::WouldBlock), _)) => Claim::Taken,
        Ok((_, lock)) => Claim::Ours(Some(lock)),
        Err(error) => {
            tracing::debug!(%error, "cannot see whether another Hob answers messages");
            Claim::Ours(None)
        }
    }
}
