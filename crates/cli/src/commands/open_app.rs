//! Opens the app for a command, with a spinner, and closes it after the command, whether it succeeds or fails.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use hob_app::{App, AppOptions};
use hob_config::{Config, EngineName};

use crate::args::NetworkAccess;
use crate::commands::{block_on, memory};
use crate::local;
use crate::output;
use crate::output::progress::Spinner;
use crate::settings;
use crate::signals::{ServerSignal, Signals, StopSignal};

/// A shorter wait is not reported.
const NOTICEABLE: Duration = Duration::from_millis(250);

/// The options of commands that ask questions: one engine or any, and whether to download a model if there is none.
pub fn open_options(engine: Option<EngineName>, network: NetworkAccess) -> AppOptions {
    let (first_run, offer) = local::first_run(network);
    AppOptions { engine, first_run, offer, reader: memory::reader(), ..AppOptions::default() }
}

/// Opens the app and runs the work with it. The work handles signals; a signal before that ends the wait.
pub fn with_app(
    config: &Config,
    wishes: &AppOptions,
    work: impl AsyncFnOnce(&App, &mut Signals) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let home = settings::home()?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let app = {
            let _waiting = Spinner::start("looking for an engine");
            tokio::select! {
                opened = App::open(config, &home, wishes) => opened?,
                stop = signals.next() => return Ok(stop.exit_code()),
            }
        };
        let outcome = work(&app, &mut signals).await;
        app.close().await;
        outcome
    })
}

/// For a graceful stop: reports the wait if it is noticeable, and returns on the second signal, which means stop immediately.
pub async fn second_signal(under_way: &str, grace: Duration, signals: &mut Signals) -> StopSignal {
    tokio::time::sleep(NOTICEABLE).await;
    let grace = grace.as_secs();
    output::note(format_args!(
        "waiting up to {grace} s for {under_way} in progress; press Ctrl-C again to stop immediately"
    ));
    loop {
        // There is nothing left to reload.
        if let ServerSignal::Stop(stop) = signals.next_for_server().await {
            return stop;
        }
    }
}
