//! `hob scheduler pause`, `resume` and `cancel`.

use anyhow::Result;
use hob_app::Databases;
use hob_tasks::{Task, TaskChange, TaskService};

use super::find::find;
use crate::args::SchedulerTaskArgs;
use crate::change_notice::{ChangedPart, tell_servers};
use crate::commands::audit;
use crate::failure::with_advice;
use crate::output;
use crate::output::OutputFormat;
use crate::output::time;

pub async fn pause(service: &TaskService, databases: &Databases, args: &SchedulerTaskArgs) -> Result<()> {
    change(service, databases, args, TaskChange::Pause, |task, _| {
        format!("Paused {0}. Resume it with 'hob scheduler resume {0}'.", task.id)
    })
    .await
}

pub async fn resume(service: &TaskService, databases: &Databases, args: &SchedulerTaskArgs) -> Result<()> {
    change(service, databases, args, TaskChange::Resume, |task, service| match task.next_run {
        Some(at) => {
            let next = time::next_run(at, service.now(), &task.schedule.zone);
            format!("Resumed {}. Its next run is {next}.", task.id)
        }
        None => format!("Resumed {}.", task.id),
    })
    .await
}

pub async fn cancel(service: &TaskService, databases: &Databases, args: &SchedulerTaskArgs) -> Result<()> {
    change(service, databases, args, TaskChange::Cancel, |task, _| format!("Cancelled {}.", task.id)).await
}

async fn change(
    service: &TaskService,
    databases: &Databases,
    args: &SchedulerTaskArgs,
    change: TaskChange,
    tell: impl Fn(&Task, &TaskService) -> String,
) -> Result<()> {
    let task = service.change(&find(service, &args.id).await?.id, change).await.map_err(with_advice)?;
    let action = match change {
        TaskChange::Pause => "task.pause",
        TaskChange::Resume => "task.resume",
        TaskChange::Cancel => "task.cancel",
        TaskChange::Run => "task.run",
    };
    audit::note(databases, action, &task.id.to_string());
    tell_servers(ChangedPart::Tasks);
    match args.json.into() {
        OutputFormat::Json => output::json(&task)?,
        OutputFormat::Text => output::line(tell(&task, service))?,
    }
    Ok(())
}
