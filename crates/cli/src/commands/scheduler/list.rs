//! `hob scheduler list`.

use anyhow::Result;
use hob_tasks::{Task, TaskService, TaskStatus, shown_schedule};
use jiff::Timestamp;

use crate::failure::with_advice;
use crate::output;
use crate::output::OutputFormat;
use crate::output::number::counted;
use crate::output::table::{self, Column};
use crate::output::text::{one_line, shortened};
use crate::output::time;

/// The maximum length of a prompt in the table.
const LONGEST: usize = 60;

/// The same of a name, and of a prompt beside names, so that the table fits most terminals.
const LONGEST_NAME: usize = 24;
const LONGEST_BESIDE_NAMES: usize = 30;

/// The columns that only some lists need.
#[derive(Debug, Clone, Copy)]
struct ExtraColumns {
    has_names: bool,
    has_keys: bool,
}

impl ExtraColumns {
    fn of(tasks: &[Task]) -> Self {
        ExtraColumns {
            has_names: tasks.iter().any(|task| task.name().is_some()),
            has_keys: tasks.iter().any(|task| task.permit.key.is_some()),
        }
    }

    fn header(self) -> Vec<Column> {
        let names = [
            Some("TASK"),
            self.has_names.then_some("NAME"),
            Some("STATUS"),
            Some("NEXT RUN"),
            Some("SCHEDULE"),
            Some("ZONE"),
            Some("PROMPT"),
            self.has_keys.then_some("KEY"),
        ];
        names.into_iter().flatten().map(Column::Words).collect()
    }
}

/// Which tasks are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskFilter {
    /// Active and paused tasks.
    Current,
    All,
    Only(TaskStatus),
}

impl TaskFilter {
    /// From the flags `--all` and `--status`.
    pub fn new(all: bool, status: Option<TaskStatus>) -> Self {
        match status {
            Some(status) => TaskFilter::Only(status),
            None if all => TaskFilter::All,
            None => TaskFilter::Current,
        }
    }

    fn includes(self, status: TaskStatus) -> bool {
        match self {
            TaskFilter::Current => matches!(status, TaskStatus::Active | TaskStatus::Paused),
            TaskFilter::All => true,
            TaskFilter::Only(only) => status == only,
        }
    }
}

pub async fn run(service: &TaskService, shown: TaskFilter, format: OutputFormat) -> Result<()> {
    let mut tasks = service.list(None).await.map_err(with_advice)?;
    let of_all = tasks.len();
    tasks.retain(|task| shown.includes(task.status));
    if format == OutputFormat::Json {
        return Ok(output::json(&tasks)?);
    }
    if !tasks.is_empty() {
        let now = service.now();
        let extra = ExtraColumns::of(&tasks);
        let rows: Vec<_> = tasks.iter().map(|task| row(task, now, extra)).collect();
        table::print(&extra.header(), &rows)?;
    } else if of_all == 0 {
        output::note(
            "There are no tasks yet. Create one with 'hob scheduler create', or choose one of 'hob recipes'.",
        );
    } else {
        output::note("There are no matching tasks.");
    }
    let hidden = of_all - tasks.len();
    if shown == TaskFilter::Current && hidden > 0 {
        let are = if hidden == 1 { "is" } else { "are" };
        output::note(format_args!(
            "{} {are} completed or cancelled and not shown; use --all to show everything.",
            counted(hidden, "task")
        ));
    }
    Ok(())
}

fn row(task: &Task, now: Timestamp, extra: ExtraColumns) -> Vec<String> {
    let next = match (task.status, task.next_run) {
        (TaskStatus::Active, Some(at)) => time::next_run(at, now, &task.schedule.zone),
        // The only run of a one-time task is in progress.
        (TaskStatus::Active, None) => "now".to_owned(),
        (TaskStatus::Paused | TaskStatus::Completed | TaskStatus::Cancelled, _) => "-".to_owned(),
    };
    let optional = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), one_line);
    let longest = if extra.has_names { LONGEST_BESIDE_NAMES } else { LONGEST };
    let cells = [
        Some(task.id.to_string()),
        extra.has_names.then(|| shortened(&optional(task.name()), LONGEST_NAME)),
        Some(task.status.to_string()),
        Some(next),
        Some(one_line(&shown_schedule(&task.schedule.spec))),
        Some(task.schedule.zone.name().to_owned()),
        Some(shortened(&one_line(&task.prompt), longest)),
        extra.has_keys.then(|| optional(task.permit.key.as_deref())),
    ];
    cells.into_iter().flatten().collect()
}
