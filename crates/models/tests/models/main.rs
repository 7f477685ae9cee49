//! Model files: reading, keeping, fetching. Over real files, real sockets and real processes.

#![allow(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")]
#![cfg(test)]

mod convert;
mod directory;
mod files;
mod gguf;
mod hub;
mod killed;
mod local;
mod pinned;
mod pip;
mod projector;
mod pull;
mod search;
