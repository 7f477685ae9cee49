//! `hob scheduler pause`, `resume` and `cancel`.

use anyhow::Result;
use hob_tasks::{Change, Task, TaskBook};

use super::{read_id, with_advice};
use crate::args::SchedulerTaskArgs;
use crate::output;
use crate::output::OutputFormat;
use crate::output::time;

pub async fn pause(book: &TaskBook, args: &SchedulerTaskArgs) -> Result<()> {
    change(book, args, Change::Pause, |task, _| {
        format!("Paused {0}. Resume it with 'hob scheduler resume {0}'.", task.id)
    })
    .await
}

pub async fn resume(book: &TaskBook, args: &SchedulerTaskArgs) -> Result<()> {
    change(book, args, Change::Resume, |task, book| match task.next_run {
        Some(at) => {
            let next = time::next_run(at, book.now(), &task.timetable.zone);
            format!("Resumed {}. Its next run is {next}.", task.id)
        }
        None => format!("Resumed {}.", task.id),
    })
    .await
}

pub async fn cancel(book: &TaskBook, args: &SchedulerTaskArgs) -> Result<()> {
    change(book, args, Change::Cancel, |task, _| format!("Cancelled {}.", task.id)).await
}

async fn change(
    book: &TaskBook,
    args: &SchedulerTaskArgs,
    change: Change,
    tell: impl Fn(&Task, &TaskBook) -> String,
) -> Result<()> {
    let task = book.change(&read_id(&args.id)?, change).await.map_err(with_advice)?;
    match args.json.into() {
        OutputFormat::Json => output::json(&task)?,
        OutputFormat::Text => output::line(tell(&task, book))?,
    }
    Ok(())
}
