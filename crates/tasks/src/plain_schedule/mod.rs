//! Schedules in plain words, such as `weekdays 07:00`. Pure.

mod days;
mod parts;
mod reader;
mod repeats;
mod vocabulary;

use std::collections::BTreeSet;

use hob_core::Zone;
use jiff::civil::Date;

use self::days::{
    EVERY_DAY_AND_OTHERS, any_weekdays, around_times, days_of_month, different_times,
    has_every_day_and_others, named_days, nth_weekdays, weekdays, without_times,
};
use self::reader::{MONTHS, WordProblem, is_readable, read_schedule};
use self::repeats::{DayRepeats, day_repeats};
use self::vocabulary::{
    DayTime, Half, KNOWN, Unit, Word, as_part, as_time, clock, clock_in, known, ordinal, small_number, words,
};
use crate::schedule::{ScheduleSpec, ScheduleType};
use crate::types::{TaskError, TaskField};

/// The name that stands before a schedule in plain words, where others have their kind.
const EVERY: &str = "every";

/// No schedule needs more characters.
const LONGEST: usize = 200;

const EXAMPLES: &str = "'weekdays 07:00', 'daily 7:30', 'monday and thursday 18:00', 'every 15 minutes', 'hourly', \
                        'monthly on the 1st 09:00' or 'first monday 09:00', or a date for a single run, such as \
                        '2027-01-31 09:00'";

/// Why `every second monday` is no schedule.
const SECOND_OR_OTHER: &str = "it can mean once a month or once in several weeks; write 'second monday of the month 09:00', or 'every \
                               2 weeks', which counts from the creation of the task";

/// Why `every second day of the month` is no schedule.
const SECOND_OR_OTHER_DAY: &str =
    "it can mean once a month or once in several days; write 'monthly on the 2nd 09:00' or 'every 2 days'";

/// Why `friday at midnight` is no schedule.
const MIDNIGHT: &str =
    "midnight can be the beginning or the end of a day; write 'friday 00:00' for the beginning of friday";

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
        let schedule = meaning(&words).map_err(|problem| refuse(explained(&problem, &shown, &words)))?;
        // The zone decides when a date is, not whether it is one.
        ScheduleSpec::parse(schedule.kind, &schedule.value, &Zone::UTC)
            .map_err(|error| refuse(error.to_string()))?;
        Ok(schedule)
    }
}

/// Why these words are no schedule, with what was probably meant.
fn explained(problem: &WordProblem, shown: &str, words: &[String]) -> String {
    match problem {
        WordProblem::NoTime => {
            let mut parts = words.iter().filter_map(|word| as_part(known(word)?)).peekable();
            let is_late = parts.peek().is_some() && !parts.any(|part| part.has(9));
            let time = if is_late { "21:00" } else { "09:00" };
            // The two parts of 'every morning and afternoon' have no time that is the same on the clock.
            let is_schedule = meaning(&[words, &[time.to_owned()]].concat()).is_ok();
            let days = if is_schedule { shown } else { "daily" };
            format!("'{shown}' has no time of day; add one, as in '{days} {time}'")
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

fn meaning(words: &[String]) -> Result<PlainSchedule, WordProblem> {
    if let Some(date) = date(words)? {
        return Ok(PlainSchedule { kind: ScheduleType::Once, value: date });
    }
    let all = read_schedule(words)?;
    check_possible(&all).map_err(WordProblem::Refused)?;
    if let Some(repeats) = day_repeats(&all) {
        let DayRepeats { minutes, hours, days } = repeats.map_err(WordProblem::Refused)?;
        let weekdays = any_weekdays(&days).ok_or(WordProblem::Unclear)?;
        let value = format!("{minutes} {hours} * * {weekdays}");
        return Ok(PlainSchedule { kind: ScheduleType::Cron, value });
    }
    let times: BTreeSet<DayTime> = all.iter().filter_map(|word| as_time(*word)).collect();
    let all = check_count(all, times.len())?;
    let around = around_times(&all);
    let has_part = all.iter().any(|word| as_part(*word).is_some());
    let has_time = has_part || !times.is_empty();
    let mut rest = without_times(&around);
    if let Some(reason) = different_times(&around, times.len()) {
        return Err(WordProblem::Refused(reason));
    }
    if has_every_day_and_others(&rest) {
        return Err(WordProblem::Refused(EVERY_DAY_AND_OTHERS));
    }
    let is_monthly = take(&mut rest, &[Word::Monthly, Word::Unit(Unit::Month)]);
    let is_weekly = take(&mut rest, &[Word::Weekly]);
    if is_weekly && weekdays(&rest).is_none() {
        return Err(WordProblem::Refused("name the day, as in 'monday 09:00'"));
    }
    let is_nth_part =
        |pair: &[String]| ordinal(&pair[0]).is_some() && known(&pair[1]).and_then(as_part).is_some();
    // Without a month, '2nd' is a date, and 'second day' and '2nd evening' are none.
    let is_date = !words.windows(2).any(is_nth_part)
        && matches!(rest.as_slice(), [Word::Ordinal(_), ..])
        && !words.iter().any(|word| matches!(known(word), Some(Word::Unit(Unit::Day) | Word::Ordinal(_))));
    let is_at_midnight = words.iter().any(|word| word == "midnight");
    let cron = |days: &str, weekdays: &str| {
        if is_at_midnight && (days, weekdays) != ("*", "*") {
            return Err(WordProblem::Refused(MIDNIGHT));
        }
        cron(&times, days, weekdays)
    };
    match rest.as_slice() {
        [Word::Every, Word::Ordinal(2..), Word::Day(_)] if !is_monthly => {
            return Err(WordProblem::Refused(SECOND_OR_OTHER));
        }
        [Word::Every, Word::Ordinal(2..), Word::Unit(Unit::Day)] => {
            return Err(WordProblem::Refused(SECOND_OR_OTHER_DAY));
        }
        _ => {}
    }
    if let Some(weekdays) = nth_weekdays(&rest) {
        return cron("*", &weekdays);
    }
    match rest.as_slice() {
        [] if is_monthly => Err(WordProblem::Refused("name the day, as in 'monthly on the 1st 09:00'")),
        [] | [Word::Daily] => cron("*", "*"),
        // Such as 'every morning at 7' and 'daily at 7 every morning'.
        days if has_part
            && !is_monthly
            && days.iter().all(|word| matches!(word, Word::Every | Word::Daily)) =>
        {
            cron("*", "*")
        }
        [Word::Hourly] if !has_time => {
            Ok(PlainSchedule { kind: ScheduleType::Cron, value: "0 * * * *".to_owned() })
        }
        [Word::Every, Word::Unit(unit)] if !has_time => interval(1, *unit),
        [Word::Every, Word::Number(count), Word::Unit(unit)] if !has_time => interval(*count, *unit),
        [Word::Every, Word::Number(_), Word::Unit(_)] => {
            Err(WordProblem::Refused("an interval has no time of day; name days, or leave the time out"))
        }
        [Word::Last, Word::Unit(Unit::Day)] => cron("L", "*"),
        // The working day that is nearest to the beginning or the end.
        [Word::Last, Word::Weekdays] if is_monthly => cron("LW", "*"),
        [Word::Ordinal(1), Word::Weekdays] if is_monthly => cron("1W", "*"),
        days if is_monthly || is_date => {
            let days = days.strip_prefix(&[Word::Every]).unwrap_or(days);
            cron(&days_of_month(days).ok_or(WordProblem::Unclear)?, "*")
        }
        days => cron("*", &weekdays(days).ok_or(WordProblem::Unclear)?),
    }
}

/// Refuses what is clear, and no schedule.
fn check_possible(words: &[Word]) -> Result<(), &'static str> {
    let has_several = |meant: &dyn Fn(Word) -> bool| {
        let several = |some: &[Word]| match some {
            [Word::Every, Word::Number(2..), word] => meant(*word),
            _ => false,
        };
        words.windows(3).any(several)
    };
    if words.contains(&Word::OfYear) {
        return Err(MONTHS);
    }
    if words.contains(&Word::Except) {
        return Err("name the days on which it runs, as in 'monday to saturday 09:00'");
    }
    let is_day = |word: Word| matches!(word, Word::Day(_) | Word::Weekdays | Word::Weekends);
    if has_several(&is_day)
        || (has_several(&|word| word == Word::Unit(Unit::Week)) && words.iter().any(|word| is_day(*word)))
    {
        return Err(
            "it cannot leave out weeks on a certain day; 'every 2 weeks' counts from the creation of the task",
        );
    }
    Ok(())
}

/// Removes a count such as `twice`, which must be the number of runs that the times and days make. Without a time, `once` waits for one.
fn check_count(mut words: Vec<Word>, times: usize) -> Result<Vec<Word>, WordProblem> {
    let Some(mut place) = words.iter().position(|word| matches!(word, Word::Repeated(_))) else {
        return Ok(words);
    };
    let count = match (words.remove(place), place.checked_sub(1).map(|before| words[before])) {
        (Word::Repeated(0), Some(Word::Number(count))) => {
            place -= 1;
            words.remove(place);
            count
        }
        (Word::Repeated(count), _) => count,
        _ => 0,
    };
    let days = match words[place..] {
        [Word::Weekly | Word::Monthly, ..] => named_days(&words),
        _ => 1,
    };
    if usize::try_from(count) == Ok(days * times) || (count, times) == (1, 0) {
        // 'twice a day on mondays' is not every day.
        if words.get(place) == Some(&Word::Daily) {
            words.remove(place);
        }
        return Ok(words);
    }
    Err(WordProblem::Refused(
        "name each time or day, as in 'daily 8:00 and 18:00' or 'monday and thursday 9:00'",
    ))
}

/// A date with a time, if the words begin with a date.
fn date(words: &[String]) -> Result<Option<String>, WordProblem> {
    let mut words =
        words.iter().filter(|word| !matches!(known(word), Some(Word::Filler | Word::Repeated(1))));
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

/// Removes these words, and tells whether there were any.
fn take(words: &mut Vec<Word>, unwanted: &[Word]) -> bool {
    let length = words.len();
    words.retain(|word| !unwanted.contains(word));
    words.len() < length
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
        Unit::Month => return Err(WordProblem::Refused(MONTHS)),
    };
    Ok(PlainSchedule { kind: ScheduleType::Interval, value })
}

/// The schedule that was probably meant: each unknown word replaced by the most similar known one.
fn nearest(words: &[String]) -> Option<String> {
    let forms = || KNOWN.iter().flat_map(|(forms, _)| forms.iter().copied());
    let corrected = words.iter().map(|word| {
        if is_readable(word) || Half::parse(word).is_some() || word == "in" {
            return Some(word.clone());
        }
        let slips = word.chars().count() / 3;
        let similar = forms().map(|form| (strsim::damerau_levenshtein(word, form), form));
        let similar = similar.filter(|(distance, _)| *distance <= slips);
        similar.min_by_key(|(distance, _)| *distance).map(|(_, form)| form.to_owned())
    });
    let corrected: Vec<String> = corrected.collect::<Option<_>>()?;
    (corrected != words && meaning(&corrected).is_ok()).then(|| joined(&corrected))
}

/// `10 minutes` with the word that it lacks.
fn with_every(words: &[String]) -> Option<String> {
    if words.first().and_then(|word| known(word)) == Some(Word::Every) {
        return None;
    }
    let corrected: Vec<String> = std::iter::once(EVERY.to_owned()).chain(words.iter().cloned()).collect();
    meaning(&corrected).is_ok().then(|| joined(&corrected))
}

/// `daily 7` with a time that cannot be a count. As many of the last numbers become times as it takes, but those of `at 7` are hours.
fn with_minutes(words: &[String]) -> Option<String> {
    let mut corrected = words.to_vec();
    let hours = words.iter().enumerate().rev();
    let hours = hours.filter(|(_, word)| small_number(word).is_some_and(|hour| hour < 24));
    for (place, hour) in hours.take_while(|(place, _)| *place == 0 || words[place - 1] != "at") {
        corrected[place] = format!("{hour:0>2}:00");
        if meaning(&corrected).is_ok() {
            return Some(joined(&corrected));
        }
    }
    None
}

/// The words as a user writes them.
fn joined(words: &[String]) -> String {
    words.join(" ").replace(" ,", ",")
}

#[cfg(test)]
#[path = "plain_schedule_tests.rs"]
mod tests;
