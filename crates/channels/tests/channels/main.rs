//! The channels, and the tools of messaging.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

mod email;
mod gateway;
#[cfg(unix)]
mod replica;
mod rules;
#[cfg(unix)]
mod telegram_replicas;
mod tools;
mod wait;
mod whatsapp;
