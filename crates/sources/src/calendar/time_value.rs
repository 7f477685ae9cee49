//! Dates, times, durations and offsets as calendar files write them. Pure.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{SignedDuration, Span};

/// The longest duration of an event that is read; a longer one counts as this.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 366);

/// A date, or a date with a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeValue {
    Date(Date),
    /// In the zone of the property, or in none.
    Local(DateTime),
    Utc(DateTime),
}

impl TimeValue {
    /// Reads `20260301`, `20260301T090000` or `20260301T090000Z`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let Some((date, time)) = text.split_once(['T', 't']) else {
            return parse_date(text).map(TimeValue::Date);
        };
        let date = parse_date(date)?;
        match time.strip_suffix(['Z', 'z']) {
            Some(time) => Some(TimeValue::Utc(date.to_datetime(parse_time(time)?))),
            None => Some(TimeValue::Local(date.to_datetime(parse_time(time)?))),
        }
    }
}

fn parse_date(text: &str) -> Option<Date> {
    let [year, month, day] = digits(text, [4, 2, 2])?;
    Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn parse_time(text: &str) -> Option<Time> {
    let [hour, minute, second] = digits(text, [2, 2, 2])?;
    // A leap second counts as the second before it.
    let second = i8::try_from(second).ok()?.min(59);
    Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, second, 0).ok()
}

/// Numbers of fixed lengths that fill the text.
fn digits<const COUNT: usize>(text: &str, lengths: [usize; COUNT]) -> Option<[u32; COUNT]> {
    if text.len() != lengths.iter().sum::<usize>() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut rest = text;
    let mut numbers = [0; COUNT];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let (piece, after) = rest.split_at(length);
        *number = piece.parse().ok()?;
        rest = after;
    }
    Some(numbers)
}

/// Reads a duration such as `PT1H30M`, `P2D` or `P1W`. Negative ones count as none.
pub(super) fn parse_duration(text: &str) -> Option<SignedDuration> {
    let text = text.trim().to_ascii_uppercase();
    let is_negative = text.starts_with('-');
    let body = text.trim_start_matches(['+', '-']).strip_prefix('P')?;
    let (mut seconds, mut number, mut has_unit) = (0_i64, String::new(), false);
    let mut is_time = false;
    for character in body.chars() {
        let unit = match character {
            '0'..='9' => {
                number.push(character);
                continue;
            }
            'T' if !is_time && number.is_empty() => {
                is_time = true;
                continue;
            }
            'W' if !is_time => 604_800,
            'D' if !is_time => 86_400,
            'H' if is_time => 3_600,
            'M' if is_time => 60,
            'S' if is_time => 1,
            _ => return None,
        };
        let count: i64 = number.parse().ok()?;
        seconds = seconds.checked_add(count.checked_mul(unit)?)?;
        number.clear();
        has_unit = true;
    }
    if !has_unit || !number.is_empty() {
        return None;
    }
    let duration = if is_negative { SignedDuration::ZERO } else { SignedDuration::from_secs(seconds) };
    Some(duration.min(LONGEST))
}

/// Shortens a duration to the longest that is read, and makes a negative one zero.
pub(super) fn bounded(duration: SignedDuration) -> SignedDuration {
    duration.clamp(SignedDuration::ZERO, LONGEST)
}

/// Reads an offset such as `+0100` or `-053000`.
pub(super) fn parse_offset(text: &str) -> Option<Offset> {
    let text = text.trim();
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let [hours, minutes, seconds] = match &text[1..] {
        long if long.len() == 6 => digits(long, [2, 2, 2])?,
        short => {
            let [hours, minutes] = digits(short, [2, 2])?;
            [hours, minutes, 0]
        }
    };
    let total = i32::try_from(hours * 3_600 + minutes * 60 + seconds).ok()?;
    Offset::from_seconds(sign * total).ok()
}

/// The date so many days later; `None` outside the years 1 to 9999.
pub(super) fn add_days(date: Date, days: i64) -> Option<Date> {
    let later = date.checked_add(Span::new().try_days(days).ok()?).ok()?;
    (later.year() >= 1).then_some(later)
}

/// Whole days from one date to another.
pub(super) fn days_between(from: Date, to: Date) -> i64 {
    from.duration_until(to).as_hours() / 24
}

#[cfg(test)]
mod tests {
    use jiff::civil::{date, datetime};

    use super::*;

    #[test]
    fn dates_and_times_are_read_and_others_refused() {
        assert_eq!(TimeValue::parse("19970714"), Some(TimeValue::Date(date(1997, 7, 14))));
        let noon = datetime(1997, 7, 14, 12, 30, 15, 0);
        assert_eq!(TimeValue::parse("19970714T123015"), Some(TimeValue::Local(noon)));
        assert_eq!(TimeValue::parse("19970714T123015Z"), Some(TimeValue::Utc(noon)));
        let leap = datetime(1997, 6, 30, 23, 59, 59, 0);
        assert_eq!(TimeValue::parse("19970630T235960Z"), Some(TimeValue::Utc(leap)));
        for bad in
            ["", "1997", "19971314", "19970230", "19970714T", "19970714T250000", "1997071４", "-9970714"]
        {
            assert_eq!(TimeValue::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_are_read_and_bounded() {
        for (text, seconds) in [
            ("P15DT5H0M20S", 15 * 86_400 + 5 * 3_600 + 20),
            ("P7W", 7 * 604_800),
            ("PT1H30M", 5_400),
            ("-PT15M", 0),
            ("P99999W", 24 * 366 * 3_600),
        ] {
            assert_eq!(parse_duration(text), Some(SignedDuration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "P", "PT", "1H", "PT1", "P1H", "PT1D", "P99999999999999999999W", "PTTT1S"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn offsets_have_minutes_and_sometimes_seconds() {
        assert_eq!(parse_offset("-0500").map(Offset::seconds), Some(-18_000));
        assert_eq!(parse_offset("+053045").map(Offset::seconds), Some(19_845));
        for bad in ["", "0500", "+5", "+9900", "+05:00"] {
            assert_eq!(parse_offset(bad), None, "{bad}");
        }
    }

    #[test]
    fn days_are_counted_and_stay_in_the_calendar() {
        assert_eq!(days_between(date(2026, 2, 27), date(2026, 3, 2)), 3);
        assert_eq!(add_days(date(2026, 2, 27), 3), Some(date(2026, 3, 2)));
        assert_eq!(add_days(date(9999, 12, 31), 1), None);
        assert_eq!(add_days(date(2026, 1, 1), i64::MAX), None);
    }
}
