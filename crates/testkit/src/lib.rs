//! What tests of several crates share. Knows only the wire: no crate of the house but `core` may be needed here.

#![expect(clippy::expect_used, reason = "a test that cannot set itself up should fail loudly")]

mod fake_server;
mod gateway;
mod llama_server;
pub mod repository;
mod scripted_engine;
mod transcript;

pub use fake_server::{FakeServer, Hold, Recorded, Reply};
pub use gateway::{Gateway, GatewayScript};
pub use llama_server::{LlamaServer, part};
pub use scripted_engine::ScriptedEngine;
pub use transcript::Transcript;
