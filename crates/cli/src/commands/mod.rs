//! One file per subcommand.

mod ask;
mod audit;
mod bench;
mod channel;
mod chat;
mod completions;
mod confirm;
mod database;
mod doctor;
mod feedback;
mod health;
mod init;
mod key;
mod man;
mod mcp;
pub mod memory;
mod model;
mod ollama_commands;
mod open_app;
mod overview;
mod recipes;
mod reload;
mod router;
mod scheduler;
#[cfg(feature = "server")]
mod serve;
#[cfg(not(feature = "server"))]
#[path = "serve_missing.rs"]
mod serve;
#[cfg(all(test, feature = "server"))]
mod serve_missing;
mod service;
mod sources;
mod telemetry;
mod tools;
mod update;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::LocalBoxFuture;

use crate::args::{Args, CliCommand};

/// Blocking threads of the program's runtime. All connections of a server use them too. A database that does not answer holds one for
/// each caller, so the limit is far above what is usual.
const MAX_BLOCKING_THREADS: usize = 128;

/// The time limit for background work at the end of a command.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let Some(command) = args.command else { return overview::run() };
    match command {
        CliCommand::Serve(serve) => serve::run(serve),
        CliCommand::Ask(ask) => ask::run(ask, args.verbose.into()),
        CliCommand::Chat(chat) => chat::run(chat, args.verbose.into()),
        CliCommand::Model(model) => model::run(model),
        CliCommand::OllamaCommand(word) => ollama_commands::run(word, args.verbose),
        CliCommand::Tools(tools) => tools::run(tools),
        CliCommand::Memory(memory) => memory::run(memory, args.verbose.into()),
        CliCommand::Sources(sources) => sources::run(sources),
        CliCommand::Scheduler(scheduler) => scheduler::run(scheduler),
        CliCommand::Recipes(recipes) => recipes::run(recipes),
        CliCommand::Mcp(mcp) => mcp::run(&mcp),
        CliCommand::Channel(channel) => channel::run(channel),
        CliCommand::Feedback(feedback) => feedback::run(&feedback),
        CliCommand::Router(router) => router::run(router),
        CliCommand::Key(key) => key::run(key),
        CliCommand::Audit(audit) => audit::run(audit),
        CliCommand::Telemetry(telemetry) => telemetry::run(telemetry),
        CliCommand::Bench(bench) => bench::run(bench),
        CliCommand::Database(database) => database::run(database),
        CliCommand::Backup(backup) => database::run_backup(&backup),
        CliCommand::Restore(restore) => database::run_restore(&restore),
        CliCommand::Init(init) => init::run(&init),
        CliCommand::Doctor(doctor) => doctor::run(&doctor),
        CliCommand::Health(health) => health::run(health),
        CliCommand::Reload(args) => reload::run(&args),
        CliCommand::Service(service) => service::run(service),
        CliCommand::Update(update) => update::run(&update),
        CliCommand::Man(man) => man::run(&man),
        CliCommand::Completions(completions) => completions::run(&completions),
        CliCommand::ReadFile => memory::read_file(),
    }
}

/// Runs a future to its end.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    run_boxed(Box::pin(future))
}

/// Not generic over the future, because what a runtime does would be compiled for every command.
fn run_boxed<T>(future: LocalBoxFuture<'_, Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .context("cannot start the runtime")?;
    let outcome = runtime.block_on(future);
    // A DNS lookup, or a write to a full pipe, must not delay the end.
    runtime.shutdown_timeout(LAST_BREATH);
    outcome
}
