//! `hob scheduler start`: runs tasks until a signal stops it.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::App;
use hob_app::startup::identity::open_identity;
use hob_tasks::TaskStatus;

use super::errors::with_advice;
use super::run_settings;
use crate::advice;
use crate::args::SchedulerStartArgs;
use crate::commands::open_app;
use crate::output::number::counted;
use crate::output::table::print_facts;
use crate::output::time;

pub fn run(args: SchedulerStartArgs) -> Result<ExitCode> {
    let (config, wishes) = run_settings(args.engine)?;
    open_app::with_app(&config, &wishes, async |app, signals| {
        // A task database that cannot be read fails now, not at the first run.
        print_summary(app).await?;
        // Tasks of a key have its rights.
        app.keys.start().await?;
        // Tasks of people who sign in elsewhere have the rights of their rules. No token is checked here.
        open_identity(&config.server.identity, &app.keys)?;
        app.scheduler.start();
        signals.next().await;
        let grace = config.server.shutdown_grace;
        // Closing the app stops the remaining runs.
        tokio::select! {
            () = app.scheduler.drain(grace) => {}
            _ = open_app::second_signal("tasks", grace, signals) => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn print_summary(app: &App) -> Result<()> {
    let service = app.scheduler.tasks();
    let tasks = service.list(Some(TaskStatus::Active)).await.map_err(with_advice)?;
    let engine = app.system.engine();
    let next = tasks.first().and_then(|task| {
        let at = task.next_run?;
        Some(format!("{}, {}", task.id, time::next_run(at, service.now(), &task.schedule.zone)))
    });
    print_facts(&[
        ("Engine", advice::place(engine.key(), engine.address())),
        ("Tasks", counted(tasks.len(), "active task")),
        ("Next", next.unwrap_or_else(|| "none".to_owned())),
    ])?;
    Ok(())
}
