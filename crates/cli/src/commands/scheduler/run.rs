//! `hob scheduler run`: one run now, outside the schedule, by the running server of this home or in this process. Prints its steps and its
//! answer while it runs.

use std::cell::Cell;
use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_app::AppOptions;
use hob_app::startup::identity::open_identity;
use hob_app::startup::tasks::{task_options, task_service};
use hob_config::Config;
use hob_tasks::Task;

use super::find::find;
use super::live_run::{self, ShownRun};
use super::run_settings;
use crate::answers::{AnswerProvider, EndedTaskRun, TaskRunRequest};
use crate::args::SchedulerRunArgs;
use crate::change_notice::{ChangedPart, tell_servers};
use crate::commands::open_app::ServerChoice;
use crate::commands::{block_on, open_app};
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::text::{one_line, printable};
use crate::settings;

pub fn run(args: SchedulerRunArgs) -> Result<ExitCode> {
    let SchedulerRunArgs { id, json, engine, standalone } = args;
    let (model, chosen_engine) = (engine.model.clone(), engine.engine);
    let (config, wishes) = run_settings(engine)?;
    let databases = settings::databases(&config)?;
    let service = task_service(databases.hob.clone(), task_options(None));
    let wishes = AppOptions { databases: Some(databases), ..wishes };
    // Before the search for an engine, which takes time.
    let task = block_on(find(&service, &id))?;
    let choice = ServerChoice { engine: chosen_engine, model: model.as_deref(), router: None, standalone };
    let is_in_process = Cell::new(false);
    let outcome = open_app::with_answers(&config, &choice, &wishes, async |source, signals| {
        is_in_process.set(matches!(source, AnswerProvider::InProcess(_)));
        // Dropping the run stops it. It is recorded as interrupted.
        tokio::select! {
            run = run_and_print(source, &config, &task, model.clone(), json.into()) => run.map(|()| ExitCode::SUCCESS),
            stop = signals.next() => Ok(stop.exit_code()),
        }
    });
    // By now, a run that was stopped is recorded too.
    if is_in_process.get() {
        tell_servers(ChangedPart::Tasks);
    }
    outcome
}

async fn run_and_print(
    source: &AnswerProvider<'_>,
    config: &Config,
    task: &Task,
    model: Option<String>,
    format: OutputFormat,
) -> Result<()> {
    let waiting = Spinner::start(format!("running {}", task.id));
    if let AnswerProvider::InProcess(app) = source {
        // A task of a key has its rights.
        app.keys.start().await?;
        // A task of a person who signs in elsewhere has the rights of a rule. No token is checked here.
        open_identity(&config.server.identity, &app.keys)?;
    }
    let is_live = format == OutputFormat::Text;
    let request = TaskRunRequest { id: task.id.to_string(), model, engine: None, is_live };
    let ShownRun { run, has_answer, sources } = live_run::show(source.run_task(request), waiting).await?;
    if format == OutputFormat::Json {
        output::json(&run.run)?;
        return ended_well(&run);
    }
    match &run.result {
        Some(result) if !has_answer => output::line(printable(result))?,
        _ => {}
    }
    if let Some(line) = sources {
        output::note(one_line(&line));
    }
    ended_well(&run)?;
    match &run.error {
        // Such a task is usually quiet.
        Some(reason) if !run.is_delivered => output::note(one_line(reason)),
        Some(missing) => output::warning(one_line(missing)),
        None => {}
    }
    if let Some(to) = &task.deliver_to
        && run.is_delivered
    {
        output::note(format_args!("Delivered to {}.", one_line(&to.channel)));
    }
    Ok(())
}

fn ended_well(run: &EndedTaskRun) -> Result<()> {
    match &run.error {
        _ if run.has_succeeded => Ok(()),
        Some(error) => bail!("{error}"),
        None => bail!("the run failed"),
    }
}
