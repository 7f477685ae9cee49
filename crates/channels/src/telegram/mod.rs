//! The channel Telegram, through its Bot API.
//!
//! | file | what |
//! |---|---|
//! | `api` | requests and errors of the Bot API |
//! | `incoming` | updates to messages |
//! | `listener` | long polling |
//! | `sender` | complete messages |
//! | `live_reply` | answers in progress, and files |
//! | `split` | long texts in pieces |
//! | `target` | chats and topics |

mod api;
mod incoming;
mod listener;
mod live_reply;
mod outgoing_body;
mod pairing_message;
mod sender;
mod split;
mod target;

use std::sync::Arc;
use std::time::Duration;

use hob_core::EventBus;
use secrecy::SecretString;

use crate::channel::{Channel, ChannelParts};
use crate::message_queue::{MessageQueueLimits, MessageQueueParts};
use crate::outgoing::MessageSender;
use crate::seen_messages::{RecentMessages, SeenMessages};
use crate::sharing::ChannelSharing;
use crate::status::StatusCell;
use crate::types::ChannelError;
use listener::TelegramListener;
use sender::TelegramSender;

pub use api::{TelegramApi, TelegramBot, TelegramError, is_token};
pub use pairing_message::{PairingMessage, first_message_with};
pub use target::{CHANNEL, is_ours};

/// The address of the Bot API.
pub const API_URL: &str = "https://api.telegram.org";

/// The options of [`Channel::telegram`].
#[derive(Clone)]
pub struct TelegramOptions {
    pub token: SecretString,
    /// Without a trailing slash.
    pub api_url: String,
    /// Whether messages in groups that mention the bot are answered.
    pub answers_groups: bool,
    /// How long one request waits for messages.
    pub poll_wait: Duration,
    pub limits: MessageQueueLimits,
    pub events: EventBus,
    pub seen_messages: Arc<dyn SeenMessages>,
    /// `None` if no other process connects to this bot.
    pub sharing: Option<ChannelSharing>,
}

impl TelegramOptions {
    pub fn new(token: SecretString) -> Self {
        TelegramOptions {
            token,
            api_url: API_URL.to_owned(),
            answers_groups: true,
            poll_wait: Duration::from_secs(50),
            limits: MessageQueueLimits::default(),
            events: EventBus::new(),
            seen_messages: Arc::new(RecentMessages::default()),
            sharing: None,
        }
    }
}

impl Channel {
    /// Telegram, as a bot.
    pub fn telegram(options: TelegramOptions) -> Result<Self, ChannelError> {
        let api = TelegramApi::new(&options.api_url, options.token)
            .map_err(|reason| ChannelError::Invalid { reason })?;
        let (api, status) = (Arc::new(api), StatusCell::default());
        let sender = Arc::new(TelegramSender::new(Arc::clone(&api)));
        let queue = MessageQueueParts {
            sender: sender as Arc<dyn MessageSender>,
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
        let (answers_groups, poll_wait) = (options.answers_groups, options.poll_wait);
        Ok(Channel::new(parts, |queue| TelegramListener { api, answers_groups, poll_wait, status, queue }))
    }
}
