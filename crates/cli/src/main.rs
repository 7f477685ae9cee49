//! The program `hob`: parses the command line, runs the command, and exits with a reliable code.
//!
//! The crates below do the work. This crate knows terminals, and nothing of engine protocols or of serving HTTP.

mod answers;
mod args;
mod change_notice;
mod commands;
mod engine_advice;
mod engine_status;
mod failure;
mod logging;
mod missing_model_hint;
mod model_download;
mod named_keys;
mod output;
mod own_address;
mod reload_socket;
mod running_server;
mod server_urls;
mod settings;
mod signals;
mod starter_model;
mod stored_models;

use std::process::ExitCode;

/// Answers come in many small pieces of text, which this allocator handles best.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::parse();
    match logging::start(&args).and_then(|()| commands::run(args)) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
