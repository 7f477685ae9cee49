//! One file per resource.

pub(crate) mod chat;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod models;
pub(crate) mod openapi;
