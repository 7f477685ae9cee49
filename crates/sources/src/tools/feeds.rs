//! `feeds`: new entries of the owner's feeds.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{NOT_READ, Permit, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{read_all, selected, spec};
use crate::feed::{FeedEntry, newest};
use crate::period;
use crate::service::SourceService;

const DEFAULT_COUNT: usize = 10;

pub(super) struct Feeds {
    pub service: Arc<SourceService>,
}

#[derive(Deserialize)]
struct Arguments {
    feed: Option<String>,
    since: Option<String>,
    count: Option<usize>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    spec(
        "feeds",
        "Lists the newest entries of the user's news feeds.",
        object_schema(
            json!({
                "since": { "type": ["string", "null"], "description": "today, yesterday, or a date such as 2026-03-01" },
                "count": { "type": ["integer", "null"], "minimum": 1, "maximum": 100, "description": "Entries of each feed; 10 by default" },
                "feed": { "type": ["string", "null"], "description": "Name of one feed; all by default" }
            }),
            &[],
        ),
    )
});

#[async_trait]
impl Tool for Feeds {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["count", "feed"]
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        self.call_for(arguments, &Permit::up_to(Reach::Read)).await
    }

    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let Arguments { feed, since, count } = tool_arguments::read(arguments)?;
        let service = &self.service;
        let zone = service.zone_of(permit);
        let since = since.as_deref().filter(|since| !since.trim().is_empty());
        let since = since.map(|since| period::since(since, service.now(), zone));
        let since = since.transpose().map_err(ToolError::new)?;
        let count = count.unwrap_or(DEFAULT_COUNT);
        let feeds = selected(&service.options().feeds, |source| &source.name, "feed", feed.as_deref())?;
        let readings = read_all(feeds.iter().map(|source| service.feed(source)).collect()).await;
        if readings.iter().all(Result::is_err) {
            let reasons: Vec<String> = feeds
                .iter()
                .zip(readings)
                .filter_map(|(source, reading)| Some(format!("{}: {}", source.name, reading.err()?)))
                .collect();
            return Err(ToolError::new(format!("no feed can be read: {}", reasons.join("; "))));
        }
        let mut lines = Vec::new();
        for (source, reading) in feeds.iter().zip(readings) {
            let title = reading.as_ref().map_or("", |feed| feed.title.as_str());
            let name = if source.is_unnamed() && !title.is_empty() { title } else { &source.name };
            lines.push(format!("[{name}]"));
            match reading.map(|feed| newest(feed.entries, since, count)) {
                Ok(entries) if entries.is_empty() => lines.push("No new entries.".to_owned()),
                Ok(entries) => lines.extend(entries.iter().map(|entry| shown(entry, zone.time_zone()))),
                Err(error) => lines.push(format!("{NOT_READ}{}: {error}", source.name)),
            }
        }
        Ok(lines.join("\n"))
    }
}

fn shown(entry: &FeedEntry, zone: &TimeZone) -> String {
    let date = entry
        .date
        .map(|date| format!("{} ", zone.to_datetime(date).strftime("%Y-%m-%d %H:%M")))
        .unwrap_or_default();
    let title = if entry.title.is_empty() { "(no title)" } else { &entry.title };
    let link = entry.link.as_ref().map(|link| format!("\n  {link}")).unwrap_or_default();
    let summary = if entry.summary.is_empty() { String::new() } else { format!("\n  {}", entry.summary) };
    format!("- {date}{title}{link}{summary}")
}
