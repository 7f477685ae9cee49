//! Reads calendar files (iCalendar, RFC 5545). Pure: knows no network, no disk and no clock.
//!
//! | file | content |
//! |---|---|
//! | `content_line` | lines, parameters and escapes |
//! | `time_value` | dates, times, durations |
//! | `zone` | time zones by their many names |
//! | `components` | events and zones as they are written |
//! | `rule`, `expand` | recurrence rules, and their dates |
//! | `occurrences` | the events of a file between two times |

mod components;
mod content_line;
mod expand;
mod occurrences;
mod rule;
mod time_value;
mod zone;

use jiff::tz::TimeZone;
use thiserror::Error;

use expand::StepBudget;
pub use occurrences::{CalendarEvent, CalendarReading, EventRange, EventTime};

/// Why there are no events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CalendarError {
    #[error("the answer is not a calendar file: it has no BEGIN:VCALENDAR")]
    NotCalendar,
}

/// The events of the files of one calendar in a range. `owner` is the zone of whole days and of times without a zone.
pub(crate) fn read_calendar(
    files: &[String],
    range: EventRange,
    owner: &TimeZone,
) -> Result<CalendarReading, CalendarError> {
    let mut reading = CalendarReading::default();
    // For all files together: a server can send many small ones.
    let mut budget = StepBudget::default();
    for text in files {
        let file = components::read(text, owner.clone()).ok_or(CalendarError::NotCalendar)?;
        occurrences::occurrences(file, range, owner, &mut budget, &mut reading);
    }
    Ok(reading)
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
