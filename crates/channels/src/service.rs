//! The channels, and the answers to the messages that come in on them. Knows no configuration file and nothing of how a message
//! is answered.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hob_core::{Ask, EventBus};

use crate::channel_set::Switchboard;
use crate::gateway::client::{Bridge, BridgeOptions};
use crate::inbound::{Inbound, InboundRules};
use crate::inbox::Handler;
use crate::seen_messages::{Ledger, Recent};
use crate::store::Conversations;
use crate::stored_messages::StoredLedger;
use crate::types::{ChannelError, Channels};
use crate::whatsapp::{Whatsapp, WhatsappOptions};

/// What a [`ChannelService`] is made of.
pub struct ChannelOptions {
    /// `None` where no gateway is used.
    pub gateway: Option<BridgeOptions>,
    /// `None` where WhatsApp is not used.
    pub whatsapp: Option<WhatsappOptions>,
    pub rules: InboundRules,
    /// Whether messages are answered.
    pub reply: bool,
    /// `None` when nothing can be saved.
    pub conversations: Option<Conversations>,
    /// The file that is locked by the one process that answers messages.
    pub lock: PathBuf,
    /// Hears what happens on the channels.
    pub bus: EventBus,
}

/// The channels, and what it takes to answer on them.
pub struct ChannelService {
    switchboard: Arc<Switchboard>,
    rules: InboundRules,
    reply: bool,
    conversations: Option<Conversations>,
    lock_path: PathBuf,
    /// Held while this process is the one that answers.
    lock: Mutex<Option<File>>,
}

impl ChannelService {
    /// Makes the channels, and connects none yet.
    pub fn new(options: ChannelOptions) -> Result<Self, ChannelError> {
        let ChannelOptions { gateway, whatsapp, rules, reply, conversations, lock, bus } = options;
        let ledger: Arc<dyn Ledger> = match conversations.clone() {
            Some(conversations) => Arc::new(StoredLedger::new(conversations)),
            None => Arc::new(Recent::default()),
        };
        let gateway = gateway.map(|options| {
            Bridge::new(BridgeOptions { events: bus.clone(), ledger: Arc::clone(&ledger), ..options })
        });
        let whatsapp = whatsapp.map(|options| {
            Whatsapp::new(WhatsappOptions { events: bus.clone(), ledger: Arc::clone(&ledger), ..options })
        });
        Ok(ChannelService {
            switchboard: Arc::new(Switchboard { gateway: gateway.transpose()?, whatsapp }),
            rules,
            reply,
            conversations,
            lock_path: lock,
            lock: Mutex::default(),
        })
    }

    /// What everything else sends through.
    pub fn contract(&self) -> Arc<dyn Channels> {
        Arc::clone(&self.switchboard) as Arc<dyn Channels>
    }

    /// Connects, and answers what comes in. Where another process does that already, this one only sends.
    pub fn listen(&self, ask: &Arc<dyn Ask>) {
        match claim(&self.lock_path) {
            Claim::Taken => {
                tracing::warn!("another Hob answers messages already; this one only sends");
                return;
            }
            Claim::Ours(lock) => *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = lock,
        }
        if self.reply {
            let inbound = Inbound::new(ask, self.rules.clone(), self.conversations.clone());
            self.switchboard.on_message(&(Arc::new(inbound) as Arc<dyn Handler>));
        }
        self.switchboard.start();
    }

    /// Disconnects. What was taken in and not answered is answered next time.
    pub async fn close(&self) {
        self.switchboard.close().await;
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
