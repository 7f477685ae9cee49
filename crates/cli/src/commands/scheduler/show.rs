//! `hob scheduler show`.

use anyhow::Result;
use hob_tasks::{Task, TaskService, TaskStatus};
use jiff::Timestamp;

use super::errors::{read_id, with_advice};
use crate::output;
use crate::output::OutputFormat;
use crate::output::table::print_facts;
use crate::output::text::{one_line, printable};
use crate::output::time;

pub async fn run(service: &TaskService, id: &str, format: OutputFormat) -> Result<()> {
    let task = service.get(&read_id(id)?).await.map_err(with_advice)?;
    match format {
        OutputFormat::Json => output::json(&task)?,
        OutputFormat::Text => print_facts(&facts(&task, service.now()))?,
    }
    Ok(())
}

fn facts(task: &Task, now: Timestamp) -> Vec<(&'static str, String)> {
    let zone = &task.schedule.zone;
    let spec = &task.schedule.spec;
    let next = task.next_run.filter(|_| task.status == TaskStatus::Active);
    let tools = match &task.tools {
        None => "tools without side effects".to_owned(),
        Some(tools) if tools.is_empty() => "none".to_owned(),
        Some(tools) => one_line(&tools.join(", ")),
    };
    let deliver_to = task.deliver_to.as_ref().map(|to| match &to.conversation {
        Some(conversation) => one_line(&format!("{} ({conversation})", to.channel)),
        None => one_line(&to.channel),
    });
    let facts = [
        ("Task", Some(task.id.to_string())),
        ("Status", Some(task.status.to_string())),
        ("Schedule", Some(format!("{} {} ({})", spec.kind().as_str(), one_line(spec.value()), zone.name()))),
        ("Next run", next.map(|at| time::next_run(at, now, zone))),
        ("Last run", task.last_run.map(|at| time::in_full(at, zone))),
        ("Created", Some(time::in_full(task.created_at, zone))),
        ("Agent", Some(one_line(&task.agent))),
        ("Tools", Some(tools)),
        ("Key", task.permit.key.as_deref().map(one_line)),
        ("Deliver to", deliver_to),
        ("Retries", Some(task.limits.retries.to_string())),
        ("Timeout", Some(format!("{} s", task.limits.timeout.as_secs()))),
        ("Missed", Some(task.missed.as_str().to_owned())),
        ("Prompt", Some(printable(&task.prompt).into_owned())),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
