//! WhatsApp, over a subprocess that a test scripts; and the real one, without a network.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

mod real;
mod scripted;
mod support;
