//! `hob scheduler run`: one run now, beside the schedule, and what came of it.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hob_core::schedule::RunOutcome;
use hob_core::{Schedule, TaskRun};
use hob_system::{Household, TaskBook};

use super::{house, read_id, with_advice};
use crate::args::SchedulerRunArgs;
use crate::commands::block_on;
use crate::commands::model::Format;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::text::printable;
use crate::settings;
use crate::signals::Signals;

pub fn run(args: SchedulerRunArgs) -> Result<ExitCode> {
    let SchedulerRunArgs { id, json, house: wanted } = args;
    let id = read_id(&id)?;
    let (mut config, wishes) = house(wanted)?;
    // That is for those who stay.
    config.engine.embedded.tune = false;
    let home = settings::home()?;
    block_on(async {
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        // Before an engine is looked for, which takes its time.
        TaskBook::at(&home).get(&id).await.map_err(with_advice)?;
        let household = {
            let _waiting = Spinner::start("looking for an engine");
            tokio::select! {
                opened = Household::open(&config, &home, &wishes) => opened?,
                stop = signals.next() => return Ok(stop.exit_code()),
            }
        };
        let outcome = {
            let running = async {
                let _waiting = Spinner::start(format!("running {id}"));
                household.scheduler.run_to_end(&id).await.map_err(with_advice)
            };
            tokio::pin!(running);
            tokio::select! {
                run = &mut running => run.and_then(|run| print(&run, json.into())).map(|()| ExitCode::SUCCESS),
                stop = signals.next() => {
                    // It is written down as interrupted before we leave.
                    household.scheduler.cut();
                    running.await.map(|_| stop.exit_code())
                }
            }
        };
        household.close().await;
        outcome
    })
}

fn print(run: &TaskRun, format: Format) -> Result<()> {
    if format == Format::Json {
        output::json(run)?;
    } else if let Some(result) = &run.result {
        output::line(printable(result))?;
    }
    match (run.outcome, &run.error) {
        (Some(RunOutcome::Succeeded), _) => Ok(()),
        (_, Some(error)) => bail!("{error}"),
        (_, None) => bail!("the run did not succeed"),
    }
}
