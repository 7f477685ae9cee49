//! The tools of agents. A tool whose source is not configured does not exist.

mod calendar;
mod feeds;
mod page_changes;
mod weather;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hob_core::{Reach, Tool, ToolError, ToolSpec};
use serde_json::Value;

use crate::service::SourceService;

/// The limit for a call, which may read several sources.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Sources that are read at once.
const CONCURRENT: usize = 4;

/// The tools of the configured sources.
pub fn source_tools(service: &Arc<SourceService>) -> Vec<Arc<dyn Tool>> {
    let options = service.options();
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    if !options.calendars.is_empty() {
        tools.push(Arc::new(calendar::Calendar { service: Arc::clone(service) }));
    }
    if !options.feeds.is_empty() {
        tools.push(Arc::new(feeds::Feeds { service: Arc::clone(service) }));
    }
    if options.weather.is_some() {
        tools.push(Arc::new(weather::Weather { service: Arc::clone(service) }));
    }
    if !options.pages.is_empty() {
        tools.push(Arc::new(page_changes::PageChanges { service: Arc::clone(service) }));
    }
    tools
}

/// The description of a tool that reads the owner's sources.
///
/// No call has an effect for others: the arguments choose among configured names, so nothing of them leaves the machine but which
/// source is read.
fn spec(name: &str, description: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        untrusted_output: true,
        timeout: Some(TIMEOUT),
        ..ToolSpec::new(name, description, Reach::Read, parameters)
    }
}

/// The sources that a call means: the named one, or all.
fn selected<'a, S>(
    sources: &'a [S],
    name_of: impl Fn(&S) -> &str,
    kind: &str,
    wanted: Option<&str>,
) -> Result<Vec<&'a S>, ToolError> {
    let Some(wanted) = wanted.map(str::trim).filter(|wanted| !wanted.is_empty()) else {
        return Ok(sources.iter().collect());
    };
    let found: Vec<&S> = sources.iter().filter(|&source| name_of(source) == wanted).collect();
    if found.is_empty() {
        let names: Vec<&str> = sources.iter().map(name_of).collect();
        let shown: String = wanted.chars().take(60).collect();
        return Err(ToolError::new(format!("there is no {kind} '{shown}'; there are {}", names.join(", "))));
    }
    Ok(found)
}

/// Runs readings, a few at once, and returns their results in order.
async fn read_all<F: Future>(readings: Vec<F>) -> Vec<F::Output> {
    let mut results = Vec::with_capacity(readings.len());
    let mut waiting = readings.into_iter();
    loop {
        let some: Vec<F> = waiting.by_ref().take(CONCURRENT).collect();
        if some.is_empty() {
            return results;
        }
        results.extend(join_all(some).await);
    }
}
