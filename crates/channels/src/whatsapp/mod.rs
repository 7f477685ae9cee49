//! WhatsApp, through a subprocess that is supervised and restarted.

mod event;
mod install;
mod jid;
mod login;
mod mention;
mod process;
mod sender;
mod supervisor;

use std::sync::Arc;
use std::time::Duration;

use hob_core::EventBus;

use crate::channel_base::ChannelBase;
use crate::inbox::{InboxLimits, InboxParts, MessageHandler};
use crate::outgoing::MessageSender;
use crate::seen_messages::{RecentMessages, SeenMessages};
use crate::status::StatusCell;
use crate::types::{ChannelError, ChannelReport, ChannelStatus};
use mention::MentionRule;
use sender::WhatsappSender;
use supervisor::WhatsappSupervisor;

pub use install::{InstallError, WhatsappInstaller};
pub use login::{LoginError, LoginStep, login};
pub use process::{WhatsappProgram, WhatsappStartError};

/// The channel's name.
pub const CHANNEL: &str = "whatsapp";

/// Whether a name given to `send` is ours.
pub fn is_ours(channel: &str) -> bool {
    channel == CHANNEL || jid::is_jid(channel)
}

/// The options of [`Whatsapp`].
#[derive(Clone)]
pub struct WhatsappOptions {
    pub program: WhatsappProgram,
    pub assistant_name: String,
    pub assistant_has_own_number: bool,
    /// The first wait before a dead subprocess is started again; the next ones double.
    pub restart_delay: Duration,
    /// The longest wait for WhatsApp to take a message.
    pub confirm_within: Duration,
    pub limits: InboxLimits,
    pub events: EventBus,
    pub seen_messages: Arc<dyn SeenMessages>,
}

impl WhatsappOptions {
    pub fn new(program: WhatsappProgram) -> Self {
        WhatsappOptions {
            program,
            assistant_name: "Hob".to_owned(),
            assistant_has_own_number: false,
            restart_delay: Duration::from_secs(1),
            confirm_within: Duration::from_secs(30),
            limits: InboxLimits::default(),
            events: EventBus::new(),
            seen_messages: Arc::new(RecentMessages::default()),
        }
    }
}

/// The channel. Its subprocess stops when this is dropped; [`Self::close`] also waits for that.
pub struct Whatsapp {
    base: ChannelBase,
    supervisor: Arc<WhatsappSupervisor>,
}

impl Whatsapp {
    pub fn new(options: WhatsappOptions) -> Self {
        let status = StatusCell::default();
        let mention_rule =
            MentionRule { name: options.assistant_name, has_own_number: options.assistant_has_own_number };
        let sender =
            Arc::new(WhatsappSender::new(mention_rule.clone(), status.clone(), options.confirm_within));
        let parts = InboxParts {
            sender: Arc::clone(&sender) as Arc<dyn MessageSender>,
            seen_messages: options.seen_messages,
            events: options.events,
            limits: options.limits,
        };
        let base = ChannelBase::new(parts, status.clone());
        let supervisor = WhatsappSupervisor {
            program: options.program,
            restart_delay: options.restart_delay,
            mention_rule,
            status,
            sender,
            inbox: base.inbox().clone(),
        };
        Whatsapp { base, supervisor: Arc::new(supervisor) }
    }

    /// Gets every message that is meant for the assistant. All handlers are called for every message.
    pub fn on_message(&self, handler: Arc<dyn MessageHandler>) {
        self.base.on_message(handler);
    }

    /// Starts the subprocess, without waiting for it to be connected. Does nothing when it runs already.
    pub fn start(&self) {
        self.base.start(|stop| Arc::clone(&self.supervisor).supervise(stop));
    }

    /// Starts the subprocess, and waits until it says that it is connected, or not.
    pub async fn connect(&self) -> ChannelStatus {
        self.start();
        self.base.settled().await
    }

    /// Stops the subprocess.
    pub async fn disconnect(&self) {
        self.base.disconnect().await;
    }

    /// Stops everything. Messages that were not answered stay in the store.
    pub async fn close(&self) {
        self.base.close().await;
    }

    /// Sends a message. `channel` is an address, or `whatsapp` with the address as the conversation.
    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        self.base.send(channel, content, conversation_id).await
    }

    pub fn status(&self) -> ChannelStatus {
        self.base.status()
    }

    pub fn report(&self) -> ChannelReport {
        self.base.report("")
    }
}
