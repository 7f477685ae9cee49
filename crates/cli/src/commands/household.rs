//! The house that a command works in: opened with a sign of life, and closed behind the command however it ended.

use std::process::ExitCode;

use anyhow::{Context, Result};
use hob_config::{Config, EngineKey};
use hob_system::{Household, Wishes};

use crate::args::Network;
use crate::commands::{block_on, memory};
use crate::local;
use crate::output::progress::Spinner;
use crate::settings;
use crate::signals::Signals;

/// What those wish for who have questions answered: this engine or any, and where there is none, a model to start with.
pub fn wishes(engine: Option<EngineKey>, network: Network) -> Wishes {
    Wishes { engine, first_run: local::first_run(network), reader: memory::reader() }
}

/// Opens the house and works in it. From then on signals are for the work to heed; one that comes before ends the wait.
pub fn work_in(
    config: &Config,
    wishes: &Wishes,
    work: impl AsyncFnOnce(&Household, &mut Signals) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let home = settings::home()?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let household = {
            let _waiting = Spinner::start("looking for an engine");
            tokio::select! {
                opened = Household::open(config, &home, wishes) => opened?,
                stop = signals.next() => return Ok(stop.exit_code()),
            }
        };
        let outcome = work(&household, &mut signals).await;
        household.close().await;
        outcome
    })
}
