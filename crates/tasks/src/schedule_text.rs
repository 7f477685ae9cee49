//! Tells a schedule in plain words that [`PlainSchedule`](crate::PlainSchedule) reads back. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::schedule::ScheduleSpec;

/// From Monday.
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "5th"];

/// The schedule in plain words, such as `weekdays at 07:00`; `None` if that takes more than a few words.
pub fn in_words(spec: &ScheduleSpec) -> Option<String> {
    match spec {
        ScheduleSpec::Cron(cron) => cron_in_words(cron.as_str()),
        ScheduleSpec::Interval { every, .. } => interval_in_words(*every),
        ScheduleSpec::Once { .. } => None,
    }
}

/// The schedule in plain words, or its kind and value.
pub fn shown_schedule(spec: &ScheduleSpec) -> String {
    in_words(spec).unwrap_or_else(|| format!("{} {}", spec.kind().as_str(), spec.value()))
}

fn cron_in_words(expression: &str) -> Option<String> {
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let [minute, hours, days, "*", weekdays] = fields.as_slice() else { return None };
    if fields == ["0", "*", "*", "*", "*"] {
        return Some("every hour".to_owned());
    }
    let minute = number(minute, 59)?;
    let hours: BTreeSet<u32> = hours.split(',').map(|hour| number(hour, 23)).collect::<Option<_>>()?;
    let times: Vec<String> = hours.into_iter().map(|hour| format!("{hour:02}:{minute:02}")).collect();
    let times = listed(&times);
    let days = match (*days, *weekdays) {
        ("*", "*") => "every day".to_owned(),
        ("LW", "*") => "on the last weekday of every month".to_owned(),
        ("1W", "*") => "on the first weekday of every month".to_owned(),
        (days, "*") => {
            let (last, days): (Vec<&str>, Vec<&str>) = days.split(',').partition(|day| *day == "L");
            let days: BTreeSet<u32> = days.into_iter().map(|day| number(day, 31)).collect::<Option<_>>()?;
            let last = last.first().map(|_| "last day".to_owned());
            let days: Vec<String> = days.into_iter().map(ordinal).chain(last).collect();
            format!("on the {} of every month", listed(&days))
        }
        ("*", weekdays) => days_in_words(weekdays)?,
        _ => return None,
    };
    Some(format!("{days} at {times}"))
}

fn days_in_words(field: &str) -> Option<String> {
    if field.contains('#') {
        return nth_days_in_words(field);
    }
    let mut days = BTreeSet::new();
    for part in field.split(',') {
        match part.split_once('-') {
            Some((from, to)) => {
                let (from, to) = (weekday(from)?, weekday(to)?);
                days.extend((0..=(to + 7 - from) % 7).map(|step| (from + step) % 7));
            }
            None => {
                days.insert(weekday(part)?);
            }
        }
    }
    Some(match days.iter().copied().collect::<Vec<usize>>().as_slice() {
        [0, 1, 2, 3, 4] => "weekdays".to_owned(),
        [5, 6] => "weekends".to_owned(),
        [0, 1, 2, 3, 4, 5, 6] => "every day".to_owned(),
        some => listed(&some.iter().map(|day| format!("{}s", DAYS[*day])).collect::<Vec<_>>()),
    })
}

/// The places of one day in a month, such as `1#1,1#3`.
fn nth_days_in_words(field: &str) -> Option<String> {
    let mut places = Vec::new();
    let mut named = None;
    for part in field.split(',') {
        let (day, nth) = part.split_once('#')?;
        let day = weekday(day)?;
        if named.replace(day).is_some_and(|before| before != day) {
            return None;
        }
        places.push(match nth {
            "L" => "last".to_owned(),
            nth => {
                let nth = usize::try_from(number(nth, 5)?).ok()?;
                (*ORDINALS.get(nth.checked_sub(1)?)?).to_owned()
            }
        });
    }
    Some(format!("on the {} {} of every month", listed(&places), DAYS[named?]))
}

/// The place of a day in [`DAYS`]. Cron writes a number, where 0 and 7 are Sunday, or three letters.
fn weekday(written: &str) -> Option<usize> {
    if let Some(number) = number(written, 7) {
        return Some((usize::try_from(number).ok()? + 6) % 7);
    }
    DAYS.iter().position(|day| written.len() == 3 && day[..3].eq_ignore_ascii_case(written))
}

/// A number of digits alone.
fn number(digits: &str, most: u32) -> Option<u32> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number <= most)
}

fn ordinal(day: u32) -> String {
    let end = match (day % 10, day % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{day}{end}")
}

fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

fn interval_in_words(every: Duration) -> Option<String> {
    let seconds = Some(every.as_secs()).filter(|_| every.subsec_nanos() == 0)?;
    let is_several = |unit: u64| seconds.is_multiple_of(unit) && seconds / unit > 1;
    // 'every hour' and 'every day' would be at a time of the clock.
    Some(match seconds {
        60 => "every minute".to_owned(),
        _ if is_several(86_400) => format!("every {} days", seconds / 86_400),
        _ if is_several(3600) => format!("every {} hours", seconds / 3600),
        _ if is_several(60) => format!("every {} minutes", seconds / 60),
        1 => "every 1 second".to_owned(),
        _ => format!("every {seconds} seconds"),
    })
}

#[cfg(test)]
mod tests {
    use hob_core::Zone;

    use super::*;
    use crate::schedule::ScheduleType;

    fn told(kind: ScheduleType, value: &str) -> Option<String> {
        in_words(&ScheduleSpec::parse(kind, value, &Zone::UTC).unwrap())
    }

    #[test]
    fn common_schedules_have_words() {
        for (value, words) in [
            ("0 9 * * MON-FRI", Some("weekdays at 09:00")),
            ("30 7 * * *", Some("every day at 07:30")),
            ("0 8,18 * * *", Some("every day at 08:00 and 18:00")),
            ("0 10 * * 6,0", Some("weekends at 10:00")),
            ("0 18 * * 1,4", Some("Mondays and Thursdays at 18:00")),
            ("0 9 * * SUN", Some("Sundays at 09:00")),
            ("0 9 1,15 * *", Some("on the 1st and 15th of every month at 09:00")),
            ("0 9 L * *", Some("on the last day of every month at 09:00")),
            ("0 9 * * 1#1", Some("on the first Monday of every month at 09:00")),
            ("0 17 * * 5#L", Some("on the last Friday of every month at 17:00")),
            ("0 9 * * 1#1,MON#3", Some("on the first and third Monday of every month at 09:00")),
            ("0 9 * * 1#1,2#3", None),
            ("0 9 15,L * *", Some("on the 15th and last day of every month at 09:00")),
            ("0 9 LW * *", Some("on the last weekday of every month at 09:00")),
            ("0 9 1W * *", Some("on the first weekday of every month at 09:00")),
            ("0 * * * *", Some("every hour")),
            ("*/15 * * * *", None),
            ("0 9 1 * MON", None),
            ("0 9 1 1 *", None),
            ("0 0 9 * * *", None),
            ("@daily", None),
        ] {
            assert_eq!(told(ScheduleType::Cron, value).as_deref(), words, "{value}");
        }
        for (value, words) in [
            ("900", "every 15 minutes"),
            ("1h", "every 60 minutes"),
            ("24h", "every 24 hours"),
            ("48h", "every 2 days"),
            ("60", "every minute"),
            ("90", "every 90 seconds"),
        ] {
            assert_eq!(told(ScheduleType::Interval, value).as_deref(), Some(words), "{value}");
        }
        assert_eq!(told(ScheduleType::Once, "2099-01-01T09:00"), None);
    }
}
