//! The times of a schedule in plain words, each in its part of the day: the 9 of `every evening at 9` is 21:00. Pure.

use super::days::{DIFFERENT_TIMES, around_times, named_days, without_times};
use super::vocabulary::{DayPart, DayTime, Unit, Word, as_part, as_time, clock_in};

const OTHER_PART: &str =
    "the time is in another part of the day; write it as in 'daily 19:00' or 'daily 7pm'";

/// Why `every morning at 7 and every evening` is no schedule.
const PART_TIMES: &str =
    "name a time for each part of the day, as in 'every morning at 7 and every evening at 9'";

/// Why `daily 9 and 11pm` is no schedule.
const OTHER_HALF: &str = "write am or pm at each hour, as in 'daily 9am and 5pm', or 'daily 9:00 and 17:00'";

/// Why `friday night at 1am` is no schedule: it probably means Saturday.
const NEXT_DAY: &str = "after midnight it is the next day; write that day, as in 'saturday 01:00'";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// `7`
    Hour,
    /// `7:30`
    Clock,
    /// `7am`
    Half,
    /// `noon`
    Named,
}

/// A time in the words of a schedule.
#[derive(Debug)]
pub(crate) struct WrittenTime<'a> {
    /// Its place in the words that were read.
    pub(crate) place: usize,
    pub(crate) word: &'a str,
    pub(crate) form: TimeForm,
    /// Without its part of the day.
    pub(crate) time: DayTime,
    /// The part directly behind it, as in `7 in the evening`.
    pub(crate) part: Option<DayPart>,
}

impl WrittenTime<'_> {
    /// Whether a part of the day can say which half is meant.
    fn is_open(&self) -> bool {
        matches!(self.form, TimeForm::Hour | TimeForm::Clock)
    }

    /// The only time of several parts is in each of them. `None` if no such time is in these parts.
    fn times_in(&self, parts: &[DayPart], is_only: bool) -> Option<Vec<DayTime>> {
        if self.is_open() && !parts.is_empty() && (parts.len() == 1 || is_only) {
            return parts.iter().map(|part| self.time_in(*part)).collect();
        }
        let is_there = parts.is_empty() || parts.iter().any(|part| part.has(self.time.hour));
        is_there.then(|| vec![self.time])
    }

    fn time_in(&self, part: DayPart) -> Option<DayTime> {
        // In 'every evening at 13:00' the time is clear.
        let is_clear = self.form == TimeForm::Clock && !(1..=12).contains(&self.time.hour);
        clock_in(self.word, part).or_else(|| Some(self.time).filter(|time| is_clear && part.has(time.hour)))
    }
}

/// The words with each time in its part of the day. The error is the end of a sentence.
pub(crate) fn in_parts(words: &[Word], times: &[WrittenTime<'_>]) -> Result<Vec<Word>, &'static str> {
    if times.is_empty() {
        return Ok(words.to_vec());
    }
    let near = near_parts(words)?;
    let parts: Vec<Vec<DayPart>> =
        times.iter().zip(near).map(|(time, near)| time.part.map_or(near, |part| vec![part])).collect();
    check_halves(words, times, &parts)?;
    let mut read = words.to_vec();
    let mut found: Vec<(DayTime, &[DayPart])> = Vec::new();
    // From the last, because one time can become several words.
    for (written, parts) in times.iter().zip(&parts).rev() {
        let meant = written.times_in(parts, times.len() == 1).ok_or(OTHER_PART)?;
        // The 5 of 'every morning and night at 5' is the same hour in both.
        if (1..meant.len()).any(|place| meant[..place].contains(&meant[place])) {
            return Err(PART_TIMES);
        }
        read.splice(written.place..=written.place, meant.iter().copied().map(Word::Time));
        found.extend(meant.into_iter().map(|time| (time, parts.as_slice())));
    }
    let has_time =
        |part: DayPart| found.iter().any(|(time, parts)| parts.contains(&part) && part.has(time.hour));
    if !words.iter().filter_map(|word| as_part(*word)).all(has_time) {
        return Err(PART_TIMES);
    }
    let days = without_times(&around_times(words));
    let is_any_day =
        |word: &Word| matches!(word, Word::Daily | Word::Every | Word::Unit(Unit::Day) | Word::Repeated(1));
    let is_every_day = days.iter().all(is_any_day);
    let is_after_midnight =
        |(time, parts): &(DayTime, &[DayPart])| time.hour < 6 && parts.contains(&DayPart::Night);
    if !is_every_day && found.iter().any(is_after_midnight) {
        return Err(NEXT_DAY);
    }
    Ok(read)
}

/// The parts of the day for each time: the nearest ones before it, as in `every morning at 7 and every evening at 9`, or, if all parts
/// stand behind their times, the nearest ones behind it, as in `at 7 every morning and at 9 every evening`.
fn near_parts(words: &[Word]) -> Result<Vec<Vec<DayPart>>, &'static str> {
    let has_part = |words: &[Word]| words.iter().any(|word| as_part(*word).is_some());
    let mut around: Vec<&[Word]> = words.split(|word| as_time(*word).is_some()).collect();
    let is_behind = !around.first().is_some_and(|words| has_part(words));
    if is_behind {
        around.reverse();
    }
    // Behind or before all times and their parts.
    let outside = around.pop().unwrap_or_default();
    if !has_part(words) {
        return Ok(vec![Vec::new(); around.len()]);
    }
    if has_days_without_part(words) {
        return Err(PART_TIMES);
    }
    // The evening of 'monday at 9 and tuesday evening' has no time, the one of 'monday at 9 every evening' has.
    let is_of_time = matches!(around.as_slice(), [[Word::Part(_)] | [Word::Every, Word::Part(_)]]);
    let is_apart = is_behind && named_days(outside) > 0 && !is_of_time;
    if is_apart || has_part(outside) || !around.first().is_some_and(|words| has_part(words)) {
        return Err(PART_TIMES);
    }
    // The 7 of 'at 7 and 9 evening' may be in the morning.
    let is_of_last = is_behind && matches!(around.first(), Some([Word::Part(_)]));
    let mut near: Vec<Vec<DayPart>> = Vec::new();
    for words in around {
        let parts = listed_parts(words).ok_or(PART_TIMES)?;
        match near.last() {
            // Such as 'monday evening at 9 and tuesday at 9'.
            Some(_) if parts.is_empty() && named_days(words) > 0 => return Err(DIFFERENT_TIMES),
            Some(_) if parts.is_empty() && is_of_last => return Err(OTHER_HALF),
            Some(nearest) if parts.is_empty() => near.push(nearest.clone()),
            _ => near.push(parts),
        }
    }
    if is_behind {
        near.reverse();
    }
    Ok(near)
}

/// Whether days can be meant without the part of the day beside them, as in `monday evening and friday at 8` or `mondays and every evening
/// at 8`.
fn has_days_without_part(words: &[Word]) -> bool {
    let is_time = |word: &Word| as_time(*word).is_some();
    let is_part = |word: &Word| as_part(*word).is_some();
    (0..words.len()).filter(|place| is_part(&words[*place])).any(|place| {
        let before = words[..place].rsplit(is_time).next().unwrap_or_default();
        if let [.., day, Word::And] | [.., day, Word::And, Word::Every] = before
            && named_days(&[*day]) > 0
        {
            return true;
        }
        let rest = &words[place + 1..];
        let end = rest.iter().position(|word| is_time(word) || is_part(word)).unwrap_or(rest.len());
        let has_own_part = rest.get(end).is_some_and(is_part);
        let are_others = rest.first() == Some(&Word::And) || named_days(before) > 0;
        are_others && !has_own_part && named_days(&rest[..end]) > 0
    })
}

/// The parts of the day among these words. `None` if they have days of their own, as in `monday morning and friday evening`.
fn listed_parts(words: &[Word]) -> Option<Vec<DayPart>> {
    let is_part = |word: &Word| as_part(*word).is_some();
    let mut parts: Vec<DayPart> = words.iter().filter_map(|word| as_part(*word)).collect();
    parts.dedup();
    let first = words.iter().position(is_part).unwrap_or_default();
    let last = words.iter().rposition(is_part).unwrap_or_default();
    let is_joint = |word: &Word| matches!(word, Word::Every | Word::And);
    let is_list = words[first..last].iter().all(|word| is_part(word) || is_joint(word));
    (parts.len() < 2 || is_list).then_some(parts)
}

/// Refuses times whose half of the day is not clear beside the other times.
fn check_halves(
    words: &[Word],
    times: &[WrittenTime<'_>],
    parts: &[Vec<DayPart>],
) -> Result<(), &'static str> {
    let has_part_behind = times.iter().any(|time| time.part.is_some());
    let has_half = has_part_behind || times.iter().any(|time| time.form == TimeForm::Half);
    let plain =
        times.iter().zip(parts).filter(|(time, parts)| time.form != TimeForm::Half && parts.len() != 1);
    let plain: Vec<&WrittenTime<'_>> = plain.map(|(time, _)| time).collect();
    let has_hour = plain.iter().any(|time| time.form == TimeForm::Hour);
    let is_morning = |time: &&WrittenTime<'_>| (1..=12).contains(&time.time.hour);
    let is_range_end = |pair: &[Word]| {
        matches!(pair, [Word::Number(_), Word::To] | [Word::To | Word::Between, Word::Number(_)])
    };
    let is_mixed = has_half && (has_hour || words.windows(2).any(is_range_end));
    // Such as 'daily at 7:00 and 9:00 in the evening'.
    let is_shared = has_part_behind && plain.iter().any(|time| time.is_open() && is_morning(time));
    // The second of 'daily at 9 and 5' is probably 17:00, and the one of 'daily at 6 and 6' 18:00.
    let is_earlier = |pair: &[&WrittenTime<'_>]| {
        let between = &words[pair[0].place + 1..pair[1].place];
        let is_same_day = between.iter().all(|word| *word == Word::And);
        pair[0].time > pair[1].time || (pair[0].time == pair[1].time && is_same_day)
    };
    let is_reversed = has_hour && plain.iter().all(is_morning) && plain.windows(2).any(is_earlier);
    if is_mixed || is_shared || is_reversed { Err(OTHER_HALF) } else { Ok(()) }
}
