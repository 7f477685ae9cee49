//! The house that a command works in: opened with a sign of life, and closed behind the command however it ended.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use hob_config::{Config, EngineKey};
use hob_system::{Household, Wishes};

use crate::args::NetworkAccess;
use crate::commands::{block_on, memory};
use crate::local;
use crate::output;
use crate::output::progress::Spinner;
use crate::settings;
use crate::signals::{ServerSignal, Signals, StopSignal};

/// When everything ends sooner than this there is no need to speak of waiting.
const NOTICEABLE: Duration = Duration::from_millis(250);

/// What those wish for who have questions answered: this engine or any, and where there is none, a model to start with.
pub fn open_options(engine: Option<EngineKey>, network: NetworkAccess) -> Wishes {
    Wishes { engine, first_run: local::first_run(network), reader: memory::reader() }
}

/// Opens the house and works in it. From then on signals are for the work to heed; one that comes before ends the wait.
pub fn with_app(
    config: &Config,
    wishes: &Wishes,
    work: impl AsyncFnOnce(&Household, &mut Signals) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let home = settings::home()?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let app = {
            let _waiting = Spinner::start("looking for an engine");
            tokio::select! {
                opened = Household::open(config, &home, wishes) => opened?,
                stop = signals.next() => return Ok(stop.exit_code()),
            }
        };
        let outcome = work(&app, &mut signals).await;
        app.close().await;
        outcome
    })
}

/// For whoever was told to stop and lets what is under way end: says so if it lasts, and waits for the signal that means at once.
pub async fn second_signal(under_way: &str, grace: Duration, signals: &mut Signals) -> StopSignal {
    tokio::time::sleep(NOTICEABLE).await;
    let grace = grace.as_secs();
    output::note(format_args!(
        "finishing the {under_way} under way, {grace} s at most; press Ctrl-C again to stop at once"
    ));
    loop {
        // There is nothing left to reload.
        if let ServerSignal::Stop(stop) = signals.next_for_server().await {
            return stop;
        }
    }
}
