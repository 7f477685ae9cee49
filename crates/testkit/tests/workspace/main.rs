//! Checks of the workspace: its crates, its names, and what is written about it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a file that cannot be read is a failed test")]

mod arrows;
mod book;
mod circles;
mod clients;
mod dependencies;
mod fuzz;
mod log_messages;
mod map;
mod modules;
mod names;
mod reliability;
mod threat_model;
