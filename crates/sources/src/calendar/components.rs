//! Reads the events and zones of a calendar file. Pure.

use jiff::SignedDuration;
use jiff::tz::TimeZone;

use super::content_line::{ContentLine, for_each_line};
use super::time_value::{TimeValue, parse_duration, parse_offset};
use super::zone::{ZoneDefinition, Zones};

/// Events of one file. Further ones are skipped, with a note.
const MAX_EVENTS: usize = 20_000;
/// Dates in the lists of one event.
const MAX_LISTED: usize = 10_000;
/// The longest name of a zone in bytes. Longer ones are cut.
const MAX_ZONE: usize = 256;
/// Characters of a title or a place.
const MAX_TEXT: usize = 300;

/// A date or time, and the zone that the file names for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZonedValue {
    pub value: TimeValue,
    pub zone: Option<String>,
}

/// An event as it is written.
#[derive(Debug, Default)]
pub(super) struct EventComponent {
    pub uid: String,
    pub summary: String,
    pub location: Option<String>,
    pub start: Option<ZonedValue>,
    pub end: Option<ZonedValue>,
    pub duration: Option<SignedDuration>,
    pub rules: Vec<String>,
    pub added: Vec<ZonedValue>,
    pub excluded: Vec<ZonedValue>,
    /// The date of the repeated event that this one replaces.
    pub replaces: Option<ZonedValue>,
    /// Whether it replaces all later dates too.
    pub replaces_later: bool,
    pub is_cancelled: bool,
}

/// The content of a file.
pub(super) struct CalendarFile {
    pub events: Vec<EventComponent>,
    pub zones: Zones,
}

/// Reads a file; `None` if it is no calendar.
pub(super) fn read(text: &str, owner: TimeZone) -> Option<CalendarFile> {
    let mut file = CalendarFile { events: Vec::new(), zones: Zones::new(owner) };
    let mut reading = Reading::default();
    for_each_line(text.trim_start_matches('\u{feff}'), |line| {
        if let Some(line) = ContentLine::parse(line) {
            reading.line(&line, &mut file);
        }
    });
    if reading.skipped > 0 {
        let note =
            format!("The calendar has more than {MAX_EVENTS} events; {} are skipped.", reading.skipped);
        file.zones.notes.insert(note);
    }
    reading.is_calendar.then_some(file)
}

/// The component that is being read.
#[derive(Default)]
enum Current {
    #[default]
    None,
    Event(Box<EventComponent>),
    Zone(ZoneDefinition),
}

#[derive(Default)]
struct Reading {
    is_calendar: bool,
    current: Current,
    /// The components inside the current one, such as alarms.
    inner: Vec<String>,
    skipped: usize,
}

impl Reading {
    fn line(&mut self, line: &ContentLine, file: &mut CalendarFile) {
        let component = || line.value.trim().to_ascii_uppercase();
        match (line.name.as_str(), &mut self.current) {
            ("BEGIN", Current::None) => match component().as_str() {
                "VCALENDAR" => self.is_calendar = true,
                "VEVENT" => self.current = Current::Event(Box::default()),
                "VTIMEZONE" => self.current = Current::Zone(ZoneDefinition::default()),
                _ => {}
            },
            ("BEGIN", _) => self.inner.push(component()),
            ("END", Current::None) => {}
            ("END", _) if self.inner.pop().is_some() => {}
            ("END", _) => match std::mem::take(&mut self.current) {
                Current::Event(_) if file.events.len() >= MAX_EVENTS => self.skipped += 1,
                Current::Event(event) => file.events.push(*event),
                Current::Zone(zone) => file.zones.define(zone),
                Current::None => {}
            },
            (_, Current::Event(event)) if self.inner.is_empty() => set(event, line),
            (_, Current::Zone(zone)) => set_zone(zone, line, &self.inner),
            (_, Current::Event(_) | Current::None) => {}
        }
    }
}

fn set(event: &mut EventComponent, line: &ContentLine) {
    match line.name.as_str() {
        "UID" => event.uid = line.text(MAX_TEXT),
        "SUMMARY" => event.summary = line.text(MAX_TEXT),
        "LOCATION" => event.location = Some(line.text(MAX_TEXT)).filter(|text| !text.is_empty()),
        "DTSTART" => event.start = value(line),
        "DTEND" => event.end = value(line),
        "DURATION" => event.duration = parse_duration(&line.value),
        "RRULE" if event.rules.len() < 8 => event.rules.push(line.value.clone()),
        "RDATE" => add(&mut event.added, line),
        "EXDATE" => add(&mut event.excluded, line),
        "RECURRENCE-ID" => {
            event.replaces = value(line);
            event.replaces_later =
                line.parameter("RANGE").is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
        }
        "STATUS" => event.is_cancelled = line.value.trim().eq_ignore_ascii_case("CANCELLED"),
        _ => {}
    }
}

fn set_zone(zone: &mut ZoneDefinition, line: &ContentLine, inner: &[String]) {
    match (line.name.as_str(), inner) {
        ("TZID", []) => {
            let name = line.value.trim();
            zone.name = name[..name.floor_char_boundary(MAX_ZONE)].to_owned();
        }
        ("X-LIC-LOCATION", []) => zone.location = Some(line.value.trim().to_owned()),
        // The last one is the present rule.
        ("TZOFFSETTO", [part]) if part == "STANDARD" => {
            zone.standard = parse_offset(&line.value).or(zone.standard);
        }
        _ => {}
    }
}

fn value(line: &ContentLine) -> Option<ZonedValue> {
    Some(ZonedValue { value: TimeValue::parse(&line.value)?, zone: zone_of(line) })
}

/// Adds the dates of a list. Of a period, only the start counts.
fn add(list: &mut Vec<ZonedValue>, line: &ContentLine) {
    let zone = zone_of(line);
    let starts = line.value.split(',').map(|text| text.split('/').next().unwrap_or(text));
    let values = starts.filter_map(TimeValue::parse);
    let room = MAX_LISTED.saturating_sub(list.len());
    list.extend(values.take(room).map(|value| ZonedValue { value, zone: zone.clone() }));
}

/// The name of a zone. Each date has a copy of it, so its length has a limit.
fn zone_of(line: &ContentLine) -> Option<String> {
    let name = line.parameter("TZID")?;
    Some(name[..name.floor_char_boundary(MAX_ZONE)].to_owned())
}
