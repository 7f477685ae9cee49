//! Conversations that are saved, so that they can be continued later.
//!
//! Knows nothing of who asks, of who answers, and of where a conversation is shown.

pub mod store;

pub use store::MIGRATIONS;
