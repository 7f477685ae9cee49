//! Messaging: the gateway's WebSocket, its HTTP fallback, and the WhatsApp subprocess.
//!
//! Knows nothing of agents, of the database or of `config.toml`; what to answer is decided by its handlers, and what was seen
//! is remembered by its ledger.

mod bridge;
mod gateway;
mod inbox;
mod ledger;
mod line;
mod standing;
mod state;
mod station;
mod switchboard;
pub mod whatsapp;

pub use bridge::{Bridge, BridgeOptions, Timing};
pub use inbox::{Handled, Handler, InboxLimits};
pub use ledger::{Entry, Ledger, Recent, identity};
pub use switchboard::Switchboard;
pub use whatsapp::{Whatsapp, WhatsappOptions};
