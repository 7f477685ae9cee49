//! Routes of Hob's own API, one file each.

mod audit;
mod channels;
mod collections;
mod events;
mod feedback;
mod health;
mod identity;
mod keys;
mod memory;
mod metrics;
pub mod openapi;
mod openapi_bodies;
pub mod savings;
mod tasks;
pub mod usage;
