//! OpenAI's Responses API: responses whole, streamed and in the background, the stored ones, and conversations. Translates between
//! its wire format and the types of `hob_core`; knows nothing of engines or agents, and keeps what it stores in
//! `hob_conversations`.

mod attempt;
mod background;
mod background_runs;
mod context;
pub(crate) mod conversations;
pub(crate) mod create;
mod custom_tools;
mod echo;
mod events;
mod input;
mod item_ids;
mod item_pages;
mod metadata;
mod object;
mod output;
mod request;
pub(crate) mod stored;
mod stored_body;
mod text_format;
mod tools;
mod transcript;
mod truncation;

pub(crate) use background_runs::BackgroundRuns;

use hob_conversations::ResponseOwner;
use hob_core::CallerRole;

/// The caller that a stored response belongs to.
fn owner_of(role: CallerRole) -> ResponseOwner {
    match role {
        CallerRole::Owner => ResponseOwner::owner(),
        CallerRole::Stranger | CallerRole::ChannelSender => ResponseOwner::stranger(),
    }
}
