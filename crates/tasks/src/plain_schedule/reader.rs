//! Reads the words of a schedule, each in its place: the number of `at 8` is an hour, the one of `8 minutes` is not. Knows nothing of the
//! schedules that the words make. Pure.

use super::parts::{TimeForm, WrittenTime, in_parts};
use super::vocabulary::{DayPart, Half, Unit, Word, as_part, as_time, clock, is_like_time, known, ordinal};

/// Why `on the 1st and on mondays` is no schedule.
const DATES_AND_DAYS: &str =
    "a task cannot have both days of the month and days of the week; create a task for each";

/// Why `second last friday` is no schedule.
const FROM_END: &str =
    "it cannot count from the end of the month; only 'last' is possible, as in 'last friday 17:00'";

/// Why months and years are no schedule.
pub(crate) const MONTHS: &str =
    "words cannot name months or longer times; use the type cron, as in '0 9 1 */3 *' for every third month";

/// Why `once at 9:00` is no schedule.
const NO_DATE: &str = "a single run needs a date, as in '2027-01-31 09:00'; leave 'once' out if it repeats";

/// Why `monday 9:00 and` is no schedule.
const UNFINISHED: &str = "it ends with 'and'; name what follows, as in 'monday and thursday 9:00'";

/// Why `tomorrow 9:00` is no schedule.
const RELATIVE_DATE: &str = "a single run needs a date, as in '2027-01-31 09:00'";

/// Why `9:00 UTC daily` is no schedule.
const TIME_ZONE: &str = "words cannot name a time zone; the task has one of its own, 'timezone'";

/// Why `biweekly` is no schedule.
const TWO_MEANINGS: &str = "'biweekly' and 'bimonthly' have two meanings; write 'every 2 weeks', 'monday and thursday 9:00' or \
                            'monthly on the 1st and 15th 9:00'";

/// Why words are no schedule.
pub(crate) enum WordProblem {
    /// No schedule has such words, or not in this order.
    Unclear,
    NoTime,
    /// A word that looks like a time and is none.
    BadTime(String),
    /// The reason, as the end of a sentence.
    Refused(&'static str),
}

/// The meaning of each word, without fillers.
pub(crate) fn read_schedule(words: &[String]) -> Result<Vec<Word>, WordProblem> {
    check_neighbours(words).map_err(WordProblem::Refused)?;
    let last = words.iter().rev().map(|word| known(word)).find(|word| *word != Some(Word::Filler));
    if last == Some(Some(Word::And)) {
        return Err(WordProblem::Refused(UNFINISHED));
    }
    let written: Vec<&str> = words.iter().map(String::as_str).collect();
    if has_dates_and_days(&written) {
        return Err(WordProblem::Refused(DATES_AND_DAYS));
    }
    let (read, times) = read_words(&written)?;
    let mut read = in_parts(&read, &times).map_err(WordProblem::Refused)?;
    settle(&mut read);
    Ok(read)
}

/// Whether a word alone has a meaning.
pub(crate) fn is_readable(word: &str) -> bool {
    read_words(&[word]).is_ok()
}

/// Refuses words that are impossible, alone or before others.
fn check_neighbours(words: &[String]) -> Result<(), &'static str> {
    for (place, word) in words.iter().enumerate() {
        let next = words.get(place + 1).map(String::as_str);
        let follows = next.and_then(known);
        let is_repeated =
            matches!(follows, Some(Word::Every | Word::Daily | Word::Hourly | Word::Weekly | Word::Monthly));
        match word.as_str() {
            "once" if !is_repeated => return Err(NO_DATE),
            "today" | "tonight" | "tomorrow" | "this" | "next" => return Err(RELATIVE_DATE),
            "biweekly" | "bi-weekly" | "bimonthly" | "bi-monthly" => return Err(TWO_MEANINGS),
            "utc" | "gmt" | "cet" | "est" | "pst" => return Err(TIME_ZONE),
            _ => {}
        }
        // Such as 'quarter to 12' or 'half past noon'.
        if matches!((word.as_str(), next), ("quarter" | "half", Some("to" | "past"))) {
            return Err("write the time in digits, as in 'daily 8:45'");
        }
        // Such as '3 months' or 'last month'; 'second of the month' is a day.
        let is_counted = is_place(word) || known(word) == Some(Word::Other) || word.parse::<u32>().is_ok();
        if is_counted && follows == Some(Word::Unit(Unit::Month)) {
            return Err(MONTHS);
        }
        // Such as 'first 5 days of the month'.
        let is_number = next.is_some_and(|next| next.parse::<u32>().is_ok());
        if is_number && matches!(known(word), Some(Word::Ordinal(_) | Word::Last)) {
            return Err("name each day, as in 'monthly on the 1st and 15th 09:00'");
        }
    }
    Ok(())
}

/// Whether days of the month stand beside days of the week. The places of `first and third monday` are no days of the month.
fn has_dates_and_days(words: &[&str]) -> bool {
    let is_weekday = |word: &str| matches!(known(word), Some(Word::Day(_) | Word::Weekdays | Word::Weekends));
    let is_unit = |word: &&str| matches!(known(word), Some(Word::Unit(_)));
    let is_date = |place: usize| {
        let behind = &words[place + 1..];
        let noun = behind.iter().position(|word| !is_place(word) && !is_joint(word) && *word != "the");
        // The last of several places is directly before its day.
        let is_of_week = noun.is_some_and(|at| is_weekday(behind[at]) && is_place(words[place + at]));
        is_place(words[place]) && !is_of_week && !behind.first().is_some_and(is_unit)
    };
    words.iter().any(|word| is_weekday(word)) && (0..words.len()).any(is_date)
}

/// Whether a word joins those of a list.
fn is_joint(word: &str) -> bool {
    matches!(word, "and" | "&" | ",")
}

/// Whether a word can be the place of a day in a month.
fn is_place(word: &str) -> bool {
    matches!(known(word), Some(Word::Ordinal(_) | Word::Last)) || ordinal(word).is_some()
}

/// Writes `every day` as `daily`, `every other day` and `every third day` as `every 2 days` and `every 3 days`, `from monday to friday`
/// without its first word, and `daily on weekdays` as `weekdays`.
fn settle(words: &mut Vec<Word>) {
    for place in (1..words.len()).rev() {
        let every = match words[place - 1..=place] {
            [Word::Every, Word::Unit(Unit::Hour)] => Word::Hourly,
            [Word::Every, Word::Unit(Unit::Day)] => Word::Daily,
            [Word::Every, Word::Unit(Unit::Week)] => Word::Weekly,
            [Word::Every, Word::Unit(Unit::Month)] => Word::Monthly,
            _ => continue,
        };
        words.splice(place - 1..=place, [every]);
    }
    let is_from = |some: &[Word]| matches!(some, [Word::Between, Word::Day(_), Word::To, Word::Day(_)]);
    if let Some(place) = words.windows(4).position(is_from) {
        words.remove(place);
    }
    let has_one_time = words.iter().filter(|word| as_time(**word).is_some()).count() == 1;
    let is_narrowed = |behind: &[Word]| match behind {
        [Word::Time(_), days @ ..] if has_one_time => is_several_days(days),
        days => is_several_days(days),
    };
    let is_daily = |place: &usize| words[*place] == Word::Daily && is_narrowed(&words[place + 1..]);
    if let Some(place) = (0..words.len()).find(is_daily) {
        words.remove(place);
    }
    let is_of_month = words.iter().any(|word| matches!(word, Word::Monthly | Word::Unit(Unit::Month)));
    for place in 1..words.len() {
        let (before, word) = (words[place - 1], words[place]);
        let is_unit = matches!(words.get(place + 1), Some(Word::Unit(_)));
        match word {
            Word::Other if before == Word::Every => words[place] = Word::Number(2),
            // The second day of a month is a date.
            Word::Ordinal(nth) if before == Word::Every && is_unit && nth > 1 && !is_of_month => {
                words[place] = Word::Number(nth);
            }
            _ => {}
        }
    }
}

fn is_several_days(words: &[Word]) -> bool {
    matches!(words, [Word::Weekdays | Word::Weekends, ..] | [Word::Day(_), Word::To, Word::Day(_), ..])
}

fn read_words<'a>(words: &[&'a str]) -> Result<(Vec<Word>, Vec<WrittenTime<'a>>), WordProblem> {
    let (mut read, mut times): (Vec<Word>, Vec<WrittenTime<'_>>) = (Vec::new(), Vec::new());
    let part_of = |word: &str| as_part(known(word)?);
    let mut left = words;
    // In 'weekdays at 8, 12 and 18', all numbers are hours.
    let (mut before, mut is_after_at, mut is_after_hour) = (None, false, false);
    while let [word, rest @ ..] = left {
        let word = *word;
        left = rest;
        let number = word.parse::<u32>().ok().filter(|_| !word.starts_with('+'));
        let behind = rest.strip_prefix(&["o'clock"]).unwrap_or(rest);
        let is_clock = behind.len() < rest.len();
        let may_be_hour = is_after_at || is_after_hour || is_clock;
        let is_behind_time = matches!(before, Some(Word::Time(_))) && !is_clock;
        let (half, part, length) = match behind {
            ["in", "the", part, ..] => (None, part_of(part), 3),
            // The number of 'on the 15 at night 22:00' is a day.
            ["at", "night", ..] if number.is_none() || may_be_hour => (None, Some(DayPart::Night), 2),
            [next, ..] => (Half::parse(next), None, 1),
            [] => (None, None, 0),
        };
        let meaning = match known(word) {
            // Behind a number it is a unit.
            Some(Word::Ordinal(2)) if matches!(read.last(), Some(Word::Number(_))) => {
                Word::Unit(Unit::Second)
            }
            // 'once a day on mondays' is a count, 'once every monday' is none.
            Some(Word::Repeated(1)) if !is_each_day(rest) => Word::Filler,
            // Such as '12:00 noon'.
            Some(named @ Word::Time(_)) if is_behind_time && before == Some(named) => Word::Filler,
            Some(Word::Time(_)) if is_behind_time => return Err(bad_time(words, rest)),
            // The 'm' of 'every m' can be a minute, a month or a day.
            Some(Word::Unit(_)) if word.len() == 1 && !matches!(read.last(), Some(Word::Number(_))) => {
                return Err(WordProblem::Unclear);
            }
            Some(word) => word,
            // Such as 'weekdays in the morning at 7:30'.
            None if word == "in" && matches!(rest, ["the", part, ..] if part_of(part).is_some()) => {
                Word::Filler
            }
            None => match (clock(word, half), number) {
                (Some(time), None) => Word::Time(time),
                (Some(time), Some(_)) if half.is_some() || part.is_some() => Word::Time(time),
                (_, Some(number)) if (is_behind_time || is_after_hour) && is_counted(rest) => {
                    Word::Number(number)
                }
                // Such as 'daily at 7 30'.
                (_, Some(_)) if is_behind_time => return Err(bad_time(words, rest)),
                // In 'the 1st at 9 and 15', the last may be a day.
                (_, Some(_)) if is_after_hour && !is_clock && (is_of_month(&read) || is_listed(rest)) => {
                    return Err(WordProblem::Unclear);
                }
                (Some(time), Some(_)) if may_be_hour => Word::Time(time),
                (_, Some(number)) => Word::Number(number),
                // Such as '20:00 pm'.
                (None, None) if is_like_time(word) && half.is_some() => {
                    return Err(bad_time(words, &rest[1..]));
                }
                (None, None) if is_like_time(word) => return Err(WordProblem::BadTime(word.to_owned())),
                (None, None) => Word::Ordinal(ordinal(word).ok_or(WordProblem::Unclear)?),
            },
        };
        if let Word::Time(time) = meaning {
            let is_named = known(word).is_some();
            let form = match number {
                _ if is_named => TimeForm::Named,
                _ if half.is_some() || word.ends_with('m') => TimeForm::Half,
                Some(_) => TimeForm::Hour,
                None => TimeForm::Clock,
            };
            let part = part.filter(|_| !is_named);
            if !is_named {
                let has_more = half.is_some() || part.is_some();
                left = if has_more { behind.get(length..).unwrap_or_default() } else { behind };
            }
            times.push(WrittenTime { place: read.len(), word, form, time, part });
        }
        // 'first and last friday' is possible.
        if meaning == Word::Last && matches!(before, Some(Word::Ordinal(_) | Word::Number(_))) {
            return Err(WordProblem::Refused(FROM_END));
        }
        is_after_at = word == "at";
        is_after_hour = is_joint(word) && (is_after_hour || is_behind_time);
        before = Some(meaning);
        if meaning != Word::Filler {
            read.push(meaning);
        }
    }
    Ok((read, times))
}

/// A time and the word behind it, which make none together. The rest is behind that word.
fn bad_time(words: &[&str], rest: &[&str]) -> WordProblem {
    let end = words.len() - rest.len();
    WordProblem::BadTime(words[end.saturating_sub(2)..end].join(" "))
}

/// Whether these words begin with `a day`, `every day` or `daily`.
fn is_each_day(words: &[&str]) -> bool {
    let first_two = (words.first().and_then(|word| known(word)), words.get(1).and_then(|word| known(word)));
    matches!(first_two, (Some(Word::Daily), _) | (Some(Word::Every), Some(Word::Unit(Unit::Day))))
}

/// Whether the number before these words is a count.
fn is_counted(rest: &[&str]) -> bool {
    let next = rest.first().and_then(|word| known(word));
    matches!(next, Some(Word::Unit(_) | Word::Repeated(_)))
}

/// Whether the word before these is in a list with days of a month, as the 15 of `15 and last day`.
fn is_listed(rest: &[&str]) -> bool {
    let next = rest.iter().find(|word| !is_joint(word) && **word != "the");
    rest.first().is_some_and(|word| is_joint(word)) && next.is_some_and(|word| is_place(word))
}

/// Whether these words name days of a month.
fn is_of_month(words: &[Word]) -> bool {
    let is_count = |place: usize| matches!(words.get(place + 1), Some(Word::Repeated(_) | Word::Unit(_)));
    words.iter().enumerate().any(|(place, word)| match word {
        Word::Number(_) => !is_count(place),
        word => matches!(word, Word::Ordinal(_) | Word::Monthly | Word::Unit(Unit::Month)),
    })
}
