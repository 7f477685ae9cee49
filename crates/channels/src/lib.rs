//! Messaging: the gateway with its channels, WhatsApp, the rules for answering, and the agent tools.
//!
//! [`ChannelService`] is what the rest of the program uses. A received message is saved in the [`store`], queued by conversation,
//! and answered through the contract `Ask` on behalf of its sender.
//!
//! Knows no configuration file, no HTTP server, and nothing of how a question is answered.

mod channel;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod inbound;
mod inbox;
mod listener;
mod outgoing;
mod rate_limiter;
mod seen_messages;
mod service;
mod sharing;
mod status;
mod status_transitions;
pub mod store;
mod stored_messages;
mod tools;
mod types;
pub mod whatsapp;

pub use channel::Channel;
pub use gateway::client::GatewayOptions;
pub use gateway::shared::GatewayTimeouts;
pub use inbound::InboundRules;
pub use inbox::{HandlerResult, InboxLimits, MessageHandler};
pub use seen_messages::{EntryId, RecentMessages, SeenMessages, Settled, identity};
pub use service::{ChannelOptions, ChannelService};
pub use sharing::{ChannelSharing, SharingTimes};
pub use store::{
    COPY_TABLES, ChannelStore, MAX_RECENT, MIGRATIONS, OpenedChannelStore, POSTGRES_MIGRATIONS,
    PostgresChannelStore, RecentLine, SharedChannelStore, Speaker, SqliteChannelStore, open_channel_store,
};
pub use tools::channel_tools;
pub use types::{ChannelError, ChannelMessage, ChannelReport, ChannelStatus};
pub use whatsapp::WhatsappOptions;
