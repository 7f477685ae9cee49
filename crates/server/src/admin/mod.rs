//! Routes of Hob's own API: channels, events, feedback, health, memory, metrics, savings, tasks, and the description of all routes.
//! One file for each resource. Knows nothing of OpenAI's formats.

pub(crate) mod audit;
pub(crate) mod channels;
pub(crate) mod events;
pub(crate) mod feedback;
pub(crate) mod health;
mod key_request;
pub(crate) mod keys;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod openapi;
mod prometheus_text;
pub(crate) mod savings;
pub(crate) mod tasks;
pub(crate) mod usage;
