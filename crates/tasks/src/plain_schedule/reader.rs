//! Reads the words of a schedule, each in its place: the number of `at 8` is an hour, the one of `8 minutes` is not. Knows nothing of the
//! schedules that the words make. Pure.

use super::vocabulary::{DayPart, Half, Unit, Word, as_part, clock, clock_in, is_like_time, known, ordinal};

/// Why a time does not fit the part of the day.
pub(crate) const OTHER_PART: &str =
    "the time is in another part of the day; write it as in 'daily 19:00' or 'daily 7pm'";

/// Why `daily 9 and 11pm` is no schedule.
const OTHER_HALF: &str = "write am or pm at each hour, as in 'daily 9am and 5pm', or 'daily 9:00 and 17:00'";

/// Why months and years are no schedule.
pub(crate) const MONTHS: &str =
    "words cannot name months or longer times; use the type cron, as in '0 9 1 */3 *' for every third month";

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
    let written: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut read = read_words(&written)?;
    settle(&mut read);
    Ok(read)
}

/// Whether a word alone has a meaning.
pub(crate) fn is_readable(word: &str) -> bool {
    read_words(&[word]).is_ok()
}

/// Refuses words that other words behind them make impossible.
fn check_neighbours(words: &[String]) -> Result<(), &'static str> {
    for (place, word) in words.iter().enumerate() {
        let [next, second] = [1, 2].map(|step| words.get(place + step).map(String::as_str));
        let follows = next.and_then(known);
        let is_repeated =
            matches!(follows, Some(Word::Every | Word::Daily | Word::Hourly | Word::Weekly | Word::Monthly));
        if word == "once" && !is_repeated {
            return Err(
                "a single run needs a date, as in '2027-01-31 09:00'; leave 'once' out if it repeats",
            );
        }
        // 'every second of the month' is a day.
        let is_nth = matches!(follows, Some(Word::Ordinal(_))) || next.and_then(ordinal).is_some();
        if known(word) == Some(Word::Every)
            && is_nth
            && second.and_then(known) == Some(Word::Unit(Unit::Month))
        {
            return Err(MONTHS);
        }
    }
    Ok(())
}

/// Writes `every other day` and `every third day` as `every 2 days` and `every 3 days`, and `from monday to friday` without its first
/// word.
fn settle(words: &mut Vec<Word>) {
    let is_from = |some: &[Word]| matches!(some, [Word::Between, Word::Day(_), Word::To, Word::Day(_)]);
    if let Some(place) = words.windows(4).position(is_from) {
        words.remove(place);
    }
    let is_of_month = words.contains(&Word::Unit(Unit::Month));
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

fn read_words(words: &[&str]) -> Result<Vec<Word>, WordProblem> {
    let mut read: Vec<Word> = Vec::new();
    let part_of = |word: &str| as_part(known(word)?);
    let mut left = words;
    // In 'weekdays at 8 and 18', both numbers are hours.
    let (mut is_after_at, mut is_after_hour, mut is_hour) = (false, false, false);
    let (mut has_half, mut has_plain_hour) = (false, false);
    while let [word, rest @ ..] = left {
        let word = *word;
        left = rest;
        let number = word.parse::<u32>().ok().filter(|_| !word.starts_with('+'));
        let behind = rest.strip_prefix(&["o'clock"]).unwrap_or(rest);
        let is_clock = behind.len() < rest.len();
        let may_be_hour = is_after_at || is_after_hour || is_clock;
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
                        Some(_) => may_be_hour,
                        None => clock_in(word, DayPart::Evening).is_some(),
                    };
                let time = match part.or(is_in_evening.then_some(DayPart::Evening)) {
                    Some(part) if clock(word, None).is_some() => {
                        Some(clock_in(word, part).ok_or(WordProblem::Refused(OTHER_PART))?)
                    }
                    _ => clock(word, half),
                };
                has_half |= time.is_some() && (half.is_some() || part.is_some() || word.ends_with('m'));
                match (time, number) {
                    (Some(time), None) => Word::Time(time),
                    (Some(time), Some(_)) if half.is_some() || part.is_some() => Word::Time(time),
                    // In 'the 1st at 9 and 15', the last may be a day.
                    (_, Some(_)) if is_after_hour && !is_clock && is_of_month(&read) => {
                        return Err(WordProblem::Unclear);
                    }
                    (Some(time), Some(_)) if may_be_hour => {
                        has_plain_hour |= !is_in_evening;
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
            left = behind.get(length..).unwrap_or_default();
        }
        is_after_at = word == "at";
        is_after_hour = is_hour && matches!(word, "and" | "&");
        is_hour = matches!(meaning, Word::Time(_));
        if meaning != Word::Filler {
            read.push(meaning);
        }
    }
    let is_range_end = |pair: &[Word]| {
        matches!(pair, [Word::Number(_), Word::To] | [Word::To | Word::Between, Word::Number(_)])
    };
    match has_half && (has_plain_hour || read.windows(2).any(is_range_end)) {
        true => Err(WordProblem::Refused(OTHER_HALF)),
        false => Ok(read),
    }
}

/// Whether these words name days of a month.
fn is_of_month(words: &[Word]) -> bool {
    let is_count = |place: usize| matches!(words.get(place + 1), Some(Word::Repeated(_) | Word::Unit(_)));
    words.iter().enumerate().any(|(place, word)| match word {
        Word::Number(_) => !is_count(place),
        word => matches!(word, Word::Ordinal(_) | Word::Monthly | Word::Unit(Unit::Month)),
    })
}
