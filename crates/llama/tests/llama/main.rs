//! The embedded engine with a real model. `./dev test` fetches it and says where it is.
#![expect(clippy::expect_used, reason = "a test that cannot set itself up should fail loudly")]
#![cfg(unix)]

mod chat_formats;
mod embedding;
mod engine;
mod fill_in_middle;
mod giving_up;
mod hostile;
mod media;
mod several_models;
mod support;
