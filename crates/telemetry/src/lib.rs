//! Records every question to an engine once, and reports on what was recorded: figures, savings, energy, metrics, traces.
//!
//! | file | what |
//! |---|---|
//! | `inference` | one question to one engine, as it is recorded |
//! | `recorded_engine` | an engine whose every question is recorded, however it ends |
//! | `recorder` | where a question is recorded: database, metrics, traces, energy |
//! | `service` | opens the record, reports on it, and works without it while it cannot be opened |
//! | `writer` | takes records without blocking and writes them from its own thread |
//! | `store` | the tables |
//! | `entry`, `packed`, `latency_histogram` | a record within bounds, as it stands in a page, and counts of durations. Pure |
//! | `savings` | what local answers would have cost in the cloud. Pure |
//! | `metrics` | running totals for Prometheus |
//! | `energy` | the meters of the machine, shared among questions |
//! | `trace` | spans for OpenTelemetry |
//!
//! Knows nothing of `config.toml`, of particular engines or agents, of serving HTTP or of the terminal. It takes
//! [`TelemetryOptions`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod energy;
mod entry;
pub mod inference;
mod latency_histogram;
pub mod metrics;
mod packed;
#[cfg(test)]
mod processes_tests;
mod recorded_engine;
mod recorder;
pub mod savings;
mod service;
pub mod store;
pub mod trace;
mod writer;

pub use energy::Meters;
pub use inference::{Ending, Energy, Inference, InferenceLog, Unrecorded};
pub use recorded_engine::{Metered, Origin};
pub use recorder::Accounts;
pub use savings::{Dollars, Price, Prices, Savings, savings};
pub use service::{Record, TelemetryOptions};
pub use store::{MIGRATIONS, Telemetry, has_answered};
pub use trace::{Spans, Traces};
pub use writer::TelemetryWriter;
