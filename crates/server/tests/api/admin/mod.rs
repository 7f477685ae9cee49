//! Routes of Hob's own API, one file each.

mod audit;
mod calls;
pub mod channel_details;
mod channels;
mod collections;
pub mod documents;
pub mod embedded_engine;
mod events;
mod feedback;
mod health;
mod identity;
mod keys;
mod memory;
mod metrics;
pub mod model_files;
pub mod openapi;
mod openapi_bodies;
pub mod savings;
pub mod settings;
pub mod tasks;
pub mod usage;
