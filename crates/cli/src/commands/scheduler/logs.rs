//! `hob scheduler logs`.

use anyhow::Result;
use hob_core::Zone;
use hob_tasks::{RunOutcome, TaskRun, TaskService};

use super::find::find;
use crate::failure::with_advice;
use crate::output;
use crate::output::OutputFormat;
use crate::output::table::{self, Column};
use crate::output::text::{one_line, shortened};
use crate::output::time;

const COLUMNS: [Column; 5] = [
    Column::Words("DUE"),
    Column::Numbers("ATTEMPT"),
    Column::Words("OUTCOME"),
    Column::Numbers("DURATION"),
    Column::Words("RESULT"),
];

/// As much of a result as fits on a line; `--json` has all of it.
const SHOWN: usize = 100;

pub async fn run(service: &TaskService, id: &str, lines: usize, format: OutputFormat) -> Result<()> {
    let task = find(service, id).await?;
    let runs = service.runs(&task.id, lines).await.map_err(with_advice)?;
    match format {
        OutputFormat::Json => output::json(&runs)?,
        OutputFormat::Text if runs.is_empty() => {
            output::note(format_args!("{} has not run yet.", task.id));
        }
        OutputFormat::Text => {
            let zone = &task.schedule.zone;
            table::print(&COLUMNS, &runs.iter().map(|run| row(run, zone)).collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

fn row(run: &TaskRun, zone: &Zone) -> Vec<String> {
    let took = run.finished_at.map(|end| time::span(end.duration_since(run.started_at)));
    let has_succeeded = run.outcome == Some(RunOutcome::Succeeded);
    let said = match (&run.error, &run.result) {
        (Some(missing), Some(result)) if has_succeeded => one_line(&format!("{result} [{missing}]")),
        (Some(error), _) => one_line(error),
        (None, Some(result)) => one_line(result),
        (None, None) => String::new(),
    };
    vec![
        time::in_full(run.slot, zone),
        run.attempt.to_string(),
        run.outcome.map_or("running", RunOutcome::as_str).to_owned(),
        took.unwrap_or_default(),
        shortened(&said, SHOWN),
    ]
}
