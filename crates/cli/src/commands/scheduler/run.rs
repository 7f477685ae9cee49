//! `hob scheduler run`: one run now, outside the schedule. Prints its steps and its answer while it runs.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_app::startup::identity::open_identity;
use hob_app::startup::tasks::{task_options, task_service};
use hob_app::{App, AppOptions};
use hob_tasks::{RunOutcome, Task, TaskRun};

use super::errors::{find, with_advice};
use super::live_run::{LiveRun, show_steps};
use super::run_settings;
use crate::args::SchedulerRunArgs;
use crate::change_notice::{ChangedPart, tell_servers};
use crate::commands::{block_on, open_app};
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::text::{one_line, printable};
use crate::settings;

pub fn run(args: SchedulerRunArgs) -> Result<ExitCode> {
    let SchedulerRunArgs { id, json, engine } = args;
    let (config, wishes) = run_settings(engine)?;
    let databases = settings::databases(&config)?;
    let service = task_service(databases.hob.clone(), task_options(None));
    let wishes = AppOptions { databases: Some(databases), ..wishes };
    // Before the search for an engine, which takes time.
    let task = block_on(find(&service, &id))?;
    open_app::with_app(&config, &wishes, async |app, signals| {
        // A task of a key has its rights.
        app.keys.start().await?;
        // A task of a person who signs in elsewhere has the rights of a rule. No token is checked here.
        open_identity(&config.server.identity, &app.keys)?;
        let running = run_and_print(app, &task, json.into());
        tokio::pin!(running);
        tokio::select! {
            run = &mut running => run.map(|()| ExitCode::SUCCESS),
            stop = signals.next() => {
                // The run is recorded as interrupted before the program ends.
                app.scheduler.abort();
                // It ends with an error, which says nothing new.
                let _ = running.await;
                Ok(stop.exit_code())
            }
        }
    })
}

async fn run_and_print(app: &App, task: &Task, format: OutputFormat) -> Result<()> {
    let waiting = Spinner::start(format!("running {}", task.id));
    if format == OutputFormat::Json {
        let run = app.scheduler.run_to_end(&task.id).await.map_err(with_advice)?;
        tell_servers(ChangedPart::Tasks);
        drop(waiting);
        output::json(&run)?;
        return ended_well(&run);
    }
    let live = LiveRun::new(waiting);
    let steps = show_steps(app.system.bus(), &task.id);
    let run = app.scheduler.run_live(&task.id, &live).await;
    tell_servers(ChangedPart::Tasks);
    drop(steps);
    let is_shown = live.end().await?;
    let run = run.map_err(with_advice)?;
    match &run.result {
        Some(result) if !is_shown => output::line(printable(result))?,
        _ => {}
    }
    ended_well(&run)?;
    if let Some(missing) = &run.error {
        output::warning(one_line(missing));
    }
    if let Some(to) = &task.deliver_to {
        output::note(format_args!("Delivered to {}.", one_line(&to.channel)));
    }
    Ok(())
}

fn ended_well(run: &TaskRun) -> Result<()> {
    match (run.outcome, &run.error) {
        (Some(RunOutcome::Succeeded), _) => Ok(()),
        (_, Some(error)) => bail!("{error}"),
        (_, None) => bail!("the run failed"),
    }
}
