//! `hob tools`: lists, describes and runs the tools of agents. Needs no engine.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use hob_agents::{ToolSet, ToolSetError};
use hob_app::{ToolRegistry, accept_mcp_tools};
use hob_core::{Permit, Reach, RunEvents, ToolCall, ToolRunner, ToolSpec};
use hob_mcp::McpState;
use serde_json::{Map, Value, json};

use crate::answers::ToolTable;
use crate::args::ToolsCommand;
use crate::commands::{block_on, memory};
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::table::{self, Column};
use crate::output::text::{one_line, printable};
use crate::settings;
use crate::signals::Signals;

const COLUMNS: [Column; 3] = [Column::Words("TOOL"), Column::Words("REACH"), Column::Words("DESCRIPTION")];

pub fn run(command: ToolsCommand) -> Result<ExitCode> {
    let config = settings::load()?;
    block_on(async {
        let mut signals = Signals::listen()?;
        if let ToolsCommand::Accept { server } = &command {
            let servers: Vec<&str> = config.mcp.servers.keys().map(String::as_str).collect();
            if !servers.contains(&server.as_str()) {
                bail!("no MCP server '{server}' is configured{}", known(&servers));
            }
            accept_mcp_tools(&settings::home()?, server)?;
        }
        let registry =
            ToolRegistry::open(&config, memory::registry_parts(&config, settings::databases(&config)?)?);
        // Dropping a call stops the tool.
        let outcome = tokio::select! {
            outcome = execute(&registry, &command) => outcome.map(|()| ExitCode::SUCCESS),
            stop = signals.next() => Ok(stop.exit_code()),
        };
        registry.close().await;
        outcome
    })
}

async fn execute(registry: &ToolRegistry, command: &ToolsCommand) -> Result<()> {
    match command {
        ToolsCommand::List { json } => {
            list(&all(registry).await?, (*json).into())?;
            warn_about_withheld(registry);
            Ok(())
        }
        ToolsCommand::Info { name, json } => info(&all_for(registry, name).await?, name, (*json).into()),
        ToolsCommand::Run { name, arguments } => call(&all_for(registry, name).await?, name, arguments).await,
        ToolsCommand::Accept { server } => accept(registry, server).await,
    }
}

/// Printed on stderr, so that programs can parse stdout.
fn warn_about_withheld(registry: &ToolRegistry) {
    for (server, withheld) in registry.withheld() {
        let tools: Vec<String> = withheld
            .iter()
            .map(|tool| format!("{} ({})", one_line(&tool.name), tool.change.as_str()))
            .collect();
        output::warning(format_args!(
            "The MCP server '{server}' changed its tools: {}. They are not offered. Run 'hob tools accept {server}' to \
             accept them.",
            tools.join(", ")
        ));
    }
}

/// Accepts the tools that the server lists now. Its earlier tools were forgotten before the servers started.
async fn accept(registry: &ToolRegistry, server: &str) -> Result<()> {
    {
        let _waiting = Spinner::start("waiting for the MCP servers");
        registry.settled().await;
    }
    let Some(status) = registry.server(server) else { bail!("no MCP server '{server}' is configured") };
    if let McpState::Down { reason } = &status.state {
        bail!(
            "the MCP server '{server}' is not running: {reason}. Its tools are accepted when it next starts."
        );
    }
    let names: Vec<String> = status.tools.iter().map(|tool| one_line(&tool.spec().name)).collect();
    match names.as_slice() {
        [] => output::line(format_args!("The MCP server '{server}' has no tools."))?,
        names => output::line(format_args!("Accepted {} tools: {}", names.len(), names.join(", ")))?,
    }
    Ok(())
}

fn known(servers: &[&str]) -> String {
    match servers {
        [] => String::new(),
        servers => format!("; configured servers: {}", servers.join(", ")),
    }
}

/// All tools, once every MCP server is ready or has failed. The start of a server has a time limit.
async fn all(registry: &ToolRegistry) -> Result<ToolSet> {
    let _waiting = Spinner::start("waiting for the MCP servers");
    registry.settled().await;
    Ok(registry.tools()?)
}

/// The tools, including `name` if it exists. A built-in tool does not wait for the MCP servers.
async fn all_for(registry: &ToolRegistry, name: &str) -> Result<ToolSet> {
    let tools = registry.tools()?;
    if find(&tools, name).is_some() { Ok(tools) } else { all(registry).await }
}

fn find<'a>(tools: &'a ToolSet, name: &str) -> Option<&'a ToolSpec> {
    tools.specs().find(|spec| spec.name == name)
}

pub fn list(tools: &ToolSet, format: OutputFormat) -> Result<()> {
    match format {
        OutputFormat::Json => output::json(&tools.specs().map(describe).collect::<Vec<_>>())?,
        OutputFormat::Text => print_table(&ToolTable::of(tools))?,
    }
    Ok(())
}

/// Prints the tools that there are, and those that are not available.
pub fn print_table(tools: &ToolTable) -> Result<()> {
    table::print(&COLUMNS, &tools.rows)?;
    let absent: Vec<(&str, String)> =
        tools.absent.iter().map(|(name, why)| (name.as_str(), why.clone())).collect();
    if !absent.is_empty() {
        output::line(format_args!("\nNot available:"))?;
        table::print_facts(&absent)?;
    }
    Ok(())
}

fn describe(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "reach": spec.reach.as_str(),
        "effect": spec.effect.as_str(),
        "untrusted_output": spec.untrusted_output,
        "description": spec.description,
        "parameters": spec.parameters,
        "timeout_seconds": spec.timeout.as_ref().map(Duration::as_secs_f64),
    })
}

fn info(tools: &ToolSet, name: &str, format: OutputFormat) -> Result<()> {
    // Reports an unknown name with a suggestion.
    pick(tools, name)?;
    let Some(spec) = find(tools, name) else { return Ok(()) };
    match format {
        OutputFormat::Json => output::json(&describe(spec))?,
        OutputFormat::Text => {
            let reach = match spec.reach {
                Reach::Pure => "pure: computes only",
                Reach::Read => "read: reads private data",
                Reach::Act => "act: changes data or contacts other systems",
            };
            table::print_facts(&[
                ("Tool", one_line(&spec.name)),
                ("Reach", reach.to_owned()),
                ("Description", one_line(&spec.description)),
            ])?;
            let schema = serde_json::to_string_pretty(&spec.parameters)?;
            output::line(format_args!("\n{}", printable(&schema)))?;
        }
    }
    Ok(())
}

/// One tool, with the rights of the local user.
fn pick(tools: &ToolSet, name: &str) -> Result<impl ToolRunner, ToolSetError> {
    let permit = Permit { only: Some(vec![name.to_owned()]), ..Permit::up_to(Reach::Act) };
    tools.for_run(permit, RunEvents::without_subscribers())
}

async fn call(tools: &ToolSet, name: &str, arguments: &str) -> Result<()> {
    let call = ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() };
    let tool = pick(tools, name)?;
    if serde_json::from_str::<Map<String, Value>>(arguments).is_err() {
        bail!(
            "the arguments are not a JSON object. Pass one such as '{}'; 'hob tools info {name}' lists the arguments.",
            example(find(tools, name))
        );
    }
    let result = {
        let _waiting = Spinner::start(format!("running {name}"));
        tool.execute(&call).await
    };
    if !result.success {
        bail!("{}", result.content);
    }
    print(&result.content)?;
    Ok(())
}

/// Arguments of the right shape: the first that the tool takes.
fn example(spec: Option<&ToolSpec>) -> String {
    let properties = spec.and_then(|spec| spec.parameters["properties"].as_object());
    match properties.and_then(|properties| properties.keys().next()) {
        Some(first) => format!("{{\"{}\": …}}", one_line(first)),
        None => "{}".to_owned(),
    }
}

/// A terminal gets no control characters; another program gets the text as it is.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    if out.is_terminal() {
        out.write_all(printable(text).as_bytes())?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    if text.ends_with('\n') { out.flush() } else { writeln!(out) }
}
