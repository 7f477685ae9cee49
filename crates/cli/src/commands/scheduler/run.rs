//! `hob scheduler run`: one run now, outside the schedule, and its result.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_app::AppOptions;
use hob_app::startup::identity::open_identity;
use hob_app::startup::tasks::{task_options, task_service};
use hob_tasks::{RunOutcome, TaskRun};

use super::errors::{read_id, with_advice};
use super::run_settings;
use crate::args::SchedulerRunArgs;
use crate::change_notice::{ChangedPart, tell_servers};
use crate::commands::{block_on, open_app};
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::text::printable;
use crate::settings;

pub fn run(args: SchedulerRunArgs) -> Result<ExitCode> {
    let SchedulerRunArgs { id, json, engine } = args;
    let id = read_id(&id)?;
    let (config, wishes) = run_settings(engine)?;
    let databases = settings::databases(&config)?;
    let service = task_service(databases.hob.clone(), task_options(None));
    let wishes = AppOptions { databases: Some(databases), ..wishes };
    // Before the search for an engine, which takes time.
    block_on(async { service.get(&id).await.map_err(with_advice) })?;
    open_app::with_app(&config, &wishes, async |app, signals| {
        // A task of a key has its rights.
        app.keys.start().await?;
        // A task of a person who signs in elsewhere has the rights of a rule. No token is checked here.
        open_identity(&config.server.identity, &app.keys)?;
        let running = async {
            let _waiting = Spinner::start(format!("running {id}"));
            let run = app.scheduler.run_to_end(&id).await.map_err(with_advice);
            tell_servers(ChangedPart::Tasks);
            run
        };
        tokio::pin!(running);
        tokio::select! {
            run = &mut running => run.and_then(|run| print(&run, json.into())).map(|()| ExitCode::SUCCESS),
            stop = signals.next() => {
                // The run is recorded as interrupted before the program ends.
                app.scheduler.abort();
                running.await.map(|_| stop.exit_code())
            }
        }
    })
}

fn print(run: &TaskRun, format: OutputFormat) -> Result<()> {
    if format == OutputFormat::Json {
        output::json(run)?;
    } else if let Some(result) = &run.result {
        output::line(printable(result))?;
    }
    match (run.outcome, &run.error) {
        (Some(RunOutcome::Succeeded), _) => Ok(()),
        (_, Some(error)) => bail!("{error}"),
        (_, None) => bail!("the run failed"),
    }
}
