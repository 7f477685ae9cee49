//! Schedules in plain words that repeat within a day by the clock, such as `every 2 hours between 9:00 and 17:00` or `every 15 minutes on
//! weekdays`. Knows nothing of the days. Pure.

use super::vocabulary::{DayTime, Unit, Word};

const HOW_OFTEN: &str = "say how often, as in 'every 2 hours between 9:00 and 17:00'";
const ORDER: &str =
    "name two hours of one day, the earlier one first, as in 'every 2 hours between 9:00 and 17:00'";
const WHOLE_HOURS: &str =
    "minutes are counted from the full hour; write it as in 'every 15 minutes between 9:00 and 17:00'";
const MINUTES: &str =
    "on certain days or hours, the minutes must divide an hour, as in 'every 15 minutes on weekdays'";
const HOURS: &str = "on certain days, the hours must divide a day, as in 'every 2 hours on weekdays'";

/// When it runs within a day, as cron writes it, and the words that name the days.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DayRepeats {
    pub(crate) minutes: String,
    pub(crate) hours: String,
    pub(crate) days: Vec<Word>,
}

/// Reads the words; `None` if they are another schedule. The error is the end of a sentence.
pub(crate) fn day_repeats(words: &[Word]) -> Option<Result<DayRepeats, &'static str>> {
    let mut rest = words.to_vec();
    let every = take_every(&mut rest);
    let hours = take_hours(&mut rest);
    rest.retain(|word| *word != Word::And);
    // Without its hours.
    let is_between = rest.contains(&Word::Between);
    let Some((count, unit)) = every else {
        let is_of_month =
            |word: &Word| matches!(word, Word::Monthly | Word::Unit(Unit::Month) | Word::Ordinal(_));
        let has_hours = hours.is_some() && !rest.iter().any(is_of_month);
        return has_hours.then_some(Err(HOW_OFTEN));
    };
    if hours.is_none()
        && (is_between || rest.is_empty() || rest.iter().any(|word| matches!(word, Word::Time(_))))
    {
        return is_between.then_some(Err(ORDER));
    }
    let fields = match unit {
        Unit::Hour => hour_fields(count, hours),
        _ => minute_fields(count, hours),
    };
    Some(fields.map(|(minutes, hours)| DayRepeats { minutes, hours, days: rest }))
}

fn hour_fields(count: u32, hours: Option<(DayTime, DayTime)>) -> Result<(String, String), &'static str> {
    let Some((first, last)) = hours else {
        return match count {
            1 => Ok(("0".to_owned(), "*".to_owned())),
            2..=12 if 24_u32.is_multiple_of(count) => Ok(("0".to_owned(), format!("*/{count}"))),
            _ => Err(HOURS),
        };
    };
    if count == 0 {
        return Err(HOW_OFTEN);
    }
    if first >= last {
        return Err(ORDER);
    }
    let runs =
        (first.hour..24).step_by(count as usize).filter(|hour| DayTime { hour: *hour, ..first } <= last);
    let hours: Vec<String> = runs.map(|hour| hour.to_string()).collect();
    Ok((first.minute.to_string(), hours.join(",")))
}

/// The last run is before the end.
fn minute_fields(count: u32, hours: Option<(DayTime, DayTime)>) -> Result<(String, String), &'static str> {
    if !(1..=30).contains(&count) || !60_u32.is_multiple_of(count) {
        return Err(MINUTES);
    }
    let minutes = if count == 1 { "*".to_owned() } else { format!("*/{count}") };
    let Some((first, last)) = hours else { return Ok((minutes, "*".to_owned())) };
    if first.minute != 0 || last.minute != 0 {
        return Err(WHOLE_HOURS);
    }
    if first >= last {
        return Err(ORDER);
    }
    let hours = match (first.hour, last.hour - 1) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    Ok((minutes, hours))
}

/// Removes the words that say how often.
fn take_every(words: &mut Vec<Word>) -> Option<(u32, Unit)> {
    for start in 0..words.len() {
        let (found, length) = match words[start..] {
            [Word::Every, Word::Number(count), Word::Unit(unit @ (Unit::Hour | Unit::Minute)), ..] => {
                ((count, unit), 3)
            }
            [Word::Every, Word::Unit(Unit::Minute), ..] => ((1, Unit::Minute), 2),
            [Word::Hourly, ..] => ((1, Unit::Hour), 1),
            _ => continue,
        };
        words.drain(start..start + length);
        return Some(found);
    }
    None
}

/// Removes the words of the first and the last hour.
fn take_hours(words: &mut Vec<Word>) -> Option<(DayTime, DayTime)> {
    let time = |word: Word| match word {
        Word::Time(time) => Some(time),
        Word::Number(hour @ 0..24) => Some(DayTime { hour, minute: 0 }),
        _ => None,
    };
    for start in 0..words.len() {
        let (first, last, length) = match words[start..] {
            [Word::Between, first, Word::To | Word::And, last, ..] => (first, last, 4),
            [first, Word::To, last, ..] => (first, last, 3),
            _ => continue,
        };
        if let (Some(first), Some(last)) = (time(first), time(last)) {
            words.drain(start..start + length);
            return Some((first, last));
        }
    }
    None
}
