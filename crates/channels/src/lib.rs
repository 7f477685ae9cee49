//! Messaging: the gateway with its channels, Telegram, WhatsApp, e-mail, the rules for answering, and the agent tools.
//!
//! [`ChannelService`] is what the rest of the program uses. A received message is saved in the [`store`], queued by conversation,
//! and answered through the contract `Ask` on behalf of its sender.
//!
//! Knows no configuration file, no HTTP server, and nothing of how a question is answered.

mod attachments;
mod auto_reply;
mod blocking;
mod channel;
mod email;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod listener;
mod live_reply;
mod message_queue;
mod outgoing;
mod pairing;
mod rate_limiter;
mod received_file;
mod seen_messages;
mod service;
mod sharing;
mod status;
mod status_transitions;
pub mod store;
mod stored_messages;
mod target_check;
pub mod telegram;
mod tools;
mod types;
pub mod whatsapp;

pub use auto_reply::ReplyRules;
pub use channel::Channel;
pub use email::{CHANNEL as EMAIL_CHANNEL, EmailOptions, is_ours as is_email_target, rules_with_email};
pub use gateway::client::GatewayOptions;
pub use gateway::shared::GatewayTimeouts;
pub use live_reply::{LiveReply, NoLiveReply};
pub use message_queue::{HandlerResult, MessageHandler, MessageQueueLimits};
pub use pairing::{new_code, normalized_code, shown_code};
pub use received_file::{ChannelFile, MAX_FILE_BYTES, MAX_FILES};
pub use seen_messages::{EntryId, RecentMessages, SeenMessages, Settled, TakeOutcome, identity};
pub use service::{ChannelOptions, ChannelService};
pub use sharing::{ChannelSharing, SharingTimes};
pub use store::{
    ApprovedSender, COPY_TABLES, ChannelStore, MAX_RECENT, MIGRATIONS, OpenedChannelStore,
    POSTGRES_MIGRATIONS, PairingStore, PendingSender, PostgresChannelStore, RecentLine, SenderKey,
    SharedChannelStore, Speaker, SqliteChannelStore, open_channel_store,
};
pub use telegram::TelegramOptions;
pub use tools::channel_tools;
pub use types::{ChannelError, ChannelMessage, ChannelReport, ChannelStatus};
pub use whatsapp::WhatsappOptions;
