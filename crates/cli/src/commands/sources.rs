//! `hob sources`: lists and tries the calendars, feeds, web pages and the weather that agents may read. Needs no engine.

use std::process::ExitCode;

use anyhow::{Result, bail};
use futures::future::join_all;
use hob_app::startup::sources::open_sources;
use hob_sources::{ConfiguredSource, SourceService};
use serde_json::json;

use crate::args::SourcesCommand;
use crate::commands::block_on;
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::settings;
use crate::signals::Signals;

const LISTED: [Column; 3] = [Column::Words("KIND"), Column::Words("NAME"), Column::Words("PLACE")];
const CHECKED: [Column; 4] =
    [Column::Words("KIND"), Column::Words("NAME"), Column::Words("STATE"), Column::Words("RESULT")];

const NONE: &str =
    "No sources are configured. Add calendars, feeds, pages or the weather to [sources] in config.toml.";

pub fn run(command: SourcesCommand) -> Result<ExitCode> {
    let config = settings::load()?;
    let sources = open_sources(&config.sources, settings::databases(&config)?.hob);
    match command {
        SourcesCommand::List { json } => list(sources.as_deref(), json.into()),
        SourcesCommand::Check { name, json } => {
            let Some(sources) = sources else { bail!("{NONE}") };
            let chosen = chosen(&sources, name.as_deref())?;
            block_on(async {
                let mut signals = Signals::listen()?;
                tokio::select! {
                    checked = check(&sources, &chosen, json.into()) => checked,
                    stop = signals.next() => Ok(stop.exit_code()),
                }
            })
        }
    }
}

fn list(sources: Option<&SourceService>, format: OutputFormat) -> Result<ExitCode> {
    let listed = sources.map(SourceService::list).unwrap_or_default();
    match format {
        OutputFormat::Json => {
            let entry = |source: &ConfiguredSource| json!({ "kind": source.kind.as_str(), "name": source.name, "place": source.place });
            output::json(&listed.iter().map(entry).collect::<Vec<_>>())?;
        }
        OutputFormat::Text if listed.is_empty() => output::note(NONE),
        OutputFormat::Text => {
            let row = |source: &ConfiguredSource| {
                vec![source.kind.as_str().to_owned(), one_line(&source.name), one_line(&source.place)]
            };
            table::print(&LISTED, &listed.iter().map(row).collect::<Vec<_>>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The sources with a name, or all. Sources of several kinds may have the same name.
fn chosen(sources: &SourceService, name: Option<&str>) -> Result<Vec<ConfiguredSource>> {
    let mut listed = sources.list();
    if let Some(name) = name {
        let names: Vec<String> = listed.iter().map(|source| source.name.clone()).collect();
        listed.retain(|source| source.name == name);
        if listed.is_empty() {
            bail!("there is no source '{name}'; there are {}", names.join(", "));
        }
    }
    Ok(listed)
}

async fn check(
    sources: &SourceService,
    chosen: &[ConfiguredSource],
    format: OutputFormat,
) -> Result<ExitCode> {
    let results = {
        let _waiting = Spinner::start("reading the sources");
        join_all(chosen.iter().map(|source| sources.check(source))).await
    };
    let checked: Vec<(&ConfiguredSource, Result<String, String>)> = chosen
        .iter()
        .zip(results)
        .filter_map(|(source, result)| Some((source, result?.map_err(|error| error.to_string()))))
        .collect();
    match format {
        OutputFormat::Json => {
            let entry = |(source, result): &(&ConfiguredSource, Result<String, String>)| {
                let (Ok(message) | Err(message)) = result;
                json!({
                    "kind": source.kind.as_str(),
                    "name": source.name,
                    "place": source.place,
                    "ok": result.is_ok(),
                    "message": message,
                })
            };
            output::json(&checked.iter().map(entry).collect::<Vec<_>>())?;
        }
        OutputFormat::Text => {
            let row = |(source, result): &(&ConfiguredSource, Result<String, String>)| {
                let (Ok(message) | Err(message)) = result;
                let state = if result.is_ok() { "ok" } else { "failed" };
                vec![
                    source.kind.as_str().to_owned(),
                    one_line(&source.name),
                    state.to_owned(),
                    one_line(message),
                ]
            };
            table::print(&CHECKED, &checked.iter().map(row).collect::<Vec<_>>())?;
        }
    }
    let has_failed = checked.iter().any(|(_, result)| result.is_err());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
