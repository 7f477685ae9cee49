//! The events of a calendar file between two times, with repeated events as often as they occur. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::components::{CalendarFile, EventComponent, ZonedValue};
use super::expand::{StepBudget, Window, expand};
use super::rule::{RecurrenceRule, RuleProblem};
use super::time_value::{TimeValue, add_days, bounded, days_between};
use super::zone::Zones;

/// Events in a range. Further ones are skipped, with a note.
const MAX_FOUND: usize = 5_000;

/// Notes on a calendar. A hostile one could have one for each event.
const MAX_NOTES: usize = 20;

/// A day, as a margin around ranges, because zones differ by less.
const MARGIN: SignedDuration = SignedDuration::from_hours(24);

/// From the first moment to before the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRange {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// An event that occurs once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarEvent {
    pub summary: String,
    pub location: Option<String>,
    pub time: EventTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTime {
    /// Whole days. The last one is included.
    Days {
        first: Date,
        last: Date,
    },
    Span {
        start: Timestamp,
        end: Timestamp,
    },
}

/// The events of a calendar in a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalendarReading {
    /// In no order.
    pub events: Vec<CalendarEvent>,
    /// What may be missing or wrong, in sentences.
    pub notes: BTreeSet<String>,
}

impl CalendarReading {
    /// Adds a note, unless there are too many.
    fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.insert(note);
        }
    }
}

/// Adds the events of a file in a range to what was found so far. Whole days are days of the owner's zone.
pub(super) fn occurrences(
    file: CalendarFile,
    range: EventRange,
    owner: &TimeZone,
    budget: &mut StepBudget,
    reading: &mut CalendarReading,
) {
    let CalendarFile { events, zones } = file;
    let mut replaced: HashMap<String, Marks> = HashMap::new();
    let mut search = Search { range, owner, zones, budget, reading };
    for event in events.iter().filter(|event| !event.uid.is_empty()) {
        if let Some(date) = &event.replaces {
            let marks = replaced.entry(event.uid.clone()).or_default();
            marks.add(date, &mut search.zones);
        }
    }
    let none = Marks::default();
    for event in events.iter().filter(|event| !event.is_cancelled) {
        let replaced = match event.replaces {
            Some(_) => &none,
            None => replaced.get(&event.uid).unwrap_or(&none),
        };
        search.event(event, replaced);
        if search.reading.events.len() >= MAX_FOUND {
            search.note(format!("Only the first {MAX_FOUND} events are listed."));
            break;
        }
    }
    let Search { zones, reading, .. } = search;
    for note in zones.notes {
        reading.note(note);
    }
}

/// Dates that are excluded or replaced.
#[derive(Default)]
struct Marks {
    moments: HashSet<Timestamp>,
    days: HashSet<Date>,
    /// The days of the moments, for events of whole days.
    days_of_moments: HashSet<Date>,
}

impl Marks {
    fn add(&mut self, date: &ZonedValue, zones: &mut Zones) {
        let (local, zone) = match date.value {
            TimeValue::Date(day) => {
                self.days.insert(day);
                return;
            }
            TimeValue::Local(local) => (local, zones.find(date.zone.as_deref())),
            TimeValue::Utc(local) => (local, TimeZone::UTC),
        };
        self.days_of_moments.insert(local.date());
        self.moments.extend(zone.to_timestamp(local));
    }

    fn has_day(&self, day: Date) -> bool {
        self.days.contains(&day) || self.days_of_moments.contains(&day)
    }

    fn has_moment(&self, moment: Timestamp, day: Date) -> bool {
        self.moments.contains(&moment) || self.days.contains(&day)
    }
}

struct Search<'a> {
    range: EventRange,
    owner: &'a TimeZone,
    zones: Zones,
    budget: &'a mut StepBudget,
    reading: &'a mut CalendarReading,
}

impl Search<'_> {
    fn note(&mut self, note: String) {
        self.reading.note(note);
    }

    fn event(&mut self, event: &EventComponent, replaced: &Marks) {
        let Some(start) = &event.start else {
            self.note("An event without a valid start is skipped.".to_owned());
            return;
        };
        if event.replaces_later {
            self.note(format!(
                "'{}' changes all later dates of a repeated event, of which only the first is shown.",
                title(event)
            ));
        }
        let mut excluded = Marks::default();
        for date in &event.excluded {
            excluded.add(date, &mut self.zones);
        }
        match start.value {
            TimeValue::Date(first) => self.days(event, first, [&excluded, replaced]),
            TimeValue::Local(local) => {
                let zone = self.zones.find(start.zone.as_deref());
                self.spans(event, local, &zone, [&excluded, replaced]);
            }
            TimeValue::Utc(local) => self.spans(event, local, &TimeZone::UTC, [&excluded, replaced]),
        }
    }

    /// An event of whole days.
    fn days(&mut self, event: &EventComponent, first: Date, marks: [&Marks; 2]) {
        let length = match (&event.end, event.duration) {
            (Some(ZonedValue { value: TimeValue::Date(end), .. }), _) => days_between(first, *end),
            (_, Some(duration)) => duration.as_hours() / 24,
            _ => 1,
        };
        let length = length.clamp(1, 366);
        let length_in_hours = SignedDuration::from_hours(length * 24);
        let owner = self.owner.clone();
        let starts = self.starts(event, first.at(0, 0, 0, 0), &owner, length_in_hours);
        for start in starts {
            let first = start.date();
            let Some(after) = add_days(first, length) else { continue };
            let Some(last) = add_days(first, length - 1) else { continue };
            let begin = owner.to_timestamp(first.at(0, 0, 0, 0));
            let end = owner.to_timestamp(after.at(0, 0, 0, 0));
            let (Ok(begin), Ok(end)) = (begin, end) else { continue };
            let is_in_range = begin < self.range.to && end > self.range.from;
            if is_in_range && !marks.iter().any(|marks| marks.has_day(first)) {
                self.found(event, EventTime::Days { first, last });
            }
        }
    }

    /// An event with a time.
    fn spans(&mut self, event: &EventComponent, local: DateTime, zone: &TimeZone, marks: [&Marks; 2]) {
        let Ok(start) = zone.to_timestamp(local) else { return };
        let duration = self.duration(event, start);
        for local in self.starts(event, local, zone, duration) {
            let Ok(start) = zone.to_timestamp(local) else { continue };
            let Ok(end) = start.checked_add(duration) else { continue };
            let is_in_range = start < self.range.to && (end > self.range.from || start >= self.range.from);
            if is_in_range && !marks.iter().any(|marks| marks.has_moment(start, local.date())) {
                self.found(event, EventTime::Span { start, end });
            }
        }
    }

    fn duration(&mut self, event: &EventComponent, start: Timestamp) -> SignedDuration {
        let end = event.end.as_ref().and_then(|end| {
            let (local, zone) = match end.value {
                TimeValue::Date(day) => (day.at(0, 0, 0, 0), self.zones.find(None)),
                TimeValue::Local(local) => (local, self.zones.find(end.zone.as_deref())),
                TimeValue::Utc(local) => (local, TimeZone::UTC),
            };
            zone.to_timestamp(local).ok()
        });
        match (end, event.duration) {
            (Some(end), _) => bounded(start.duration_until(end)),
            (None, Some(duration)) => duration,
            (None, None) => SignedDuration::ZERO,
        }
    }

    /// The local times at which the event may begin in the range.
    fn starts(
        &mut self,
        event: &EventComponent,
        first: DateTime,
        zone: &TimeZone,
        duration: SignedDuration,
    ) -> Vec<DateTime> {
        let from = zone.to_datetime(self.range.from).saturating_sub(duration).saturating_sub(MARGIN);
        let to = zone.to_datetime(self.range.to).saturating_add(MARGIN);
        let window = Window { from, to };
        let mut starts = vec![first];
        for text in &event.rules {
            let rule = match RecurrenceRule::parse(text) {
                Ok(rule) => rule,
                Err(problem) => {
                    self.note(not_followed(event, &problem));
                    continue;
                }
            };
            let until = rule.until.map(|until| match until {
                TimeValue::Date(day) => day.at(23, 59, 59, 0),
                TimeValue::Local(local) => local,
                TimeValue::Utc(local) => {
                    TimeZone::UTC.to_timestamp(local).map_or(local, |moment| zone.to_datetime(moment))
                }
            });
            let expansion = expand(first, &rule, until, window, self.budget);
            if expansion.is_cut {
                self.note(format!("'{}' repeats too often; some of its dates are missing.", title(event)));
            }
            starts.extend(expansion.starts);
        }
        for date in &event.added {
            let local = match date.value {
                TimeValue::Date(day) => day.to_datetime(first.time()),
                TimeValue::Local(local) => local,
                TimeValue::Utc(local) => {
                    TimeZone::UTC.to_timestamp(local).map_or(local, |moment| zone.to_datetime(moment))
                }
            };
            starts.push(local);
        }
        starts.retain(|start| *start >= window.from && *start < window.to);
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    fn found(&mut self, event: &EventComponent, time: EventTime) {
        if self.reading.events.len() < MAX_FOUND {
            self.reading.events.push(CalendarEvent {
                summary: title(event).to_owned(),
                location: event.location.clone(),
                time,
            });
        }
    }
}

fn title(event: &EventComponent) -> &str {
    if event.summary.is_empty() { "(no title)" } else { &event.summary }
}

fn not_followed(event: &EventComponent, problem: &RuleProblem) -> String {
    let reason = match problem {
        RuleProblem::Unsupported(part) => format!("has {part}, which is not supported"),
        RuleProblem::Invalid => "is not valid".to_owned(),
    };
    format!("The rule by which '{}' repeats {reason}; only its first date is known.", title(event))
}
