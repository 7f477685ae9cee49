//! The sources over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

mod radicale;
mod tools;
