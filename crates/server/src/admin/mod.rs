//! Routes of Hob's own API: agents, calls, channels, documents, the embedded engine, events, feedback, folders, health, memory, metrics,
//! model files, savings, settings, tasks, and the description of all routes. One file or folder for each resource. Knows nothing of OpenAI's
//! formats.

pub(crate) mod agents;
pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod channels;
pub(crate) mod embedded_engine;
pub(crate) mod events;
pub(crate) mod feedback;
pub(crate) mod health;
pub(crate) mod key_request;
pub(crate) mod keys;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod model_files;
pub(crate) mod openapi;
mod prometheus_text;
pub(crate) mod savings;
pub(crate) mod settings;
pub(crate) mod tasks;
pub(crate) mod usage;
