//! Defaults that a setting and the options of a crate share.

use std::time::Duration;

/// The most tokens of one chunk of a document.
pub const CHUNK_SIZE: usize = 512;

/// Tokens that two neighbouring chunks share.
pub const CHUNK_OVERLAP: usize = 64;

/// The least share of a question's words that makes a passage relevant.
pub const MIN_WORD_SHARE: f64 = 0.1;

/// The least cosine similarity that makes a passage relevant.
pub const MIN_SIMILARITY: f64 = 0.3;

/// Connections of one process to PostgreSQL, without the one that listens for changes.
pub const DATABASE_CONNECTIONS: usize = 10;

/// How long connecting to one host of the database may take, and how long a caller waits for a free connection.
pub const DATABASE_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long one statement may take.
pub const DATABASE_STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest time between two checks for due tasks.
pub const TASK_POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Tasks that run at once.
pub const CONCURRENT_TASKS: usize = 4;

/// The container image in which code of a model runs.
pub const SANDBOX_IMAGE: &str = "python:3.13-slim";

/// How long code of a model may run.
pub const SANDBOX_TIMEOUT: Duration = Duration::from_secs(300);

/// Programs of models that run at once.
pub const CONCURRENT_SANDBOXES: usize = 5;

/// The average pause between two attempts to connect to the gateway.
pub const GATEWAY_RECONNECT_INTERVAL: Duration = Duration::from_secs(5);
