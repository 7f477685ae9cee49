//! Cron expressions: the next slot, also across clock changes.
//!
//! `croner` parses the expression and searches in local time, where every day has 24 hours. This file decides about slots on days
//! when the clock changes, because the library's own rule loses slots of expressions with several hours or minutes (`0,30 2 * *
//! *`) when the clock is put forward, and runs them twice when it is put back.

use std::fmt;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// No expression needs more characters.
const LONGEST: usize = 256;

const FORM: &str = "write five fields (minute, hour, day, month, weekday), six with seconds first, or one of \
                    @hourly, @daily, @weekly, @monthly, @yearly";

#[derive(Clone, PartialEq, Eq)]
pub struct CronSpec {
    text: String,
    cron: Cron,
    /// Whether it names no hour. When the clock repeats an hour, such a task runs in both.
    every_hour: bool,
}

impl CronSpec {
    /// Parses an expression. The error has no full stop.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let shown: String = text.chars().take(60).collect();
        let refuse = |reason: String| format!("'{shown}' is not a cron expression: {reason}");
        if text.len() > LONGEST {
            return Err(refuse(format!("it is too long; {FORM}")));
        }
        // A common nickname that the library does not support.
        let known = if text.eq_ignore_ascii_case("@midnight") { "@daily" } else { text };
        let cron = read(known).map_err(refuse)?;
        let every_hour = (0..24).all(|hour| cron.pattern.hour_match(hour).unwrap_or(false));
        Ok(CronSpec { text: text.to_owned(), cron, every_hour })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first slot after `after`; `None` if there is none, as for the 30th of February.
    ///
    /// A time that the clock skips runs after the gap. A time that it shows twice runs the first time only, unless the expression
    /// names no hour.
    pub fn next_after(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let once_each = self.next_on_wall_clock(zone, after);
        if !self.every_hour {
            return once_each;
        }
        let by_the_hand = self.cron.find_next_occurrence(&after.to_zoned(zone.clone()), false).ok();
        let by_the_hand = by_the_hand.map(|next| next.timestamp()).filter(|next| *next > after);
        [once_each, by_the_hand].into_iter().flatten().min()
    }

    /// Searches the slots in local time, each of which is one moment.
    fn next_on_wall_clock(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let mut shown = zone.to_datetime(after);
        loop {
            shown = self.cron.find_next_occurrence(&shown, false).ok()?;
            let moment = moment_of(zone, shown)?;
            // Slots that ran before the clock was put back do not count again.
            if moment > after {
                return Some(moment);
            }
        }
    }
}

impl fmt::Debug for CronSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The parsed form is thousands of bits.
        formatter.debug_tuple("CronSpec").field(&self.text).finish()
    }
}

impl fmt::Display for CronSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The moment of a local time.
fn moment_of(zone: &TimeZone, shown: DateTime) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(shown);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => ambiguous.unambiguous().ok(),
        AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
        AmbiguousOffset::Gap { .. } => {
            // As if the clock had not been put forward: at the change, or shortly after it.
            let unchanged = ambiguous.later().ok()?.checked_add(SignedDuration::from_secs(1)).ok()?;
            zone.preceding(unchanged).next().map(|change| change.timestamp())
        }
    }
}

/// A field, and its valid values.
struct CronField {
    name: &'static str,
    takes: &'static str,
}

/// In order. Seconds are optional.
const FIELDS: [CronField; 6] = [
    CronField { name: "second", takes: "a number from 0 to 59" },
    CronField { name: "minute", takes: "a number from 0 to 59" },
    CronField { name: "hour", takes: "a number from 0 to 23" },
    CronField { name: "day", takes: "a number from 1 to 31" },
    CronField { name: "month", takes: "a number from 1 to 12, or a name such as JAN" },
    CronField {
        name: "weekday",
        takes: "a number from 0 to 7, both of which are Sunday, or a name such as MON",
    },
];

/// Parses an expression. The error names the field, which the library's does not.
fn read(text: &str) -> Result<Cron, String> {
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    if text.starts_with('@') {
        return parser.parse(text).map_err(|_| format!("there is no such nickname; {FORM}"));
    }
    let written: Vec<&str> = text.split_whitespace().collect();
    if !(5..=6).contains(&written.len()) {
        let plural = if written.len() == 1 { "" } else { "s" };
        return Err(format!("it has {} field{plural}; {FORM}", written.len()));
    }
    let fields = &FIELDS[FIELDS.len() - written.len()..];
    let refuse = |index: usize| {
        let CronField { name, takes } = &fields[index];
        format!(
            "its {name} cannot be '{}'. It is {takes}, or several of them, as in 1,5 or 1-5 or */5",
            written[index]
        )
    };
    if let Some(misread) = (0..written.len()).find(|index| is_misread(written[*index], &fields[*index])) {
        return Err(refuse(misread));
    }
    parser.parse(text).map_err(|_| {
        // A wrong field is also wrong if all others are stars.
        let is_wrong = |index: &usize| {
            let alone: Vec<&str> =
                (0..written.len()).map(|at| if at == *index { written[at] } else { "*" }).collect();
            parser.parse(&alone.join(" ")).is_err()
        };
        (0..written.len()).find(is_wrong).map_or_else(|| FORM.to_owned(), refuse)
    })
}

/// Whether the library would misread the field: it accepts names of days and months as numbers, and lists with gaps.
fn is_misread(written: &str, field: &CronField) -> bool {
    let letters: String = written.chars().filter(|letter| letter.is_alphabetic()).collect();
    // `L` and `W` are the last day and the nearest working day.
    let has_names = !["", "L", "W", "LW"].contains(&letters.to_ascii_uppercase().as_str());
    let takes_names = ["month", "weekday"].contains(&field.name);
    written.split(',').any(str::is_empty) || (has_names && !takes_names)
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
