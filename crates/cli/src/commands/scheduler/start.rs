//! `hob scheduler start`: runs tasks until a signal stops it.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::App;
use hob_app::startup::identity::open_identity;
use hob_tasks::TaskStatus;

use super::run_settings;
use crate::answers::{FoundServer, find_server};
use crate::args::SchedulerStartArgs;
use crate::commands::open_app;
use crate::engine_advice;
use crate::failure::with_advice;
use crate::output;
use crate::output::number::counted;
use crate::output::table::print_facts;
use crate::output::time;
use crate::settings;

pub fn run(args: SchedulerStartArgs) -> Result<ExitCode> {
    let (config, wishes) = run_settings(args.engine)?;
    open_app::with_app(&config, &wishes, async |app, signals| {
        // A task database that cannot be read fails now, not at the first run.
        print_summary(app).await?;
        // Tasks of a key have its rights.
        app.keys.start().await?;
        // Tasks of people who sign in elsewhere have the rights of their rules. No token is checked here.
        open_identity(&config.server.identity, &app.keys)?;
        note_server().await?;
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

/// Notes that a server runs tasks too, because two processes may load the same model.
async fn note_server() -> Result<()> {
    if let FoundServer::Server(server) = find_server(&settings::home()?).await
        && server.info.runs_tasks
    {
        output::note(
            "The running server of this home runs due tasks already. This process shares them. With the embedded engine, each \
             process loads its own model.",
        );
    }
    Ok(())
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
        ("Engine", engine_advice::place(engine.key(), engine.address())),
        ("Tasks", counted(tasks.len(), "active task")),
        ("Next", next.unwrap_or_else(|| "none".to_owned())),
    ])?;
    Ok(())
}
