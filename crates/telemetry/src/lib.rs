//! Records every call to an engine once, and reports on the records: figures, savings, energy, metrics, traces.
//!
//! | file | what |
//! |---|---|
//! | `inference` | one call to one engine |
//! | `recorded_engine` | wraps an engine, and records every call |
//! | `charged_engine` | charges what a run causes beside its own engine to the key of the run |
//! | `inference_in_progress` | a call while it runs: counts, settles, records |
//! | `recorder` | where calls are recorded: database, metrics, traces, energy |
//! | `service` | opens the database, and reports on the records |
//! | `writer` | takes records without blocking and writes them from its own thread |
//! | `store` | the tables |
//! | `entry`, `packed` | a record as stored, and its form in a page. Pure |
//! | `call_page` | which calls a table shows, and where its next page begins. Pure |
//! | `call_record`, `figures`, `timings`, `latency_histogram` | the parts of reports. Pure |
//! | `key_usage` | what each key has used, and why its calls failed. Pure |
//! | `export` | all calls as a stream |
//! | `retention` | deletes old records |
//! | `savings` | what local answers would have cost in the cloud. Pure |
//! | `metrics` | running totals for Prometheus |
//! | `energy` | the energy meters of the machine |
//! | `trace` | spans for OpenTelemetry |
//!
//! Knows nothing of `config.toml`, particular engines or agents, HTTP serving or the terminal. It takes [`TelemetryOptions`].

mod call_page;
mod call_record;
mod charged_engine;
pub mod energy;
mod entry;
mod export;
mod figures;
#[cfg(fuzzing)]
pub mod fuzzing;
mod inference;
mod inference_in_progress;
mod key_usage;
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

pub use call_page::{CallCursor, CallPage, CallQuery, MAX_CALL_PAGE};
pub use call_record::{CallOutcome, CallRecord};
pub use charged_engine::{ChargedEngine, charging};
pub use energy::EnergyMeters;
pub use export::CallExport;
pub use figures::{
    AgentFigures, CallFigures, CallOverview, DayFigures, EngineFigures, KeyFigures, ModelFigures,
};
pub use inference::{CallDetails, Energy, Inference, InferenceEnd, InferenceLog, NoInferenceLog};
pub use inference_in_progress::RecordContext;
pub use key_usage::{FrequentFailure, KeyUsage};
pub use recorded_engine::RecordedEngine;
pub use recorder::Recorder;
pub use savings::{Dollars, Price, Prices, Savings, savings};
pub use service::{TelemetryOptions, TelemetryService};
pub use store::{
    COPY_TABLES, MIGRATIONS, POSTGRES_MIGRATIONS, PostgresTelemetryStore, SqliteTelemetryStore,
    TelemetryStore, find_telemetry_store, has_answered,
};
pub use timings::{CallTimings, LatencySummary, ModelSpeed};
pub use trace::{TraceExporter, Tracer};
pub use writer::{TelemetryWriter, WriterOptions};
