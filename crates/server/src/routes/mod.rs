//! One file per resource.

pub(crate) mod channels;
pub(crate) mod chat;
pub(crate) mod chat_page;
pub(crate) mod dashboard;
pub(crate) mod embeddings;
pub(crate) mod events;
pub(crate) mod feedback;
pub(crate) mod health;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod models;
pub(crate) mod openapi;
pub(crate) mod savings;
pub(crate) mod tasks;
