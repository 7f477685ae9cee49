//! Messages from and to people: the gateway with its channels, WhatsApp, the rules for answering, and the agents' tools.
//!
//! [`ChannelService`] is what the rest of the program uses. A message that comes in is entered into the [`store`], queued by
//! conversation, and answered through the contract `Ask` on behalf of its sender.
//!
//! Knows no configuration file, no HTTP server, and nothing of how a question is answered.

mod channel_base;
mod channel_set;
mod gateway;
mod inbound;
mod inbox;
mod outgoing;
mod rate_limiter;
mod seen_messages;
mod service;
mod status;
mod status_transitions;
pub mod store;
mod stored_messages;
pub mod tools;
mod types;
pub mod whatsapp;

pub use gateway::client::{GatewayClient, GatewayOptions};
pub use gateway::shared::GatewayTimeouts;
pub use inbound::InboundRules;
pub use inbox::{HandlerResult, InboxLimits, MessageHandler};
pub use seen_messages::{EntryId, RecentMessages, SeenMessages, identity};
pub use service::{ChannelOptions, ChannelService};
pub use store::{ChannelStore, MIGRATIONS, SqliteChannelStore};
pub use tools::channel_tools;
pub use types::{ChannelError, ChannelMessage, ChannelReport, ChannelStatus};
pub use whatsapp::{Whatsapp, WhatsappOptions};
