//! The days of a schedule in plain words, as cron writes them. Knows nothing of times of day beyond their places. Pure.

use std::collections::BTreeSet;

use super::vocabulary::{Unit, Word, as_part, as_time};

/// Why days with times of their own are no schedule.
pub(super) const DIFFERENT_TIMES: &str =
    "a task cannot have different times on different days; create a task for each";

/// Why `every day at 9:00 on mondays` is no schedule.
pub(super) const EVERY_DAY_AND_OTHERS: &str =
    "it names both every day and certain days; name only those days, as in 'weekdays 8:00 and 18:00'";

/// The words before, between and behind the times, without times and parts of the day.
pub(crate) fn around_times(words: &[Word]) -> Vec<Vec<Word>> {
    let others = |part: &[Word]| part.iter().copied().filter(|word| as_part(*word).is_none()).collect();
    words.split(|word| as_time(*word).is_some()).map(others).collect()
}

/// The words without `and`, times and parts of the day. Words that stand at each of several times, as in `monday 9:00 and monday 18:00`,
/// stand there once.
pub(crate) fn without_times(around: &[Vec<Word>]) -> Vec<Word> {
    let others = |part: &Vec<Word>| part.iter().copied().filter(|word| *word != Word::And).collect();
    let mut said: Vec<Vec<Word>> = around.iter().map(others).collect();
    said.retain(|part| !part.is_empty());
    if said.windows(2).all(|pair| pair[0] == pair[1]) {
        said.truncate(1);
    }
    said.concat()
}

/// Why not every time is meant for every day, as in `monday 9:00 and thursday 18:00`: different days stand at the times, or some days can
/// be those of one time only.
pub(crate) fn different_times(around: &[Vec<Word>], times: usize) -> Option<&'static str> {
    let days: Vec<Vec<Word>> = around.iter().map(|part| days_at(part)).collect();
    let said: Vec<usize> = (0..days.len()).filter(|place| !days[*place].is_empty()).collect();
    let last = days.len() - 1;
    let begins_with_and = |place: usize| around[place].first() == Some(&Word::And);
    let are_different = match said.as_slice() {
        [] => false,
        // The day of '9:00 on friday and 18:00' is that of both times, the one of '9:00, friday 18:00' can be that of the second.
        [place] => {
            let is_of_all = around[*place].last() == Some(&Word::And) && count(&days[*place]) == 1;
            begins_with_and(*place) || ((1..last).contains(place) && !is_of_all)
        }
        [first, others @ ..] => {
            // Such as 'every morning at 9 and friday morning at 9', but not 'every evening at 8 on mondays'.
            let is_repeated = last > 1 || begins_with_and(last);
            let has_daily = is_repeated && days.iter().any(|day| *day == [Word::Daily]);
            (times > 1 || has_daily) && others.iter().any(|other| days[*other] != days[*first])
        }
    };
    // Such as 'every day at 8:00 and 18:00 on weekdays'.
    let is_contradiction = said == [0, last] && (days[0] == [Word::Daily] || days[last] == [Word::Daily]);
    are_different.then_some(if is_contradiction { EVERY_DAY_AND_OTHERS } else { DIFFERENT_TIMES })
}

/// Whether these words name every day and other days.
pub(crate) fn has_every_day_and_others(words: &[Word]) -> bool {
    let is_other = |word: &Word| {
        matches!(word, Word::Weekdays | Word::Weekends | Word::Last | Word::Day(_) | Word::Ordinal(_))
    };
    words.contains(&Word::Daily) && words.iter().any(is_other)
}

/// The days at one time. `every` alone, as in `every morning at 9`, is every day.
fn days_at(words: &[Word]) -> Vec<Word> {
    let is_every = |word: &Word| matches!(word, Word::Every | Word::And);
    match words.contains(&Word::Every) && words.iter().all(is_every) {
        true => vec![Word::Daily],
        false => only_days(words),
    }
}

/// How many days these words name: `last friday` and `monday to friday` are one.
pub(crate) fn named_days(words: &[Word]) -> usize {
    count(&only_days(words))
}

fn only_days(words: &[Word]) -> Vec<Word> {
    let is_day = |word: &Word| {
        matches!(
            word,
            Word::Daily
                | Word::Weekdays
                | Word::Weekends
                | Word::Last
                | Word::To
                | Word::Day(_)
                | Word::Ordinal(_)
                | Word::Number(_)
                | Word::Unit(Unit::Day)
        )
    };
    words.iter().copied().filter(is_day).collect()
}

fn count(days: &[Word]) -> usize {
    let is_noun =
        |word: Option<&Word>| matches!(word, Some(Word::Day(_) | Word::Unit(Unit::Day) | Word::Weekdays));
    let begins = |place: usize, word: &Word| match word {
        Word::Last | Word::To => false,
        Word::Ordinal(_) | Word::Number(_) => !is_noun(days.get(place + 1)),
        _ => place == 0 || days[place - 1] != Word::To,
    };
    days.iter().enumerate().filter(|(place, word)| begins(*place, word)).count()
}

/// Days of the week by their place in a month, such as `first and third monday`.
pub(crate) fn nth_weekdays(words: &[Word]) -> Option<String> {
    let words = words.strip_prefix(&[Word::Every]).unwrap_or(words);
    let (Word::Day(day), places) = words.split_last()? else { return None };
    let place = |word: &Word| match word {
        Word::Last => Some(format!("{day}#L")),
        Word::Ordinal(nth) if (1..=5).contains(nth) => Some(format!("{day}#{nth}")),
        _ => None,
    };
    let fields: Vec<String> = places.iter().map(place).collect::<Option<_>>()?;
    (!fields.is_empty()).then(|| fields.join(","))
}

/// The days of a month.
pub(crate) fn days_of_month(words: &[Word]) -> Option<String> {
    let (mut days, mut has_last) = (BTreeSet::new(), false);
    let mut left = words;
    while let [word, rest @ ..] = left {
        left = rest;
        match (word, rest) {
            (Word::Last, []) => has_last = true,
            (Word::Last, [Word::Unit(Unit::Day), rest @ ..]) => {
                has_last = true;
                left = rest;
            }
            (Word::Ordinal(day), [Word::Unit(Unit::Day), rest @ ..])
            | (Word::Unit(Unit::Day), [Word::Number(day), rest @ ..]) => {
                days.insert(*day);
                left = rest;
            }
            (Word::Ordinal(day) | Word::Number(day), _) => {
                days.insert(*day);
            }
            _ => return None,
        }
    }
    if days.iter().any(|day| !(1..=31).contains(day)) || (days.is_empty() && !has_last) {
        return None;
    }
    let last = has_last.then(|| "L".to_owned());
    Some(days.iter().map(u32::to_string).chain(last).collect::<Vec<_>>().join(","))
}

/// The days of a week: from Monday, and Sunday is 0. `None` also if one is named twice: those of `weekdays from monday to thursday` can be
/// four days or five.
pub(crate) fn weekdays(days: &[Word]) -> Option<String> {
    // Monday is 0 here, so that they are in order.
    let mut found = BTreeSet::new();
    let place = |day: u8| (day + 6) % 7;
    let mut words = days.iter().copied().peekable();
    while let Some(word) = words.next() {
        let named: Vec<u8> = match word {
            Word::Every => continue,
            Word::Weekdays => (0..5).collect(),
            Word::Weekends => (5..7).collect(),
            Word::Day(from) if words.peek() == Some(&Word::To) => {
                words.next();
                let Some(Word::Day(to)) = words.next() else { return None };
                // 'monday to monday' can be one day or all.
                if from == to {
                    return None;
                }
                let length = (place(to) + 7 - place(from)) % 7;
                (0..=length).map(|step| (place(from) + step) % 7).collect()
            }
            Word::Day(day) => vec![place(day)],
            _ => return None,
        };
        if !named.into_iter().all(|day| found.insert(day)) {
            return None;
        }
    }
    match found.iter().copied().collect::<Vec<u8>>().as_slice() {
        [] => None,
        [0, 1, 2, 3, 4] => Some("1-5".to_owned()),
        [0, 1, 2, 3, 4, 5, 6] => Some("*".to_owned()),
        some => Some(some.iter().map(|day| ((day + 1) % 7).to_string()).collect::<Vec<_>>().join(",")),
    }
}

/// The days of a schedule that runs on days of a week or on all days.
pub(crate) fn any_weekdays(words: &[Word]) -> Option<String> {
    match words {
        [] | [Word::Daily] => Some("*".to_owned()),
        words => weekdays(words),
    }
}
