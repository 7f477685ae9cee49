//! Schedules in plain words, such as `weekdays 07:00`. Pure.

use std::collections::BTreeSet;

use hob_core::Zone;
use jiff::civil::Date;

use crate::schedule::{ScheduleSpec, ScheduleType};
use crate::schedule_vocabulary::{
    DayPart, DayTime, Half, KNOWN, Unit, Word, as_part, as_time, clock, clock_in, is_like_time, known,
    ordinal, small_number, words,
};
use crate::types::{TaskError, TaskField};

/// The name that stands before a schedule in plain words, where others have their kind.
const EVERY: &str = "every";

/// No schedule needs more characters.
const LONGEST: usize = 200;

const EXAMPLES: &str = "'weekdays 07:00', 'daily 7:30', 'monday and thursday 18:00', 'every 15 minutes', 'hourly', \
                        'monthly on the 1st 09:00' or 'first monday 09:00', or a date for a single run, such as \
                        '2027-01-31 09:00'";

/// Why a time does not fit the part of the day.
const OTHER_PART: &str =
    "the time is in another part of the day; write it as in 'daily 19:00' or 'daily 7pm'";

/// Why days with times of their own are no schedule.
const DIFFERENT_TIMES: &str = "a task cannot have different times on different days; create a task for each";

/// A schedule in plain words, as the kind and the value that a task has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainSchedule {
    pub kind: ScheduleType,
    pub value: String,
}

impl PlainSchedule {
    /// Reads a schedule as callers write it: `every` with plain words, or a kind with its value.
    pub fn read(kind: &str, value: String) -> Result<Self, TaskError> {
        if kind == EVERY {
            return PlainSchedule::parse(&value);
        }
        let kind = ScheduleType::parse(kind).map_err(|_| {
            let shown: String = kind.chars().take(60).collect();
            let reason = format!("'{shown}' is not every, cron, interval or once");
            TaskError::invalid(TaskField::ScheduleType, reason)
        })?;
        Ok(PlainSchedule { kind, value })
    }

    /// Parses words such as `weekdays 07:00`. The error has examples, and the schedule that was probably meant.
    pub fn parse(text: &str) -> Result<Self, TaskError> {
        let refuse = |reason: String| TaskError::invalid(TaskField::ScheduleValue, reason);
        let text = text.trim();
        let shown: String = text.chars().filter(|letter| !letter.is_control()).take(60).collect();
        if text.is_empty() {
            return Err(refuse(format!("the schedule is empty; write one such as {EXAMPLES}")));
        }
        if text.len() > LONGEST {
            return Err(refuse(format!(
                "'{shown}' and more is too long; write a schedule such as {EXAMPLES}"
            )));
        }
        let words = words(text);
        let schedule = meaning(&words).map_err(|problem| refuse(problem.told(&shown, &words)))?;
        // The zone decides when a date is, not whether it is one.
        ScheduleSpec::parse(schedule.kind, &schedule.value, &Zone::UTC)
            .map_err(|error| refuse(error.to_string()))?;
        Ok(schedule)
    }
}

/// Why words are no schedule.
enum WordProblem {
    /// No schedule has such words, or not in this order.
    Unclear,
    NoTime,
    /// A word that looks like a time and is none.
    BadTime(String),
    /// The reason, as the end of a sentence.
    Refused(&'static str),
}

impl WordProblem {
    fn told(&self, shown: &str, words: &[String]) -> String {
        match self {
            WordProblem::NoTime => {
                let is_late = words.iter().filter_map(|word| as_part(known(word)?)).any(|part| !part.has(9));
                let time = if is_late { "21:00" } else { "09:00" };
                format!("'{shown}' has no time of day; add one, as in '{shown} {time}'")
            }
            WordProblem::BadTime(time) => {
                let time: String = time.chars().take(20).collect();
                format!("'{time}' is not a time of day; write one from 00:00 to 23:59, as in 'daily 07:30'")
            }
            WordProblem::Refused(reason) => format!("'{shown}' is not possible: {reason}"),
            WordProblem::Unclear => {
                let meant = nearest(words).or_else(|| with_every(words)).or_else(|| with_minutes(words));
                let meant = meant.map(|meant| format!(" Did you mean '{meant}'?"));
                let meant = meant.unwrap_or_default();
                format!("'{shown}' is not a schedule.{meant} Write one such as {EXAMPLES}")
            }
        }
    }
}

fn meaning(words: &[String]) -> Result<PlainSchedule, WordProblem> {
    if let Some(date) = date(words)? {
        return Ok(PlainSchedule { kind: ScheduleType::Once, value: date });
    }
    let all = read_words(words)?;
    let times: BTreeSet<DayTime> = all.iter().filter_map(|word| as_time(*word)).collect();
    let has_times_per_day = times.len() > 1 && has_day_between_times(&all);
    let parts: Vec<DayPart> = all.iter().filter_map(|word| as_part(*word)).collect();
    let is_other = |word: &Word| as_time(*word).is_none() && as_part(*word).is_none();
    let mut rest: Vec<Word> = all.into_iter().filter(is_other).collect();
    if !parts.is_empty() {
        if times.is_empty() {
            // The number of 'every morning 7' is probably a time.
            let has_number = rest.iter().any(|word| matches!(word, Word::Number(_)));
            return Err(if has_number { WordProblem::Unclear } else { WordProblem::NoTime });
        }
        if times.iter().any(|time| !parts.iter().any(|part| part.has(time.hour))) {
            return Err(WordProblem::Refused(OTHER_PART));
        }
        // 'friday night at 1am' probably means Saturday.
        let is_after_midnight = |time: &DayTime| {
            time.hour < 6 && parts.iter().all(|part| *part == DayPart::Night || !part.has(time.hour))
        };
        let is_every_day = matches!(
            rest.as_slice(),
            [] | [Word::Daily | Word::Every] | [Word::Every, Word::Unit(Unit::Day)]
        );
        if !is_every_day && times.iter().any(is_after_midnight) {
            return Err(WordProblem::Refused(
                "after midnight it is the next day; write that day, as in 'saturday 01:00'",
            ));
        }
    }
    let is_interval = matches!(rest.as_slice(), [Word::Every, Word::Number(_), Word::Unit(_)]);
    let is_monthly = !is_interval
        && (take(&mut rest, &[Word::Every, Word::Unit(Unit::Month)])
            || take(&mut rest, &[Word::Monthly])
            || take(&mut rest, &[Word::Unit(Unit::Month)]));
    let is_weekly =
        take(&mut rest, &[Word::Every, Word::Unit(Unit::Week)]) || take(&mut rest, &[Word::Weekly]);
    let cron = |days: &str, weekdays: &str| match has_times_per_day {
        true => Err(WordProblem::Refused(DIFFERENT_TIMES)),
        false => cron(&times, days, weekdays),
    };
    match rest.as_slice() {
        [] if is_monthly => Err(WordProblem::Refused("name the day, as in 'monthly on the 1st 09:00'")),
        [] if is_weekly => Err(WordProblem::Refused("name the day, as in 'monday 09:00'")),
        [] | [Word::Daily] | [Word::Every, Word::Unit(Unit::Day)] => cron("*", "*"),
        // Such as 'every morning at 7'.
        [Word::Every] if !parts.is_empty() && !is_monthly && !is_weekly => cron("*", "*"),
        [Word::Hourly] | [Word::Every, Word::Unit(Unit::Hour)] if times.is_empty() => {
            Ok(PlainSchedule { kind: ScheduleType::Cron, value: "0 * * * *".to_owned() })
        }
        [Word::Every, Word::Unit(unit)] if times.is_empty() => interval(1, *unit),
        [Word::Every, Word::Number(count), Word::Unit(unit)] if times.is_empty() => interval(*count, *unit),
        [Word::Every, Word::Number(_), Word::Unit(_)] => {
            Err(WordProblem::Refused("an interval has no time of day; name days, or leave the time out"))
        }
        [Word::Last, Word::Unit(Unit::Day)] => cron("L", "*"),
        [Word::Last, Word::Day(day)] | [Word::Every, Word::Last, Word::Day(day)] => {
            cron("*", &format!("{day}#L"))
        }
        // 'every second Monday' may also mean every other week.
        [Word::Ordinal(nth), Word::Day(day)] if (1..=5).contains(nth) => cron("*", &format!("{day}#{nth}")),
        [Word::Every, Word::Ordinal(1), Word::Day(day)] => cron("*", &format!("{day}#1")),
        days if is_monthly || matches!(days, [Word::Ordinal(_), ..]) => {
            cron(&days_of_month(days).ok_or(WordProblem::Unclear)?, "*")
        }
        days => cron("*", &weekdays(days).ok_or(WordProblem::Unclear)?),
    }
}

/// Whether different days stand between times or on both sides of them, as in `monday 9:00 and thursday 18:00`: then not every time is
/// meant for every day.
fn has_day_between_times(words: &[Word]) -> bool {
    let is_time = |word: &Word| as_time(*word).is_some();
    let is_day = |word: &Word| {
        matches!(
            word,
            Word::Daily
                | Word::Weekdays
                | Word::Weekends
                | Word::Last
                | Word::Day(_)
                | Word::Ordinal(_)
                | Word::Number(_)
                | Word::Unit(Unit::Day)
        )
    };
    let (Some(first), Some(last)) = (words.iter().position(is_time), words.iter().rposition(is_time)) else {
        return false;
    };
    let days: Vec<Word> = words.iter().copied().filter(is_day).collect();
    let are_different = days.windows(2).any(|pair| pair[0] != pair[1]);
    are_different && words[first..].iter().any(is_day) && words[..last].iter().any(is_day)
}

/// A date with a time, if the words begin with a date.
fn date(words: &[String]) -> Result<Option<String>, WordProblem> {
    let mut words = words.iter().filter(|word| known(word) != Some(Word::Filler));
    let Some(first) = words.next() else { return Ok(None) };
    let (day, time) = match first.split_once('t') {
        Some((day, time)) => (day, Some(time)),
        None => (first.as_str(), None),
    };
    if day.parse::<Date>().is_err() {
        return Ok(None);
    }
    let behind: Vec<&str> = words.map(String::as_str).collect();
    let shown = |time: Option<DayTime>| -> Result<String, WordProblem> {
        let DayTime { hour, minute } = time.ok_or(WordProblem::Unclear)?;
        Ok(format!("{hour:02}:{minute:02}"))
    };
    let time = match (time, behind.as_slice()) {
        (Some(time), []) => time.to_uppercase(),
        (None, []) => return Err(WordProblem::NoTime),
        (None, [time]) => shown(clock(time, None))?,
        (None, [time, half]) => {
            let half = Half::parse(half).ok_or(WordProblem::Unclear)?;
            shown(clock(time, Some(half)))?
        }
        (None, [time, "in", part]) => {
            shown(known(part).and_then(as_part).and_then(|part| clock_in(time, part)))?
        }
        _ => return Err(WordProblem::Unclear),
    };
    Ok(Some(format!("{day}T{time}")))
}

/// The meaning of each word, without fillers.
fn read_words(words: &[String]) -> Result<Vec<Word>, WordProblem> {
    let mut read: Vec<Word> = Vec::new();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let part_of = |word: &str| as_part(known(word)?);
    let mut left = words.as_slice();
    let mut is_after_at = false;
    while let [word, rest @ ..] = left {
        let word = *word;
        left = rest;
        let number = word.parse::<u32>().ok().filter(|_| !word.starts_with('+'));
        let (half, part, length) = match rest {
            ["in", "the", part, ..] => (None, part_of(part), 3),
            // The number of 'on the 15 at night 22:00' is a day.
            ["at", "night", ..] if number.is_none() || is_after_at => (None, Some(DayPart::Night), 2),
            [next, ..] => (Half::parse(next), None, 1),
            [] => (None, None, 0),
        };
        let meaning = match known(word) {
            // Behind a number it is a unit.
            Some(Word::Ordinal(2)) if matches!(read.last(), Some(Word::Number(_))) => {
                Word::Unit(Unit::Second)
            }
            Some(word) => word,
            // Such as 'weekdays in the morning at 7:30'.
            None if word == "in" && matches!(rest, ["the", part, ..] if part_of(part).is_some()) => {
                Word::Filler
            }
            None => {
                // Such as 'every evening at 7'. In 'every evening at 13:00' the time is clear.
                let is_in_evening = half.is_none()
                    && read.iter().filter_map(|word| as_part(*word)).eq([DayPart::Evening])
                    && match number {
                        Some(_) => is_after_at,
                        None => clock_in(word, DayPart::Evening).is_some(),
                    };
                let time = match part.or(is_in_evening.then_some(DayPart::Evening)) {
                    Some(part) if clock(word, None).is_some() => {
                        Some(clock_in(word, part).ok_or(WordProblem::Refused(OTHER_PART))?)
                    }
                    _ => clock(word, half),
                };
                match (time, number) {
                    (Some(time), None) => Word::Time(time),
                    (Some(time), Some(_)) if half.is_some() || part.is_some() || is_after_at => {
                        Word::Time(time)
                    }
                    (_, Some(number)) => Word::Number(number),
                    (None, None) if is_like_time(word) => return Err(WordProblem::BadTime(word.to_owned())),
                    (None, None) => Word::Ordinal(ordinal(word).ok_or(WordProblem::Unclear)?),
                }
            }
        };
        let is_written_time = matches!(meaning, Word::Time(_)) && known(word).is_none();
        // The night is read again as a part of the day: after midnight it is the next day.
        if is_written_time && (half.is_some() || part.is_some_and(|part| part != DayPart::Night)) {
            left = rest.get(length..).unwrap_or_default();
        }
        is_after_at = word == "at";
        if meaning != Word::Filler {
            read.push(meaning);
        }
    }
    Ok(read)
}

/// Removes these words, if they stand together.
fn take(words: &mut Vec<Word>, wanted: &[Word]) -> bool {
    let place = words.windows(wanted.len()).position(|window| window == wanted);
    if let Some(start) = place {
        words.drain(start..start + wanted.len());
    }
    place.is_some()
}

/// The days of a month, as cron writes them.
fn days_of_month(days: &[Word]) -> Option<String> {
    let day = |word: &Word| match word {
        Word::Ordinal(day) | Word::Number(day) => Some(*day).filter(|day| (1..=31).contains(day)),
        _ => None,
    };
    let days: BTreeSet<u32> = days.iter().map(day).collect::<Option<_>>()?;
    Some(days.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
}

/// The days of a week, as cron writes them: from Monday, and Sunday is 0.
fn weekdays(days: &[Word]) -> Option<String> {
    // Monday is 0 here, so that they are in order.
    let mut found = BTreeSet::new();
    let place = |day: u8| (day + 6) % 7;
    let mut words = days.iter().copied().peekable();
    while let Some(word) = words.next() {
        match word {
            Word::Every => {}
            Word::Weekdays => found.extend(0..5),
            Word::Weekends => found.extend(5..7),
            Word::Day(from) if words.peek() == Some(&Word::To) => {
                words.next();
                let Some(Word::Day(to)) = words.next() else { return None };
                let length = (place(to) + 7 - place(from)) % 7;
                found.extend((0..=length).map(|step| (place(from) + step) % 7));
            }
            Word::Day(day) => {
                found.insert(place(day));
            }
            _ => return None,
        }
    }
    match found.iter().copied().collect::<Vec<u8>>().as_slice() {
        [] => None,
        [0, 1, 2, 3, 4] => Some("1-5".to_owned()),
        [0, 1, 2, 3, 4, 5, 6] => Some("*".to_owned()),
        some => Some(some.iter().map(|day| ((day + 1) % 7).to_string()).collect::<Vec<_>>().join(",")),
    }
}

/// An expression for these times on these days.
fn cron(times: &BTreeSet<DayTime>, days: &str, weekdays: &str) -> Result<PlainSchedule, WordProblem> {
    let minutes: BTreeSet<u32> = times.iter().map(|time| time.minute).collect();
    let minute = match minutes.iter().copied().collect::<Vec<u32>>().as_slice() {
        [] => return Err(WordProblem::NoTime),
        [minute] => *minute,
        _ => {
            return Err(WordProblem::Refused("the minutes of its times differ; create a task for each time"));
        }
    };
    let hours: Vec<String> = times.iter().map(|time| time.hour.to_string()).collect();
    let value = format!("{minute} {} {days} * {weekdays}", hours.join(","));
    Ok(PlainSchedule { kind: ScheduleType::Cron, value })
}

fn interval(count: u32, unit: Unit) -> Result<PlainSchedule, WordProblem> {
    let count = u64::from(count);
    let value = match unit {
        Unit::Second => format!("{count}s"),
        Unit::Minute => format!("{count}m"),
        Unit::Hour => format!("{count}h"),
        Unit::Day => format!("{}h", count * 24),
        Unit::Week => format!("{}h", count * 24 * 7),
        Unit::Month => return Err(WordProblem::Refused("name the day, as in 'monthly on the 1st 09:00'")),
    };
    Ok(PlainSchedule { kind: ScheduleType::Interval, value })
}

/// The schedule that was probably meant: each unknown word replaced by the most similar known one.
fn nearest(words: &[String]) -> Option<String> {
    let forms = || KNOWN.iter().flat_map(|(forms, _)| forms.iter().copied());
    let corrected = words.iter().map(|word| {
        if read_words(std::slice::from_ref(word)).is_ok() || Half::parse(word).is_some() || word == "in" {
            return Some(word.clone());
        }
        let slips = word.chars().count() / 3;
        let similar = forms().map(|form| (strsim::damerau_levenshtein(word, form), form));
        let similar = similar.filter(|(distance, _)| *distance <= slips);
        similar.min_by_key(|(distance, _)| *distance).map(|(_, form)| form.to_owned())
    });
    let corrected: Vec<String> = corrected.collect::<Option<_>>()?;
    (corrected != words && meaning(&corrected).is_ok()).then(|| corrected.join(" "))
}

/// `10 minutes` with the word that it lacks.
fn with_every(words: &[String]) -> Option<String> {
    let corrected: Vec<String> = std::iter::once(EVERY.to_owned()).chain(words.iter().cloned()).collect();
    meaning(&corrected).is_ok().then(|| corrected.join(" "))
}

/// `daily 7` with a time that cannot be a count.
fn with_minutes(words: &[String]) -> Option<String> {
    let place = words.iter().rposition(|word| small_number(word).is_some_and(|hour| hour < 24))?;
    let mut corrected = words.to_vec();
    corrected[place] = format!("{:0>2}:00", words[place]);
    meaning(&corrected).is_ok().then(|| corrected.join(" "))
}

#[cfg(test)]
#[path = "plain_schedule_tests.rs"]
mod tests;
