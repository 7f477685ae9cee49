//! Cron expressions: when the next slot comes, on clocks that are put forward and back.
//!
//! `croner` reads the expression and searches on the wall clock, where every day has 24 hours. What becomes of a slot on the
//! days when the clock is changed is decided here, because its own rule loses slots of expressions that name several
//! hours or minutes (`0,30 2 * * *`) when the clock is put forward, and runs them twice when it is put back.

use std::fmt;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// Nobody writes longer ones by hand.
const LONGEST: usize = 256;

const FORM: &str = "write five fields (minute, hour, day, month, weekday), six with seconds first, or one of \
                    @hourly, @daily, @weekly, @monthly, @yearly";

/// A cron expression that was understood.
#[derive(Clone, PartialEq, Eq)]
pub struct CronSpec {
    text: String,
    cron: Cron,
    /// Whether it names no hour in particular. Such a task goes by the hand of the clock: when an hour is repeated, it runs
    /// in both.
    every_hour: bool,
}

impl CronSpec {
    /// Reads an expression. The error is a sentence without a full stop.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let shown: String = text.chars().take(60).collect();
        let refuse = |reason: &str| format!("'{shown}' is no cron expression: {reason}; {FORM}");
        if text.len() > LONGEST {
            return Err(refuse("it is too long"));
        }
        // A nickname of long standing that the library lacks.
        let known = if text.eq_ignore_ascii_case("@midnight") { "@daily" } else { text };
        check_fields(known).map_err(|reason| refuse(&reason))?;
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron = parser.parse(known).map_err(|error| refuse(error.to_string().trim_end_matches('.')))?;
        let every_hour = (0..24).all(|hour| cron.pattern.hour_match(hour).unwrap_or(false));
        Ok(CronSpec { text: text.to_owned(), cron, every_hour })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first slot later than `after`; `None` when there is none, as for the 30th of February.
    ///
    /// A time that the clock skips runs at the moment after the gap. A time that it shows twice runs the first time only,
    /// unless the expression names no hour: then the clock's hand passes twice, and so it runs twice.
    pub fn next_after(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let once_each = self.next_on_wall_clock(zone, after);
        if !self.every_hour {
            return once_each;
        }
        let by_the_hand = self.cron.find_next_occurrence(&after.to_zoned(zone.clone()), false).ok();
        let by_the_hand = by_the_hand.map(|next| next.timestamp()).filter(|next| *next > after);
        [once_each, by_the_hand].into_iter().flatten().min()
    }

    /// Goes through the slots on the wall clock, each of which is one moment.
    fn next_on_wall_clock(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let mut shown = zone.to_datetime(after);
        loop {
            shown = self.cron.find_next_occurrence(&shown, false).ok()?;
            let moment = moment_of(zone, shown)?;
            // Not so for slots that ran before the clock was put back, when it shows them again.
            if moment > after {
                return Some(moment);
            }
        }
    }
}

impl fmt::Debug for CronSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it was read into is thousands of bits.
        formatter.debug_tuple("CronSpec").field(&self.text).finish()
    }
}

impl fmt::Display for CronSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The one moment at which a time of the wall clock counts.
fn moment_of(zone: &TimeZone, shown: DateTime) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(shown);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => ambiguous.unambiguous().ok(),
        AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
        AmbiguousOffset::Gap { .. } => {
            // As if the clock had not been put forward: at the change, or soon after it.
            let unchanged = ambiguous.later().ok()?.checked_add(SignedDuration::from_secs(1)).ok()?;
            zone.preceding(unchanged).next().map(|change| change.timestamp())
        }
    }
}

/// Refuses what the library would read as something else: names of days and months in fields for numbers, and lists with
/// holes.
fn check_fields(text: &str) -> Result<(), String> {
    if text.starts_with('@') {
        return Ok(());
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if !(5..=6).contains(&fields.len()) {
        return Err(format!("it has {} fields", fields.len()));
    }
    if let Some(field) = fields.iter().find(|field| field.split(',').any(str::is_empty)) {
        return Err(format!("the list '{field}' has a hole"));
    }
    // The last two are month and weekday; the one before them knows `L` and `W`.
    for field in &fields[..fields.len() - 2] {
        let letters: String = field.chars().filter(|letter| letter.is_alphabetic()).collect();
        if !["", "L", "W", "LW"].contains(&letters.to_ascii_uppercase().as_str()) {
            return Err(format!("'{field}' is in a field for numbers"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
