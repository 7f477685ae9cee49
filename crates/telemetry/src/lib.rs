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
//! | `entry`, `packed` | a record within bounds, and as it stands in a page. Pure |
//! | `call_record`, `figures`, `timings`, `latency_histogram` | what reports are made of. Pure |
//! | `export` | all calls as a stream |
//! | `retention` | deletes what is too old |
//! | `savings` | what local answers would have cost in the cloud. Pure |
//! | `metrics` | running totals for Prometheus |
//! | `energy` | the meters of the machine, shared among questions |
//! | `trace` | spans for OpenTelemetry |
//!
//! Knows nothing of `config.toml`, of particular engines or agents, of serving HTTP or of the terminal. It takes
//! [`TelemetryOptions`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

mod call_record;
pub mod energy;
mod entry;
mod export;
mod figures;
mod inference;
mod latency_histogram;
pub mod metrics;
mod packed;
#[cfg(test)]
mod processes_tests;
mod recorded_engine;
mod recorder;
mod retention;
pub mod savings;
mod service;
pub mod store;
mod timings;
pub mod trace;
mod writer;

pub use call_record::{CallOutcome, CallRecord};
pub use energy::EnergyMeters;
pub use export::CallExport;
pub use figures::{AgentFigures, CallFigures, CallOverview, DayFigures, EngineFigures, ModelFigures};
pub use inference::{Energy, Inference, InferenceEnd, InferenceLog, NoInferenceLog};
pub use recorded_engine::{RecordContext, RecordedEngine};
pub use recorder::Recorder;
pub use savings::{Dollars, Price, Prices, Savings, savings};
pub use service::{TelemetryOptions, TelemetryService};
pub use store::{MIGRATIONS, SqliteTelemetryStore, TelemetryStore, has_answered};
pub use timings::{CallTimings, LatencySummary, ModelSpeed};
pub use trace::{TraceExporter, Tracer};
pub use writer::{TelemetryWriter, WriterOptions};
