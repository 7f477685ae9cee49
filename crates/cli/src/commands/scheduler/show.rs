//! `hob scheduler show`.

use anyhow::Result;
use hob_tasks::{Missed, Task, TaskService, TaskStatus};
use jiff::Timestamp;
use serde_json::json;

use super::find::find;
use super::schedule_fact::schedule_fact;
use crate::output;
use crate::output::OutputFormat;
use crate::output::table::print_facts;
use crate::output::text::{one_line, printable};
use crate::output::time;

pub async fn run(service: &TaskService, id: &str, format: OutputFormat) -> Result<()> {
    let task = find(service, id).await?;
    match format {
        OutputFormat::Json => output::json(&task)?,
        OutputFormat::Text => print_facts(&facts(&task, service.now()))?,
    }
    Ok(())
}

fn facts(task: &Task, now: Timestamp) -> Vec<(&'static str, String)> {
    let zone = &task.schedule.zone;
    let next = task.next_run.filter(|_| task.status == TaskStatus::Active);
    let tools = match &task.tools {
        None => "tools without side effects".to_owned(),
        Some(tools) if tools.is_empty() => "none".to_owned(),
        Some(tools) => one_line(&tools.join(", ")),
    };
    // These two let the model answer without tools.
    let uses_tools = !matches!(task.agent.as_str(), "simple" | "none");
    let missed = match task.missed {
        Missed::Once => "made up for with a single run",
        Missed::Skip => "skipped",
    };
    let deliver_to = task.deliver_to.as_ref().map(|to| match &to.conversation {
        Some(conversation) => one_line(&format!("{} ({conversation})", to.channel)),
        None => one_line(&to.channel),
    });
    let facts = [
        ("Task", Some(task.id.to_string())),
        ("Name", task.name().map(one_line)),
        ("Status", Some(task.status.to_string())),
        ("Schedule", Some(schedule_fact(&task.schedule))),
        ("Next run", next.map(|at| time::next_run(at, now, zone))),
        ("Last run", task.last_run.map(|at| time::in_full(at, zone))),
        ("Created", Some(time::in_full(task.created_at, zone))),
        ("Agent", Some(one_line(&task.agent))),
        ("Tools", Some(tools).filter(|_| uses_tools)),
        ("First calls", first_calls(task)),
        ("Shows results", task.shows_results().then(|| "yes".to_owned())),
        ("Key", task.permit.key.as_deref().map(one_line)),
        ("Deliver to", deliver_to),
        ("Retries", Some(task.limits.retries.to_string())),
        ("Timeout", Some(format!("{} s", task.limits.timeout.as_secs()))),
        ("Missed runs", Some(missed.to_owned())),
        ("Prompt", Some(printable(&task.prompt).into_owned())),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The calls before the prompt.
fn first_calls(task: &Task) -> Option<String> {
    let calls = task.first_calls.iter().map(|call| match call.arguments.is_empty() {
        true => call.tool.clone(),
        false => format!("{} {}", call.tool, json!(call.arguments)),
    });
    let calls: Vec<String> = calls.collect();
    (!calls.is_empty()).then(|| one_line(&calls.join(", ")))
}
