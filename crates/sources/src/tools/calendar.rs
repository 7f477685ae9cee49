//! `calendar`: the events of the owner's calendars.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{NOT_READ, Permit, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{read_all, selected, spec};
use crate::calendar::{CalendarEvent, EventTime};
use crate::period;
use crate::service::SourceService;

/// Events that are listed.
const MAX_LISTED: usize = 200;

pub(super) struct Calendar {
    pub service: Arc<SourceService>,
}

#[derive(Deserialize)]
struct Arguments {
    from: Option<String>,
    to: Option<String>,
    calendar: Option<String>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    spec(
        "calendar",
        "Lists the user's calendar events of a period.",
        object_schema(
            json!({
                "from": { "type": ["string", "null"], "description": "today (default), tomorrow, week, or a date such as 2026-03-01" },
                "to": { "type": ["string", "null"], "description": "Last date" },
                "calendar": { "type": ["string", "null"], "description": "Name of one calendar; all by default" }
            }),
            &[],
        ),
    )
});

#[async_trait]
impl Tool for Calendar {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["calendar"]
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        self.call_for(arguments, &Permit::up_to(Reach::Read)).await
    }

    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let Arguments { from, to, calendar } = tool_arguments::read(arguments)?;
        let service = &self.service;
        let zone = service.zone_of(permit);
        let range = period::range(from.as_deref(), to.as_deref(), service.now(), zone);
        let range = range.map_err(ToolError::new)?;
        let calendars =
            selected(&service.options().calendars, |source| &source.name, "calendar", calendar.as_deref())?;
        let readings = calendars.iter().map(|source| service.calendar(source, range, zone)).collect();
        let readings = read_all(readings).await;
        let (mut events, mut notes, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for (source, reading) in calendars.iter().zip(readings) {
            match reading {
                Ok(reading) => {
                    events.extend(reading.events.into_iter().map(|event| (event, source.name.as_str())));
                    let of_source = |note: String| format!("Note: {}: {note}", source.name);
                    notes.extend(reading.notes.into_iter().map(of_source));
                }
                Err(error) => failures.push(format!("{}: {error}", source.name)),
            }
        }
        if failures.len() == calendars.len() {
            return Err(ToolError::new(format!("no calendar can be read: {}", failures.join("; "))));
        }
        // Before the events, of which a long list is cut.
        let failures = failures.into_iter().map(|failure| format!("{NOT_READ}{failure}"));
        let local =
            |moment: Timestamp| zone.time_zone().to_datetime(moment).strftime("%Y-%m-%d %H:%M").to_string();
        let head = format!("Events from {} to {} ({})", local(range.from), local(range.to), zone.name());
        let head = std::iter::once(head).chain(failures).collect();
        Ok(report(head, events, notes, zone.time_zone()))
    }
}

fn report(
    head: Vec<String>,
    mut events: Vec<(CalendarEvent, &str)>,
    notes: Vec<String>,
    zone: &TimeZone,
) -> String {
    events.sort_by_cached_key(|(event, _)| (begin(event, zone), event.summary.clone()));
    let mut lines = head;
    if events.is_empty() {
        lines.push("No events.".to_owned());
    }
    let more = events.len().saturating_sub(MAX_LISTED);
    lines.extend(events.iter().take(MAX_LISTED).map(|(event, source)| line(event, source, zone)));
    if more > 0 {
        lines.push(format!("{more} more events are not listed. Ask for a shorter period."));
    }
    lines.extend(notes);
    lines.join("\n")
}

/// When an event begins. A whole day begins before all its times.
fn begin(event: &CalendarEvent, zone: &TimeZone) -> Timestamp {
    match event.time {
        EventTime::Days { first, .. } => zone.to_timestamp(first.at(0, 0, 0, 0)).unwrap_or(Timestamp::MIN),
        EventTime::Span { start, .. } => start,
    }
}

fn line(event: &CalendarEvent, source: &str, zone: &TimeZone) -> String {
    let time = match event.time {
        EventTime::Days { first, last } if first == last => {
            format!("{}, all day", first.strftime("%a %Y-%m-%d"))
        }
        EventTime::Days { first, last } => {
            format!("{} to {}, all day", first.strftime("%a %Y-%m-%d"), last.strftime("%a %Y-%m-%d"))
        }
        EventTime::Span { start, end } => {
            let (start, end) = (zone.to_datetime(start), zone.to_datetime(end));
            let begin = start.strftime("%a %Y-%m-%d %H:%M");
            if start == end {
                begin.to_string()
            } else if start.date() == end.date() {
                format!("{begin}-{}", end.strftime("%H:%M"))
            } else {
                format!("{begin} to {}", end.strftime("%a %Y-%m-%d %H:%M"))
            }
        }
    };
    let place = event.location.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
    format!("- {time}: {}{place} [{source}]", event.summary)
}
