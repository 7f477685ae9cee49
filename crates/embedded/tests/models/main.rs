//! Model files: reading, keeping, fetching. Over real files, real sockets and real processes.

#![cfg(test)]

mod convert;
mod files;
mod gguf;
mod hub;
mod killed;
mod local;
mod pinned;
mod pull;
mod store;
mod wheel;
