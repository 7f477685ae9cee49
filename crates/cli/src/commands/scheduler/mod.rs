//! `hob scheduler`: scheduled tasks. Creating, showing and changing them needs no engine and no server: the commands use the
//! database directly, and the process that runs tasks uses the same database.

mod change;
mod create;
mod find;
mod list;
mod live_run;
mod logs;
mod run;
mod schedule_fact;
mod show;
mod start;

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::tasks::{task_options, task_service};
use hob_app::{AppOptions, Databases};
use hob_config::Config;
use hob_tasks::{NewTask, Task, TaskService};

use self::list::TaskFilter;
use crate::args::{SchedulerCommand, SchedulerEngineArgs, SchedulerRunArgs};
use crate::commands::{block_on, open_app};
use crate::output::OutputFormat;
use crate::settings;

pub fn run(command: SchedulerCommand) -> Result<ExitCode> {
    match command {
        SchedulerCommand::Create(args) => create::run(*args),
        SchedulerCommand::Start(args) => start::run(args),
        SchedulerCommand::Run(args) => run::run(args),
        SchedulerCommand::List { all, status, json } => with_service(async |service, _| {
            list::run(service, TaskFilter::new(all, status), json.into()).await
        }),
        SchedulerCommand::Show { id, json } => {
            with_service(async |service, _| show::run(service, &id, json.into()).await)
        }
        SchedulerCommand::Logs { id, lines, json } => {
            with_service(async |service, _| logs::run(service, &id, lines, json.into()).await)
        }
        SchedulerCommand::Pause(args) => {
            with_service(async |service, databases| change::pause(service, databases, &args).await)
        }
        SchedulerCommand::Resume(args) => {
            with_service(async |service, databases| change::resume(service, databases, &args).await)
        }
        SchedulerCommand::Cancel(args) => {
            with_service(async |service, databases| change::cancel(service, databases, &args).await)
        }
    }
}

/// Checks a task, saves it and prints it.
pub async fn save(
    config: &Config,
    databases: &Databases,
    task: NewTask,
    format: OutputFormat,
) -> Result<Task> {
    create::save(config, databases, task, format).await
}

/// Refuses a channel that does not exist, with the names of those that do, and one without a recipient.
pub async fn check_channel(config: &Config, databases: &Databases, channel: &str) -> Result<()> {
    create::check_channel(config, databases, channel).await
}

/// Runs a task once, and prints the answer while it is written.
pub fn run_once(id: &str, model: Option<String>) -> Result<ExitCode> {
    let engine = SchedulerEngineArgs { engine: None, model, offline: false };
    run::run(SchedulerRunArgs { id: id.to_owned(), json: false, engine, standalone: false })
}

fn with_service(work: impl AsyncFnOnce(&TaskService, &Databases) -> Result<()>) -> Result<ExitCode> {
    let databases = settings::databases(&settings::load()?)?;
    let service = task_service(databases.hob.clone(), task_options(None));
    block_on(async {
        work(&service, &databases).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The configuration and options for running tasks: flags override the file, the file overrides the defaults.
fn run_settings(args: SchedulerEngineArgs) -> Result<(Config, AppOptions)> {
    let mut config = settings::load()?;
    if let Some(model) = args.model {
        config.use_model(&model);
    }
    Ok((config, open_app::open_options(args.engine, args.offline.into())))
}
