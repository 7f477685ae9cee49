//! One file per subcommand.

mod ask;
mod bench;
mod channel;
mod chat;
mod completions;
mod confirm;
mod doctor;
mod feedback;
mod health;
mod init;
mod man;
mod mcp;
mod memory;
mod model;
mod open_app;
mod overview;
mod router;
mod scheduler;
#[cfg(feature = "server")]
mod serve;
#[cfg(not(feature = "server"))]
#[path = "serve_missing.rs"]
mod serve;
#[cfg(all(test, feature = "server"))]
mod serve_missing;
mod telemetry;
mod tools;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::{Args, Command};

/// How long work that was left behind may take to end.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// Does what was asked.
pub fn run(args: Args) -> Result<ExitCode> {
    let Some(command) = args.command else { return overview::run() };
    match command {
        Command::Serve(serve) => serve::run(serve),
        Command::Ask(ask) => ask::run(ask, args.verbose.into()),
        Command::Chat(chat) => chat::run(chat, args.verbose.into()),
        Command::Model(model) => model::run(model),
        Command::Tools(tools) => tools::run(tools),
        Command::Memory(memory) => memory::run(memory, args.verbose.into()),
        Command::Scheduler(scheduler) => scheduler::run(scheduler),
        Command::Mcp(mcp) => mcp::run(&mcp),
        Command::Channel(channel) => channel::run(channel),
        Command::Feedback(feedback) => feedback::run(&feedback),
        Command::Router(router) => router::run(router),
        Command::Telemetry(telemetry) => telemetry::run(telemetry),
        Command::Bench(bench) => bench::run(bench),
        Command::Init(init) => init::run(&init),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Health(health) => health::run(health),
        Command::Man(man) => man::run(&man),
        Command::Completions(completions) => completions::run(&completions),
        Command::ReadFile => memory::read_file(),
    }
}

/// Runs a future to its end.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let outcome = runtime.block_on(future);
    // A look-up of a name, or a write to a pipe that nobody reads, must not hold the end up.
    runtime.shutdown_timeout(LAST_BREATH);
    outcome
}
