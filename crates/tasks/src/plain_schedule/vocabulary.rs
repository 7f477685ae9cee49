//! The words that schedules in plain words consist of, with their meanings, and times of day. Knows nothing of their order. Pure.

/// A word with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// Between other words: `at`, `on`, `the`.
    Filler,
    /// Between two days, or between a time and the days of the next one.
    And,
    Every,
    /// `every other monday`.
    Other,
    To,
    /// Before the first and the last hour.
    Between,
    /// How many times; 0 if the number stands before it.
    Repeated(u32),
    /// Before days on which it does not run.
    Except,
    /// A month by its name, or a longer time.
    OfYear,
    Daily,
    Hourly,
    Weekly,
    Monthly,
    Weekdays,
    Weekends,
    Last,
    /// Sunday is 0.
    Day(u8),
    /// 1 is the first.
    Ordinal(u32),
    Number(u32),
    Unit(Unit),
    Part(DayPart),
    Time(DayTime),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
}

/// A part of the day, such as in `every morning at 7`. The time must be in it, because `every afternoon at 7` could mean two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DayPart {
    Morning,
    Afternoon,
    Evening,
    Night,
}

impl DayPart {
    pub(crate) fn has(self, hour: u32) -> bool {
        match self {
            DayPart::Morning => hour < 12,
            DayPart::Afternoon | DayPart::Evening => hour >= 12,
            DayPart::Night => !(6..18).contains(&hour),
        }
    }

    /// Whether people call an hour so, where the part says which half of the day is meant: 23:00 is not 11 in the afternoon.
    fn usually_has(self, hour: u32) -> bool {
        match self {
            DayPart::Afternoon => (12..18).contains(&hour),
            DayPart::Evening => hour >= 16,
            // 'every morning at 12' is neither clearly noon nor midnight.
            DayPart::Morning => (1..12).contains(&hour),
            DayPart::Night => self.has(hour),
        }
    }
}

/// What the clock shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DayTime {
    pub(crate) hour: u32,
    pub(crate) minute: u32,
}

/// All words, in every form.
pub(crate) const KNOWN: &[(&[&str], Word)] = &[
    (&["at", "on", "the", ",", "of", "o'clock", "only"], Word::Filler),
    (&["and", "&"], Word::And),
    (&["every", "each"], Word::Every),
    (&["to", "through", "till", "until", "-"], Word::To),
    (&["daily", "everyday"], Word::Daily),
    (&["hourly"], Word::Hourly),
    (&["weekly"], Word::Weekly),
    (&["monthly"], Word::Monthly),
    (&["weekdays", "weekday", "workdays", "workday"], Word::Weekdays),
    (&["weekends", "weekend"], Word::Weekends),
    (&["last"], Word::Last),
    (&["monday", "mondays", "mon"], Word::Day(1)),
    (&["tuesday", "tuesdays", "tue", "tues"], Word::Day(2)),
    (&["wednesday", "wednesdays", "wed"], Word::Day(3)),
    (&["thursday", "thursdays", "thu", "thur", "thurs"], Word::Day(4)),
    (&["friday", "fridays", "fri"], Word::Day(5)),
    (&["saturday", "saturdays", "sat"], Word::Day(6)),
    (&["sunday", "sundays", "sun"], Word::Day(0)),
    (&["first"], Word::Ordinal(1)),
    (&["second"], Word::Ordinal(2)),
    (&["third"], Word::Ordinal(3)),
    (&["fourth"], Word::Ordinal(4)),
    (&["fifth"], Word::Ordinal(5)),
    (&["seconds", "sec", "secs", "s"], Word::Unit(Unit::Second)),
    (&["minutes", "minute", "min", "mins", "m"], Word::Unit(Unit::Minute)),
    (&["hours", "hour", "hr", "hrs", "h"], Word::Unit(Unit::Hour)),
    (&["days", "day", "d"], Word::Unit(Unit::Day)),
    (&["weeks", "week", "w"], Word::Unit(Unit::Week)),
    (&["months", "month"], Word::Unit(Unit::Month)),
    (&["morning", "mornings"], Word::Part(DayPart::Morning)),
    (&["afternoon", "afternoons"], Word::Part(DayPart::Afternoon)),
    (&["evening", "evenings"], Word::Part(DayPart::Evening)),
    (&["night", "nights", "nightly"], Word::Part(DayPart::Night)),
    (&["noon", "midday"], Word::Time(DayTime { hour: 12, minute: 0 })),
    (&["midnight"], Word::Time(DayTime { hour: 0, minute: 0 })),
    // Of words that are as similar to a misspelt one, the first is suggested, so these are the last.
    (&["a", "an", "per"], Word::Every),
    (&["other"], Word::Other),
    (&["thru"], Word::To),
    (&["between", "from"], Word::Between),
    (&["once"], Word::Repeated(1)),
    (&["twice"], Word::Repeated(2)),
    (&["times", "time", "x"], Word::Repeated(0)),
    (&["except", "but", "not"], Word::Except),
    (&["quarterly", "quarter", "quarters", "yearly", "annually", "year", "years"], Word::OfYear),
    (&["january", "february", "march", "april", "may", "june", "july", "august"], Word::OfYear),
    (&["september", "october", "november", "december", "jan", "feb", "mar", "apr"], Word::OfYear),
    (&["jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"], Word::OfYear),
];

/// Words that stand for others.
const SYNONYMS: &[(&[&str], &[&str])] = &[
    (&["business", "day"], &["weekdays"]),
    (&["business", "days"], &["weekdays"]),
    (&["working", "day"], &["weekdays"]),
    (&["working", "days"], &["weekdays"]),
    (&["work", "day"], &["weekdays"]),
    (&["work", "days"], &["weekdays"]),
    (&["week", "day"], &["weekdays"]),
    (&["week", "days"], &["weekdays"]),
    (&["end", "of"], &["last", "day"]),
    (&["start", "of"], &["first", "day"]),
    (&["beginning", "of"], &["first", "day"]),
    (&["half", "an", "hour"], &["30", "minutes"]),
    (&["half", "hour"], &["30", "minutes"]),
    (&["half-hour"], &["30", "minutes"]),
    (&["quarter", "of", "an", "hour"], &["15", "minutes"]),
    (&["quarter", "hour"], &["15", "minutes"]),
    (&["a", "quarter", "to"], &["quarter", "to"]),
    (&["a", "quarter", "past"], &["quarter", "past"]),
    (&["12", "noon"], &["noon"]),
    (&["12", "midnight"], &["midnight"]),
    (&["every", "noon"], &["daily", "noon"]),
    (&["every", "midnight"], &["daily", "midnight"]),
    (&["every", "hour", "on", "the", "hour"], &["hourly"]),
    (&["every", "day", "of", "the", "week"], &["daily"]),
    (&["fortnight"], &["2", "weeks"]),
    (&["fortnightly"], &["every", "2", "weeks"]),
    (&["one"], &["1"]),
    (&["two"], &["2"]),
    (&["three"], &["3"]),
    (&["four"], &["4"]),
    (&["five"], &["5"]),
    (&["six"], &["6"]),
    (&["seven"], &["7"]),
    (&["eight"], &["8"]),
    (&["nine"], &["9"]),
    (&["ten"], &["10"]),
    (&["eleven"], &["11"]),
    (&["twelve"], &["12"]),
    (&["fifteen"], &["15"]),
    (&["twenty"], &["20"]),
    (&["thirty"], &["30"]),
];

/// The words in lower case, without words that stand for others. A comma is a word, and a range such as `mon-fri` is three.
pub(crate) fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('–', "-").replace('@', " at ").replace([',', ';'], " , ");
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace().map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty())
    {
        let is_time = |word: &str| clock(word, None).is_some();
        match word.split_once('-') {
            Some((from, to)) if (is_day(from) && is_day(to)) || (is_time(from) && is_time(to)) => {
                words.extend([from, "-", to]);
            }
            _ if word.split('/').all(is_day) => words.extend(word.split('/')),
            _ => match with_unit(word) {
                Some((count, unit)) => words.extend([count, unit]),
                None => words.push(word),
            },
        }
    }
    let mut written = Vec::new();
    let mut left = words.as_slice();
    while let [word, rest @ ..] = left {
        match SYNONYMS.iter().find(|(form, _)| left.starts_with(form)) {
            Some((form, meaning)) => {
                written.extend(meaning.iter().copied().map(str::to_owned));
                left = &left[form.len()..];
            }
            None => {
                written.push((*word).to_owned());
                left = rest;
            }
        }
    }
    for place in 0..written.len() {
        if let Some(time) = written.get(place..place + 3).and_then(spoken_time) {
            written.splice(place..place + 3, [time]);
        }
    }
    written
}

/// `quarter to 9` is `8:45`.
fn spoken_time(words: &[String]) -> Option<String> {
    let [part, side, hour] = words else { return None };
    let end = hour.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(hour.len());
    let (hour, half) = hour.split_at(end);
    let hour = small_number(hour)?;
    let (hour, minute) = match (part.as_str(), side.as_str(), hour) {
        // Before 12 and 1, 'am' and 'pm' are not those of the hour.
        ("quarter", "to", 2..=11 | 13..=23) => (hour - 1, 45),
        ("quarter", "past", _) => (hour, 15),
        ("half", "past", _) => (hour, 30),
        _ => return None,
    };
    Some(format!("{hour}:{minute}{half}"))
}

/// The number and the rest of a word such as `15min` or `2x`.
fn with_unit(word: &str) -> Option<(&str, &str)> {
    let (count, unit) = word.split_at(word.find(|letter: char| !letter.is_ascii_digit())?);
    let is_unit = matches!(known(unit), Some(Word::Unit(_) | Word::Repeated(_)));
    (!count.is_empty() && is_unit).then_some((count, unit))
}

fn is_day(word: &str) -> bool {
    matches!(known(word), Some(Word::Day(_)))
}

pub(crate) fn known(word: &str) -> Option<Word> {
    KNOWN.iter().find(|(forms, _)| forms.contains(&word)).map(|(_, meaning)| *meaning)
}

pub(crate) fn as_time(word: Word) -> Option<DayTime> {
    match word {
        Word::Time(time) => Some(time),
        _ => None,
    }
}

pub(crate) fn as_part(word: Word) -> Option<DayPart> {
    match word {
        Word::Part(part) => Some(part),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Am,
    Pm,
}

impl Half {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "am" | "a.m" => Some(Half::Am),
            "pm" | "p.m" => Some(Half::Pm),
            _ => None,
        }
    }
}

/// A time such as `7:30`, `7am` or `19.30`; the half of the day may be the next word. A number alone is an hour.
pub(crate) fn clock(word: &str, next: Option<Half>) -> Option<DayTime> {
    let written = ["am", "a.m", "pm", "p.m"].into_iter().find(|half| word.ends_with(*half));
    let half = written.and_then(Half::parse).or(next);
    let digits = word.strip_suffix(written.unwrap_or_default())?;
    let (hour, minute) = match digits.split_once([':', '.']) {
        Some((hour, minute)) if minute.len() == 2 => (hour, small_number(minute)?),
        Some(_) => return None,
        None => (digits, 0),
    };
    let hour = small_number(hour)?;
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(Half::Am) => hour % 12,
        Some(Half::Pm) => hour % 12 + 12,
    };
    (hour < 24 && minute < 60).then_some(DayTime { hour, minute })
}

/// A time with the part of the day that it is in: `7` in the evening is 19:00. `None` if no such time is in that part.
pub(crate) fn clock_in(word: &str, part: DayPart) -> Option<DayTime> {
    let halves = [None, Some(Half::Am), Some(Half::Pm)];
    halves.into_iter().filter_map(|half| clock(word, half)).find(|time| part.usually_has(time.hour))
}

/// Whether a word is written like a time, such as `25:00` or `13pm`.
pub(crate) fn is_like_time(word: &str) -> bool {
    let written = ["am", "pm"].into_iter().find_map(|half| word.strip_suffix(half));
    let digits = written.unwrap_or(word);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match digits.split_once(':') {
        Some((hour, minute)) => is_number(hour) && is_number(minute),
        None => written.is_some() && is_number(digits),
    }
}

/// One or two digits.
pub(crate) fn small_number(digits: &str) -> Option<u32> {
    let is_short = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_short)
}

/// `1st` is 1.
pub(crate) fn ordinal(word: &str) -> Option<u32> {
    let digits = ["st", "nd", "rd", "th"].into_iter().find_map(|end| word.strip_suffix(end))?;
    small_number(digits).filter(|day| (1..=31).contains(day))
}
