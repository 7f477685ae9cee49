//! The channel e-mail: new messages of an IMAP folder in, answers over SMTP out.

mod answer_limit;
mod authentication;
mod incoming;
mod listener;
mod sender;
mod sender_trust;
mod thread;

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Backoff, EventBus};
use hob_mail::MailAccount;
use parking_lot::Mutex;

use crate::channel::{Channel, ChannelParts};
use crate::message_queue::{MessageQueueLimits, MessageQueueParts};
use crate::outgoing::MessageSender;
use crate::seen_messages::{RecentMessages, SeenMessages};
use crate::sharing::ChannelSharing;
use crate::status::StatusCell;
use crate::store::ChannelStore;
use answer_limit::AnswersPerHour;
use incoming::SenderRules;
use listener::EmailListener;
use sender::EmailSender;

pub use sender_trust::rules_with_email;
pub use thread::{CHANNEL, is_ours};

/// Some routers forget a connection on which nothing is said for ten minutes.
const IDLE_FOR: Duration = Duration::from_secs(9 * 60);

/// The options of [`Channel::email`].
#[derive(Clone)]
pub struct EmailOptions {
    pub imap: MailAccount,
    pub smtp: MailAccount,
    pub folder: String,
    /// The own address.
    pub address: String,
    /// The name before the own address.
    pub name: String,
    /// Addresses and `@domains` whose messages are answered; empty for all.
    pub senders: Vec<String>,
    /// The server whose `Authentication-Results` are believed; `None` does not check senders.
    pub authentication_server: Option<String>,
    /// The most answers to one address in an hour, so that Hob and a program that answers every message do not write to each other
    /// without end; `None` for no limit.
    pub answers_per_hour: Option<usize>,
    pub poll_interval: Duration,
    /// How long one wait for new messages lasts.
    pub idle_for: Duration,
    pub backoff: Backoff,
    pub limits: MessageQueueLimits,
    pub events: EventBus,
    pub seen_messages: Arc<dyn SeenMessages>,
    /// Remembers how far the folder was read; `None` if nothing can be saved.
    pub store: Option<Arc<dyn ChannelStore>>,
    /// `None` if no other process reads this folder.
    pub sharing: Option<ChannelSharing>,
}

impl EmailOptions {
    pub fn new(imap: MailAccount, smtp: MailAccount, address: &str) -> Self {
        EmailOptions {
            imap,
            smtp,
            folder: "INBOX".to_owned(),
            address: address.to_owned(),
            name: "Hob".to_owned(),
            senders: Vec::new(),
            authentication_server: None,
            answers_per_hour: None,
            poll_interval: Duration::from_secs(60),
            idle_for: IDLE_FOR,
            backoff: Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(300) },
            limits: MessageQueueLimits::default(),
            events: EventBus::new(),
            seen_messages: Arc::new(RecentMessages::default()),
            store: None,
            sharing: None,
        }
    }
}

impl Channel {
    /// E-mail.
    pub fn email(options: EmailOptions) -> Self {
        let status = StatusCell::default();
        let sender =
            EmailSender { account: options.smtp, from: options.address.clone(), from_name: options.name };
        let queue = MessageQueueParts {
            sender: Arc::new(sender) as Arc<dyn MessageSender>,
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
        let rules = SenderRules {
            own_address: options.address.to_ascii_lowercase(),
            senders: options.senders.iter().map(|entry| entry.trim().to_ascii_lowercase()).collect(),
            authentication_server: options.authentication_server,
        };
        Channel::new(parts, |queue| EmailListener {
            account: options.imap,
            folder: options.folder,
            rules,
            answer_limit: options.answers_per_hour.map(AnswersPerHour::new),
            store: options.store,
            unsaved: Mutex::default(),
            idle_for: options.idle_for,
            poll_interval: options.poll_interval,
            backoff: options.backoff,
            failed: Mutex::default(),
            queue,
            status,
        })
    }
}
