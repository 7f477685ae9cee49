//! The times that a model may write: words such as `today`, dates, and dates with a time. Pure.

use hob_core::Zone;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};
use thiserror::Error;

use crate::calendar::EventRange;

/// The longest range of events.
const MAX_DAYS: i32 = 366;

/// Why a time cannot be used, in words that help the model to correct it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum PeriodError {
    #[error("'{0}' is not a time; use today, tomorrow, week, a date such as 2026-03-01, or 2026-03-01T09:00")]
    NotTime(String),
    #[error("the end must be after the beginning")]
    Backwards,
    #[error("the range may have at most {MAX_DAYS} days")]
    TooLong,
    #[error("'to' can only follow a date in 'from'")]
    EndOfWord,
}

/// The range that `from` and `to` describe. Without both it is today. An end that is a date includes that day.
pub(crate) fn range(
    from: Option<&str>,
    to: Option<&str>,
    now: Timestamp,
    zone: &Zone,
) -> Result<EventRange, PeriodError> {
    let zone = zone.time_zone();
    let today = zone.to_datetime(now).date();
    let from = from.map(str::trim).filter(|from| !from.is_empty());
    let to = to.map(str::trim).filter(|to| !to.is_empty());
    let word = match from.map(str::to_ascii_lowercase).as_deref() {
        None | Some("today") => Some((0, 1)),
        Some("tomorrow") => Some((1, 2)),
        Some("week") => Some((0, 7)),
        Some(_) => None,
    };
    let range = match (word, from, to) {
        (Some((first, last)), _, None) => {
            EventRange { from: begin_of(today, first, zone), to: begin_of(today, last, zone) }
        }
        // From now on, to a date.
        (Some((first, _)), None | Some("today" | "tomorrow"), Some(to)) => {
            EventRange { from: begin_of(today, first, zone), to: end(to, zone)? }
        }
        (Some(_), _, Some(_)) => return Err(PeriodError::EndOfWord),
        (None, from, to) => {
            let from = from.unwrap_or_default();
            let last = match to {
                Some(to) => end(to, zone)?,
                None => end(from, zone)?,
            };
            let is_moment = to.is_none() && parse_date(from).is_none();
            let first = beginning(from, zone)?;
            // A time without an end is the rest of its day.
            let last = if is_moment { begin_of(zone.to_datetime(first).date(), 1, zone) } else { last };
            EventRange { from: first, to: last }
        }
    };
    if range.to <= range.from {
        return Err(PeriodError::Backwards);
    }
    let longest = SignedDuration::from_hours(i64::from(MAX_DAYS) * 24 + 1);
    if range.from.duration_until(range.to) > longest {
        return Err(PeriodError::TooLong);
    }
    Ok(range)
}

/// The time that `since` describes.
pub(crate) fn since(text: &str, now: Timestamp, zone: &Zone) -> Result<Timestamp, PeriodError> {
    let zone = zone.time_zone();
    let today = zone.to_datetime(now).date();
    match text.trim().to_ascii_lowercase().as_str() {
        "today" => Ok(begin_of(today, 0, zone)),
        "yesterday" => Ok(begin_of(today, -1, zone)),
        "week" => Ok(begin_of(today, -7, zone)),
        _ => beginning(text.trim(), zone),
    }
}

/// The first moment of a day so many days later.
fn begin_of(date: Date, days: i32, zone: &TimeZone) -> Timestamp {
    let day = date.saturating_add(Span::new().days(days));
    let start = day.to_zoned(zone.clone()).and_then(|day| day.start_of_day());
    start.map_or(Timestamp::MAX, |start| start.timestamp())
}

fn beginning(text: &str, zone: &TimeZone) -> Result<Timestamp, PeriodError> {
    if let Some(date) = parse_date(text) {
        return Ok(begin_of(date, 0, zone));
    }
    moment(text, zone).ok_or_else(|| not_time(text))
}

fn end(text: &str, zone: &TimeZone) -> Result<Timestamp, PeriodError> {
    if let Some(date) = parse_date(text) {
        return Ok(begin_of(date, 1, zone));
    }
    moment(text, zone).ok_or_else(|| not_time(text))
}

fn parse_date(text: &str) -> Option<Date> {
    // Jiff would also read the date of a longer text.
    text.parse().ok().filter(|_| text.len() == 10)
}

fn moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let local: DateTime = text.parse().ok()?;
    zone.to_timestamp(local).ok()
}

fn not_time(text: &str) -> PeriodError {
    PeriodError::NotTime(text.chars().filter(|character| !character.is_control()).take(40).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Zone {
        Zone::named("Europe/Berlin").unwrap()
    }

    /// 23:30 on Saturday, 28 March 2026 in Berlin, in the night before clocks change.
    fn now() -> Timestamp {
        "2026-03-28T22:30:00Z".parse().unwrap()
    }

    fn shown(from: Option<&str>, to: Option<&str>) -> String {
        match range(from, to, now(), &berlin()) {
            Ok(EventRange { from, to }) => format!("{from} {to}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn words_are_days_of_the_owner() {
        assert_eq!(shown(None, None), "2026-03-27T23:00:00Z 2026-03-28T23:00:00Z");
        assert_eq!(shown(Some(" Today "), None), shown(None, None));
        assert_eq!(shown(Some("tomorrow"), None), "2026-03-28T23:00:00Z 2026-03-29T22:00:00Z");
        assert_eq!(shown(Some("week"), None), "2026-03-27T23:00:00Z 2026-04-03T22:00:00Z");
    }

    #[test]
    fn dates_include_their_last_day_and_times_are_exact() {
        assert_eq!(shown(Some("2026-03-01"), None), "2026-02-28T23:00:00Z 2026-03-01T23:00:00Z");
        assert_eq!(
            shown(Some("2026-03-01"), Some("2026-03-02")),
            "2026-02-28T23:00:00Z 2026-03-02T23:00:00Z"
        );
        assert_eq!(shown(Some("2026-03-01T09:00"), None), "2026-03-01T08:00:00Z 2026-03-01T23:00:00Z");
        assert_eq!(
            shown(Some("2026-03-01T09:00:00Z"), Some("2026-03-01T12:00")),
            "2026-03-01T09:00:00Z 2026-03-01T11:00:00Z"
        );
        assert_eq!(shown(None, Some("2026-03-29")), "2026-03-27T23:00:00Z 2026-03-29T22:00:00Z");
    }

    #[test]
    fn what_is_no_range_is_said() {
        assert!(shown(Some("soon"), None).starts_with("'soon' is not a time"));
        assert!(shown(Some("2026-13-01"), None).contains("is not a time"));
        assert_eq!(shown(Some("2026-03-02"), Some("2026-03-01")), PeriodError::Backwards.to_string());
        assert_eq!(shown(Some("2026-01-01"), Some("2028-01-01")), PeriodError::TooLong.to_string());
        assert_eq!(shown(Some("week"), Some("2026-03-29")), PeriodError::EndOfWord.to_string());
        assert!(!shown(Some("9999-12-30"), Some("9999-12-31")).is_empty());
    }

    #[test]
    fn since_is_a_word_or_a_time() {
        let since = |text| since(text, now(), &berlin()).map(|moment| moment.to_string());
        assert_eq!(since("yesterday").as_deref(), Ok("2026-03-26T23:00:00Z"));
        assert_eq!(since("2026-03-01").as_deref(), Ok("2026-02-28T23:00:00Z"));
        assert!(since("recently").is_err());
    }
}
