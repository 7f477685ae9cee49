//! The channel WhatsApp, through a subprocess that is supervised and restarted.

mod event;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod install;
mod jid;
mod link_code;
mod linking;
mod login;
mod mention;
mod process;
mod sender;
mod supervisor;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_core::EventBus;

use crate::channel::{Channel, ChannelParts};
use crate::live_reply::LiveReply;
use crate::message_queue::{HandlerResult, MessageHandler, MessageQueueLimits, MessageQueueParts};
use crate::outgoing::MessageSender;
use crate::seen_messages::{RecentMessages, SeenMessages};
use crate::sharing::ChannelSharing;
use crate::status::StatusCell;
use crate::store::ChannelStore;
use crate::stored_messages::StoredMessages;
use crate::types::ChannelMessage;
use mention::MentionRule;
use sender::WhatsappSender;
use supervisor::WhatsappSupervisor;

pub use install::{InstallError, WhatsappInstaller};
pub use jid::{CHANNEL, is_ours};
pub use link_code::LinkCode;
pub use linking::{LinkState, WhatsappLinking};
pub use login::{LoginError, LoginStep, login};
pub use process::{WhatsappProgram, WhatsappStartError};

/// The options of [`Channel::whatsapp`].
#[derive(Clone)]
pub struct WhatsappOptions {
    pub program: WhatsappProgram,
    /// Replaces the bridge of another version of Hob before the program starts; `None` leaves the program as it is.
    pub installer: Option<WhatsappInstaller>,
    pub assistant_name: String,
    pub assistant_has_own_number: bool,
    /// The first wait before a dead subprocess is restarted. The next ones double.
    pub restart_delay: Duration,
    /// The longest wait for WhatsApp to accept a message.
    pub confirm_within: Duration,
    pub limits: MessageQueueLimits,
    pub events: EventBus,
    pub seen_messages: Arc<dyn SeenMessages>,
    /// Gets the code to scan while no account is linked.
    pub link_code: LinkCode,
    /// `None` if no other process connects to this account.
    pub sharing: Option<ChannelSharing>,
}

impl WhatsappOptions {
    pub fn new(program: WhatsappProgram) -> Self {
        WhatsappOptions {
            program,
            installer: None,
            assistant_name: "Hob".to_owned(),
            assistant_has_own_number: false,
            restart_delay: Duration::from_secs(1),
            confirm_within: Duration::from_secs(30),
            limits: MessageQueueLimits::default(),
            events: EventBus::new(),
            seen_messages: Arc::new(RecentMessages::default()),
            link_code: LinkCode::default(),
            sharing: None,
        }
    }
}

impl Channel {
    /// WhatsApp for a single command. WhatsApp sends it what came while no server ran, and sends that only once. With a store, such
    /// messages wait there for the next server; without one they are dropped.
    pub fn whatsapp_of_command(options: WhatsappOptions, store: Option<Arc<dyn ChannelStore>>) -> Self {
        let Some(store) = store else { return Channel::whatsapp(options) };
        let seen_messages = Arc::new(StoredMessages::new(store, false));
        let channel = Channel::whatsapp(WhatsappOptions { seen_messages, ..options });
        channel.on_message(Arc::new(LeftForServer));
        channel
    }

    /// WhatsApp, through a subprocess.
    pub fn whatsapp(options: WhatsappOptions) -> Self {
        let status = StatusCell::default();
        let mention_rule =
            MentionRule { name: options.assistant_name, has_own_number: options.assistant_has_own_number };
        let sender =
            Arc::new(WhatsappSender::new(mention_rule.clone(), status.clone(), options.confirm_within));
        let queue = MessageQueueParts {
            sender: Arc::clone(&sender) as Arc<dyn MessageSender>,
            seen_messages: options.seen_messages,
            events: options.events,
            limits: options.limits,
        };
        let parts = ChannelParts {
            name: CHANNEL.to_owned(),
            sharing: options.sharing,
            gateway_url: String::new(),
            queue,
            status: status.clone(),
        };
        let (program, installer) = (options.program, options.installer);
        Channel::new(parts, |queue| WhatsappSupervisor {
            program,
            installer,
            restart_delay: options.restart_delay,
            mention_rule,
            status,
            sender,
            queue,
            link_code: options.link_code,
        })
    }
}

/// Answers nothing, so that messages stay in the store.
struct LeftForServer;

#[async_trait]
impl MessageHandler for LeftForServer {
    async fn handle(&self, _message: &ChannelMessage, _live: &dyn LiveReply) -> HandlerResult {
        std::future::pending().await
    }
}
