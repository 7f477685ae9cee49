//! Anthropic's API: messages, the count of their tokens, and models. Translates between its wire format and the types of
//! `hob_core`; knows nothing of engines or agents.

mod blocks;
mod conversation;
pub(crate) mod count_tokens;
mod events;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod message_body;
pub(crate) mod messages;
pub(crate) mod models;
mod request;
mod thinking;
mod tools;
