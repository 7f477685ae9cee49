//! The schedule of a task: its spec, its time zone, and the next slot. Pure.

use std::fmt;
use std::time::Duration;

use hob_core::Zone;
use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp, Unit};

use crate::cron::CronSpec;
use crate::types::{TaskError, TaskField};

/// The longest interval.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10 * 366 * 86_400);

/// The kinds of schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScheduleType {
    Cron,
    Interval,
    Once,
}

impl ScheduleType {
    pub const ALL: [ScheduleType; 3] = [ScheduleType::Cron, ScheduleType::Interval, ScheduleType::Once];

    pub fn as_str(self) -> &'static str {
        match self {
            ScheduleType::Cron => "cron",
            ScheduleType::Interval => "interval",
            ScheduleType::Once => "once",
        }
    }

    /// Parses the name in the API and the command line.
    pub fn parse(word: &str) -> Result<Self, TaskError> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or_else(|| {
            let shown: String = word.chars().take(60).collect();
            TaskError::invalid(TaskField::ScheduleType, format!("'{shown}' is not cron, interval or once"))
        })
    }
}

pub fn parse_zone(name: &str) -> Result<Zone, TaskError> {
    let name = name.trim();
    Zone::named(name).ok_or_else(|| {
        let shown: String = name.chars().take(60).collect();
        let reason = format!("unknown time zone '{shown}'; use an IANA name such as Europe/Berlin or UTC");
        TaskError::invalid(TaskField::Timezone, reason)
    })
}

/// The kind of schedule and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleSpec {
    /// Boxed, because a parsed expression is large.
    Cron(Box<CronSpec>),
    /// Counted from the creation of the task.
    Interval {
        every: Duration,
        text: String,
    },
    Once {
        at: Timestamp,
        text: String,
    },
}

impl ScheduleSpec {
    /// Parses the value of a schedule. A date without an offset is in `zone`.
    pub fn parse(kind: ScheduleType, value: &str, zone: &Zone) -> Result<Self, TaskError> {
        let text = value.trim();
        let spec = match kind {
            ScheduleType::Cron => CronSpec::parse(text).map(|cron| ScheduleSpec::Cron(Box::new(cron))),
            ScheduleType::Interval => {
                parse_interval(text).map(|every| ScheduleSpec::Interval { every, text: text.to_owned() })
            }
            ScheduleType::Once => {
                parse_date(text, zone).map(|at| ScheduleSpec::Once { at, text: text.to_owned() })
            }
        };
        spec.map_err(|reason| TaskError::invalid(TaskField::ScheduleValue, reason))
    }

    pub fn kind(&self) -> ScheduleType {
        match self {
            ScheduleSpec::Cron(_) => ScheduleType::Cron,
            ScheduleSpec::Interval { .. } => ScheduleType::Interval,
            ScheduleSpec::Once { .. } => ScheduleType::Once,
        }
    }

    /// The value as written.
    pub fn value(&self) -> &str {
        match self {
            ScheduleSpec::Cron(cron) => cron.as_str(),
            ScheduleSpec::Interval { text, .. } | ScheduleSpec::Once { text, .. } => text,
        }
    }
}

impl fmt::Display for ScheduleSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.value())
    }
}

/// Everything that the next slot depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub spec: ScheduleSpec,
    pub zone: Zone,
    /// The origin of intervals.
    pub anchor: Timestamp,
}

impl Schedule {
    /// A schedule that begins now. One without a slot is refused.
    pub fn from_now(kind: ScheduleType, value: &str, zone: Zone, now: Timestamp) -> Result<Self, TaskError> {
        let spec = ScheduleSpec::parse(kind, value, &zone)?;
        let schedule = Schedule { spec, zone, anchor: now };
        if schedule.next_run(now).is_some() {
            return Ok(schedule);
        }
        let reason = match &schedule.spec {
            ScheduleSpec::Once { text, .. } => format!("'{text}' is in the past"),
            other => format!("'{other}' never occurs"),
        };
        Err(TaskError::invalid(TaskField::ScheduleValue, reason))
    }

    /// The first slot later than `after`.
    pub fn next_run(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.spec {
            ScheduleSpec::Cron(cron) => cron.next_after(self.zone.time_zone(), after),
            ScheduleSpec::Interval { every, .. } => next_on_grid(self.anchor, *every, after),
            ScheduleSpec::Once { at, .. } => Some(*at).filter(|at| *at > after),
        }
    }

    /// Whether it can have more than one slot.
    pub fn is_recurring(&self) -> bool {
        !matches!(self.spec, ScheduleSpec::Once { .. })
    }

    /// The next slots after a moment.
    pub fn upcoming(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next_run(after), |slot| self.next_run(*slot))
    }
}

/// Counted from the anchor, so that delays do not add up.
fn next_on_grid(anchor: Timestamp, every: Duration, after: Timestamp) -> Option<Timestamp> {
    let every = i128::try_from(every.as_nanos()).ok().filter(|every| *every > 0)?;
    let passed = after.as_nanosecond().checked_sub(anchor.as_nanosecond())?;
    let steps = (passed.div_euclid(every) + 1).max(1);
    Timestamp::from_nanosecond(anchor.as_nanosecond().checked_add(steps.checked_mul(every)?)?).ok()
}

/// Seconds, or a duration such as `1h 30m`.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let shown: String = text.chars().take(60).collect();
    let every = match text.parse::<f64>() {
        Ok(seconds) if !seconds.is_finite() || seconds <= 0.0 => {
            return Err(format!("an interval of {shown} s is not possible; it must be more than 0"));
        }
        Ok(seconds) => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        Err(_) => {
            let words = text.parse::<SignedDuration>().map_err(|_| {
                format!(
                    "'{shown}' is not an interval; write seconds such as 3600, or a duration such as '1h 30m'"
                )
            })?;
            Duration::try_from(words)
                .ok()
                .filter(|every| !every.is_zero())
                .ok_or_else(|| format!("an interval of {shown} is not possible; it must be more than 0"))?
        }
    };
    if every < Duration::from_secs(1) {
        return Err(format!("an interval of {shown} is too short; the shortest is 1 second"));
    }
    if every > LONGEST_INTERVAL {
        return Err(format!("an interval of {shown} is too long; the longest is ten years"));
    }
    // The stored precision.
    Ok(Duration::from_millis(u64::try_from(every.as_millis()).unwrap_or(u64::MAX)))
}

/// An ISO 8601 date and time. Without an offset, it is local time in the zone.
fn parse_date(text: &str, zone: &Zone) -> Result<Timestamp, String> {
    let as_kept = |at: Timestamp| at.round(Unit::Microsecond).unwrap_or(at);
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(as_kept(at));
    }
    // A date with an offset was parsed above.
    let shown: String = text.chars().take(60).collect();
    let wrong = || {
        format!("'{shown}' is not a date; write one such as 2027-01-31T09:00 or 2027-01-31T09:00:00+01:00")
    };
    let local: DateTime = text.parse().map_err(|_| wrong())?;
    zone.time_zone().to_ambiguous_timestamp(local).compatible().map(as_kept).map_err(|_| wrong())
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
