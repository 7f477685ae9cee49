//! `hob scheduler list`.

use anyhow::Result;
use hob_core::{Schedule, Task, TaskStatus};
use hob_system::TaskBook;
use jiff::Timestamp;

use super::{with_advice, words};
use crate::commands::model::Format;
use crate::output;
use crate::output::table::{self, Column};
use crate::output::text::one_line;

const COLUMNS: [Column; 6] = [
    Column::Words("TASK"),
    Column::Words("STATUS"),
    Column::Words("NEXT RUN"),
    Column::Words("SCHEDULE"),
    Column::Words("ZONE"),
    Column::Words("PROMPT"),
];

/// As much of a prompt as tells tasks apart.
const SHOWN: usize = 60;

pub async fn run(book: &TaskBook, status: Option<TaskStatus>, format: Format) -> Result<()> {
    let tasks = book.list(status).await.map_err(with_advice)?;
    match format {
        Format::Json => output::json(&tasks)?,
        Format::People if tasks.is_empty() => {
            output::note("There are no such tasks. 'hob scheduler create' makes one.");
        }
        Format::People => {
            let now = book.now();
            table::print(&COLUMNS, &tasks.iter().map(|task| row(task, now)).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

fn row(task: &Task, now: Timestamp) -> Vec<String> {
    let next = match (task.status, task.next_run) {
        (TaskStatus::Active, Some(at)) => words::next_run(at, now, &task.timetable.zone),
        // The one run of a date is under way.
        (TaskStatus::Active, None) => "now".to_owned(),
        (TaskStatus::Paused | TaskStatus::Completed | TaskStatus::Cancelled, _) => "-".to_owned(),
    };
    let spec = &task.timetable.spec;
    let prompt = one_line(&task.prompt);
    let shown: String = prompt.chars().take(SHOWN).collect();
    vec![
        task.id.to_string(),
        task.status.to_string(),
        next,
        format!("{} {}", spec.kind().as_str(), one_line(spec.value())),
        task.timetable.zone.name().to_owned(),
        if shown.len() < prompt.len() { format!("{shown}…") } else { shown },
    ]
}
