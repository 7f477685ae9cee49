//! `hob scheduler create`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use hob_app::startup::channels::{ChannelParts, open_channels};
use hob_app::startup::keys::key_service;
use hob_app::startup::tasks::{task_options, task_service};
use hob_app::{Databases, ToolRegistry};
use hob_channels::ChannelService;
use hob_config::Config;
use hob_core::{EventBus, Permit, Reach, RunEvents};
use hob_tasks::{
    DeliverTo, FirstCall, Missed, NewTask, PlainSchedule, Task, TaskError, TaskLimits, TaskService,
    TaskStatus, parse_zone,
};
use serde_json::{Value, json};

use super::schedule_fact::schedule_fact;
use crate::args::{AgentChoice, SchedulerCreateArgs};
use crate::change_notice::{ChangedPart, tell_servers};
use crate::commands::{audit, block_on, memory};
use crate::failure::with_advice;
use crate::output;
use crate::output::OutputFormat;
use crate::output::table::print_facts;
use crate::output::text::one_line;
use crate::output::time;
use crate::settings;

/// The number of upcoming runs to show, so that the user can check the schedule.
const SHOWN_RUNS: usize = 3;

/// Words of prompts that only a tool can answer, what is read, and the tool.
const SUBJECTS: &[(&[&str], &str, &str)] = &[
    (&["notes"], "notes", "memory_search"),
    (&["calendar", "calendars", "appointment", "appointments"], "calendar", "calendar"),
    (&["mail", "mails", "email", "emails", "inbox", "mailbox"], "mail", "mail"),
    (&["news", "headlines", "feeds"], "news", "feeds"),
];

pub fn run(args: SchedulerCreateArgs) -> Result<ExitCode> {
    let config = settings::load()?;
    let format = args.json.into();
    let has_choice = args.tools.is_some() || args.agent.is_some() || !args.first_calls.is_empty();
    let task = wanted(args).map_err(with_advice)?;
    block_on(async {
        let task = save(&config, &settings::databases(&config)?, task, format).await?;
        if !has_choice && format == OutputFormat::Text {
            tip(&task.prompt);
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Without tools, a model makes up what it cannot read.
fn tip(prompt: &str) {
    if let Some((subject, tool)) = subject(prompt) {
        output::note(format_args!(
            "The task uses no tools. If it should read your {subject}, add --tools {tool}, or use a ready task from 'hob recipes'."
        ));
    }
}

/// What a prompt is about, and the tool that reads it.
fn subject(prompt: &str) -> Option<(&'static str, &'static str)> {
    // `e-mail` ends with the word `mail`.
    let prompt = prompt.to_lowercase();
    let mut words = prompt.split(|letter: char| !letter.is_alphanumeric());
    words.find_map(|word| {
        let named = SUBJECTS.iter().find(|(names, ..)| names.contains(&word));
        named.map(|(_, subject, tool)| (*subject, *tool))
    })
}

/// Checks a task, saves it and prints it.
pub(super) async fn save(
    config: &Config,
    databases: &Databases,
    task: NewTask,
    format: OutputFormat,
) -> Result<Task> {
    check_key(config, databases, &task).await?;
    check_tools(config, databases.clone(), &task).await?;
    // Opened only if the task needs one.
    let channels = match &task.deliver_to {
        Some(_) => channels(config, databases)?,
        None => None,
    };
    let service = task_service(databases.hob.clone(), task_options(channels));
    let task = service.create(task).await.map_err(with_advice)?;
    audit::note(databases, "task.create", &task.id.to_string());
    tell_servers(ChangedPart::Tasks);
    print(&task, format)?;
    warn_of_same_name(&service, &task).await?;
    if format == OutputFormat::Text {
        output::note(match config.scheduler.enabled {
            true => "The task runs while 'hob serve' or 'hob scheduler start' is running.",
            false => {
                "The task runs while 'hob scheduler start' is running. 'hob serve' does not run it, because [scheduler] enabled is \
                 false."
            }
        });
    }
    Ok(task)
}

/// Two tasks with one name both run.
async fn warn_of_same_name(service: &TaskService, new: &Task) -> Result<()> {
    let Some(name) = new.name() else { return Ok(()) };
    let active = service.list(Some(TaskStatus::Active)).await.map_err(with_advice)?;
    if let Some(other) = active.iter().find(|task| task.name() == Some(name) && task.id != new.id) {
        output::warning(format_args!(
            "there is another active task '{}', and both run. 'hob scheduler cancel {}' ends the other one",
            one_line(name),
            other.id
        ));
    }
    Ok(())
}

/// Refuses a channel that does not exist, with the names of those that do, and one without a recipient.
pub(super) async fn check_channel(config: &Config, databases: &Databases, channel: &str) -> Result<()> {
    let channels = channels(config, databases)?;
    let to = DeliverTo { channel: channel.to_owned(), conversation: None };
    task_options(channels).deliver.check(to).await?;
    Ok(())
}

fn channels(config: &Config, databases: &Databases) -> Result<Option<Arc<ChannelService>>> {
    let parts = ChannelParts { storage: databases.hob.clone(), events: EventBus::new() };
    Ok(open_channels(config, &settings::home()?, parts)?)
}

/// As typed → as resolved. The local user may use all tools; a key allows less when the task runs.
fn wanted(args: SchedulerCreateArgs) -> Result<NewTask, TaskError> {
    let permit = Permit { key: args.key.map(Into::into), ..Permit::up_to(Reach::Act) };
    let schedule = match args.every {
        Some(words) => PlainSchedule::parse(&words),
        None => PlainSchedule::read(&args.kind.unwrap_or_default(), args.value.unwrap_or_default()),
    };
    let PlainSchedule { kind, value } = schedule?;
    let mut usual = NewTask::new(args.prompt, kind, value, permit);
    if let Some(name) = &args.name {
        usual = usual.named(name);
    }
    if args.show_results {
        usual = usual.showing_results();
    }
    let agent = args.agent.map(|agent| match agent {
        AgentChoice::Agent(agent) => agent.to_string(),
        AgentChoice::None => "none".to_owned(),
    });
    Ok(NewTask {
        timezone: args.timezone.as_deref().map(parse_zone).transpose()?,
        agent: NewTask::agent_for(agent, args.tools.as_deref()),
        model: args.model,
        tools: args.tools,
        first_calls: args.first_calls.iter().map(|call| FirstCall::parse(call)).collect::<Result<_, _>>()?,
        deliver_to: args.channel.map(|channel| DeliverTo { channel, conversation: args.conversation }),
        limits: TaskLimits {
            retries: args.retries.unwrap_or(usual.limits.retries),
            timeout: args.timeout.map_or(usual.limits.timeout, Duration::from_secs),
        },
        missed: args.missed.as_deref().map_or(Ok(Missed::default()), Missed::parse)?,
        ..usual
    })
}

/// Without this check, a wrong key would fail only at the first run.
async fn check_key(config: &Config, databases: &Databases, task: &NewTask) -> Result<()> {
    let Some(name) = task.permit.key.as_deref() else { return Ok(()) };
    let keys = key_service(config, databases.hob.clone());
    keys.reload().await?;
    if keys.valid(name).is_none() {
        bail!("there is no valid key '{}'. 'hob key list' shows the keys.", one_line(name));
    }
    Ok(())
}

/// Without this check, an unknown tool would fail only at the first run.
async fn check_tools(config: &Config, databases: Databases, task: &NewTask) -> Result<()> {
    let first = task.first_calls.iter().map(|call| &call.tool);
    let selected: Vec<String> = task.tools.iter().flatten().chain(first).cloned().collect();
    if selected.is_empty() {
        return Ok(());
    }
    let registry = ToolRegistry::open(config, memory::registry_parts(config, databases)?);
    let permit = Permit { only: Some(selected), ..Permit::up_to(Reach::Act) };
    let mut found = registry.tools()?.for_run(permit.clone(), RunEvents::without_subscribers()).map(drop);
    if found.is_err() {
        // It may be one of an MCP server that is still starting.
        registry.settled().await;
        found = registry.tools()?.for_run(permit, RunEvents::without_subscribers()).map(drop);
    }
    registry.close().await;
    Ok(found?)
}

fn print(task: &Task, format: OutputFormat) -> Result<()> {
    let upcoming: Vec<_> = task.schedule.upcoming(task.created_at).take(SHOWN_RUNS).collect();
    if format == OutputFormat::Json {
        let mut value = serde_json::to_value(task)?;
        if let Value::Object(fields) = &mut value {
            fields.insert(
                "upcoming".to_owned(),
                json!(upcoming.iter().map(ToString::to_string).collect::<Vec<_>>()),
            );
        }
        return Ok(output::json(&value)?);
    }
    let zone = &task.schedule.zone;
    let mut facts = vec![
        ("Task", task.id.to_string()),
        ("Prompt", one_line(&task.prompt)),
        ("Schedule", schedule_fact(&task.schedule)),
    ];
    if let Some(key) = task.permit.key.as_deref() {
        facts.push(("Key", one_line(key)));
    }
    for (number, at) in upcoming.into_iter().enumerate() {
        let name = if number == 0 { "Next runs" } else { "" };
        let away = time::span(at.duration_since(task.created_at));
        facts.push((name, format!("{}, in {away}", time::in_full(at, zone))));
    }
    Ok(print_facts(&facts)?)
}
