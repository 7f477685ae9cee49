//! The messages that were taken in and not answered yet, and what was said in each conversation. Everything is bounded, because
//! anyone can write.

mod sqlite;

pub use sqlite::{Conversations, Exchange, Line, MIGRATIONS, Speaker, Thread, Unsettled};

#[cfg(test)]
mod tests;
