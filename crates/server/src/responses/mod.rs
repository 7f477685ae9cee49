//! OpenAI's Responses API: responses whole, streamed and in the background, the stored ones, and conversations. Translates between
//! its wire format and the types of `hob_core`; knows nothing of engines or agents, and keeps what it stores in
//! `hob_conversations`.

mod attempt;
mod background;
mod background_runs;
mod context;
mod conversation_lock;
pub(crate) mod conversations;
pub(crate) mod create;
mod custom_tools;
mod echo;
mod encrypted_reasoning;
mod event_log;
mod events;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod input;
pub(crate) mod input_tokens;
mod item_ids;
mod item_pages;
mod metadata;
mod namespaces;
mod numbered_events;
mod object;
mod open_item;
mod output;
mod ready_request;
mod request;
pub(crate) mod stored;
mod stored_body;
mod text_format;
mod tools;
mod transcript;
mod truncation;

pub(crate) use background_runs::BackgroundRuns;
pub(crate) use conversation_lock::ConversationLocks;
