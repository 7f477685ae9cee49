use proptest::prelude::*;

use super::*;
use crate::schedule_words::in_words;

fn parsed(text: &str) -> Result<(ScheduleType, String), String> {
    let schedule = PlainSchedule::parse(text).map_err(|error| error.to_string())?;
    Ok((schedule.kind, schedule.value))
}

#[test]
fn the_documented_phrases_are_read() {
    use ScheduleType::{Cron, Interval, Once};
    for (text, kind, value) in [
        ("weekdays 07:00", Cron, "0 7 * * 1-5"),
        ("every weekday at 7am", Cron, "0 7 * * 1-5"),
        ("Mon-Fri 07:00", Cron, "0 7 * * 1-5"),
        ("monday to friday, 7 a.m.", Cron, "0 7 * * 1-5"),
        ("daily 7:30", Cron, "30 7 * * *"),
        ("DAILY AT 7.30 PM", Cron, "30 19 * * *"),
        ("every day at 7am", Cron, "0 7 * * *"),
        ("every day at 7", Cron, "0 7 * * *"),
        ("07:00", Cron, "0 7 * * *"),
        ("daily 8:00 and 18:00", Cron, "0 8,18 * * *"),
        ("every day at noon", Cron, "0 12 * * *"),
        ("every day at midnight", Cron, "0 0 * * *"),
        ("12am daily", Cron, "0 0 * * *"),
        ("every morning at 7", Cron, "0 7 * * *"),
        ("every night at 11pm", Cron, "0 23 * * *"),
        ("every night at 1am", Cron, "0 1 * * *"),
        ("friday night at 11pm", Cron, "0 23 * * 5"),
        ("monday morning 5:00", Cron, "0 5 * * 1"),
        ("monday evening 19:30", Cron, "30 19 * * 1"),
        ("weekdays at 7 in the morning", Cron, "0 7 * * 1-5"),
        ("weekdays in the morning at 7:30", Cron, "30 7 * * 1-5"),
        ("daily 7:30 in the evening", Cron, "30 19 * * *"),
        ("monday 19:00 in the evening", Cron, "0 19 * * 1"),
        ("every day at 12 in the afternoon", Cron, "0 12 * * *"),
        ("daily 7 in the morning and 7 in the evening", Cron, "0 7,19 * * *"),
        ("every evening at 7", Cron, "0 19 * * *"),
        ("weekdays in the evening at 7:30", Cron, "30 19 * * 1-5"),
        ("every evening at 13:00", Cron, "0 13 * * *"),
        ("every morning and evening at 7:00 and 19:00", Cron, "0 7,19 * * *"),
        ("daily 5 in the afternoon", Cron, "0 17 * * *"),
        ("monthly on the 15 at night 22:00", Cron, "0 22 15 * *"),
        ("friday at 11 at night", Cron, "0 23 * * 5"),
        ("every day at 1 at night", Cron, "0 1 * * *"),
        ("8:00 and 18:00 on mondays and fridays", Cron, "0 8,18 * * 1,5"),
        ("monday 9:00 and thursday 9:00", Cron, "0 9 * * 1,4"),
        ("monday 9:00 and monday 18:00", Cron, "0 9,18 * * 1"),
        ("every monday at 9:00 and every monday at 18:00", Cron, "0 9,18 * * 1"),
        ("8:00 daily and 18:00", Cron, "0 8,18 * * *"),
        ("9:00 on monday and 18:00", Cron, "0 9,18 * * 1"),
        ("monday and thursday 18:00", Cron, "0 18 * * 1,4"),
        ("Mondays, Thursdays and Sundays at 18:00", Cron, "0 18 * * 1,4,0"),
        ("fri to mon 9:00", Cron, "0 9 * * 1,5,6,0"),
        ("weekly on monday 9:00", Cron, "0 9 * * 1"),
        ("every week on Tue at 09:15", Cron, "15 9 * * 2"),
        ("weekends 10:00", Cron, "0 10 * * 6,0"),
        ("weekdays and weekends 10:00", Cron, "0 10 * * *"),
        ("hourly", Cron, "0 * * * *"),
        ("every hour", Cron, "0 * * * *"),
        ("monthly on the 1st 09:00", Cron, "0 9 1 * *"),
        ("every month on the 1st and 15th at 9:00", Cron, "0 9 1,15 * *"),
        ("on the 3rd at 9:00", Cron, "0 9 3 * *"),
        ("last day of the month 18:00", Cron, "0 18 L * *"),
        ("first monday 09:00", Cron, "0 9 * * 1#1"),
        ("every first monday of the month at 09:00", Cron, "0 9 * * 1#1"),
        ("second tuesday 09:00", Cron, "0 9 * * 2#2"),
        ("last friday 17:00", Cron, "0 17 * * 5#L"),
        ("every 15 minutes", Interval, "15m"),
        ("every minute", Interval, "1m"),
        ("every 30 seconds", Interval, "30s"),
        ("every 1 second", Interval, "1s"),
        ("every 2 hours", Interval, "2h"),
        ("every 3 days", Interval, "72h"),
        ("every 2 weeks", Interval, "336h"),
        ("2099-01-31 09:00", Once, "2099-01-31T09:00"),
        ("once on 2099-01-31 at 9pm", Once, "2099-01-31T21:00"),
        ("2099-01-31 at 9 in the evening", Once, "2099-01-31T21:00"),
        ("2099-01-31T09:00:00+01:00", Once, "2099-01-31T09:00:00+01:00"),
    ] {
        assert_eq!(parsed(text), Ok((kind, value.to_owned())), "{text}");
    }
}

#[test]
fn days_with_times_of_their_own_are_not_mixed() {
    for text in [
        "monday 9:00 and thursday 18:00",
        "9:00 on monday and 18:00 on thursday",
        "monday 9:00 and thursday 18:30",
        "weekdays 7:00, weekends 9:30",
        "monday 9:00 and 18:00 thursday",
        "monthly on the 1st 9:00 and the 15th 18:00",
    ] {
        let expected =
            "is not possible: a task cannot have different times on different days; create a task for each";
        let error = parsed(text).unwrap_err();
        assert!(error.ends_with(expected), "{text}: {error}");
    }
}

#[test]
fn other_words_are_errors_that_help() {
    for (text, reason) in [
        ("", "the schedule is empty; write one such as 'weekdays 07:00'"),
        ("often", "'often' is not a schedule. Write one such as 'weekdays 07:00'"),
        ("weekdys 07:00", "'weekdys 07:00' is not a schedule. Did you mean 'weekdays 07:00'?"),
        ("evry 15 minuts", "Did you mean 'every 15 minutes'?"),
        ("thrusday at 9", "Did you mean 'thursday at 9'?"),
        ("weekdays", "'weekdays' has no time of day; add one, as in 'weekdays 09:00'"),
        ("every night", "'every night' has no time of day; add one, as in 'every night 21:00'"),
        ("every morning 7", "'every morning 7' is not a schedule. Did you mean 'every morning 07:00'?"),
        ("every evening at 13", "the time is in another part of the day"),
        ("every evening at 7am", "the time is in another part of the day"),
        ("every afternoon at 7", "the time is in another part of the day"),
        ("daily 11 in the afternoon", "the time is in another part of the day"),
        ("friday night at 1am", "after midnight it is the next day"),
        ("friday at 1 at night", "after midnight it is the next day"),
        ("daily 13:00 in the morning", "the time is in another part of the day"),
        ("daily 7am in the evening", "the time is in another part of the day"),
        ("daily 12 in the evening", "the time is in another part of the day"),
        ("daily 25:00 in the morning", "'25:00' is not a time of day"),
        ("weekdays in the evening", "no time of day; add one, as in 'weekdays in the evening 21:00'"),
        ("weekdys at 7 in the morning", "Did you mean 'weekdays at 7 in the morning'?"),
        ("weekday nights at midnight", "after midnight it is the next day"),
        ("tomorrow 9:00", "a date for a single run, such as '2027-01-31 09:00'"),
        ("in 10 minutes", "a date for a single run, such as '2027-01-31 09:00'"),
        ("2099-01-31", "has no time"),
        ("monthly 09:00", "name the day, as in 'monthly on the 1st 09:00'"),
        ("every 2 months", "name the day"),
        ("weekly 09:00", "name the day, as in 'monday 09:00'"),
        ("daily 7:00 and 8:30", "create a task for each time"),
        ("every 15 minutes at 9:00", "an interval has no time of day"),
        ("every second monday 9:00", "is not a schedule"),
        ("monthly on the 32nd 09:00", "is not a schedule"),
        ("daily 25:00", "'25:00' is not a time of day; write one from 00:00 to 23:59, as in 'daily 07:30'"),
        ("daily 7:60", "'7:60' is not a time of day"),
        ("daily 13pm", "'13pm' is not a time of day"),
        ("daily 7", "'daily 7' is not a schedule. Did you mean 'daily 07:00'?"),
        ("10 minutes", "'10 minutes' is not a schedule. Did you mean 'every 10 minutes'?"),
        ("monday to 9:00", "is not a schedule"),
        ("every 0 minutes", "more than 0"),
        ("every 4000000000 weeks", "the longest is ten years"),
        ("every 99999999999 minutes", "is not a schedule"),
        ("0 9 * * 1", "is not a schedule"),
        ("2099-01-31T25:00", "is not a date"),
    ] {
        let error = parsed(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let long = parsed(&"monday ".repeat(1000)).unwrap_err();
    assert!(long.contains("is too long") && long.len() < 400, "{long}");
    assert!(!parsed("\u{1b}[2J").unwrap_err().contains('\u{1b}'));
}

/// The days of a phrase.
fn days() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("weekdays".to_owned()),
        Just("every day".to_owned()),
        Just("weekends".to_owned()),
        proptest::sample::subsequence(
            vec!["Mondays", "tuesday", "WED", "thursdays", "fri", "saturday", "Sundays"],
            1..=7
        )
        .prop_map(|days| days.join(" and ")),
        (1_u32..=31).prop_map(|day| format!("monthly on the {day}th")),
        (1_u32..=5, 0_usize..7).prop_map(|(nth, day)| {
            let days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
            format!("{nth}th {}", days[day])
        }),
        Just("last friday of the month".to_owned()),
        Just("last day of the month".to_owned()),
    ]
}

proptest! {
    #[test]
    fn what_is_accepted_is_a_valid_schedule_and_its_words_mean_the_same(
        days in days(), hour in 0_u32..24, minute in 0_u32..60,
    ) {
        let read = PlainSchedule::parse(&format!("{days} at {hour}:{minute:02}")).unwrap();
        let spec = ScheduleSpec::parse(read.kind, &read.value, &Zone::UTC).unwrap();
        let words = in_words(&spec).unwrap();
        let again = PlainSchedule::parse(&words);
        prop_assert_eq!(again.map_err(|error| error.to_string()), Ok(read), "{}", words);
    }

    #[test]
    fn the_words_of_an_interval_mean_the_same(seconds in 1_u32..10_000_000) {
        let every = |value: &str| match ScheduleSpec::parse(ScheduleType::Interval, value, &Zone::UTC).unwrap() {
            ScheduleSpec::Interval { every, .. } => every,
            other => panic!("{other:?}"),
        };
        let spec = ScheduleSpec::parse(ScheduleType::Interval, &seconds.to_string(), &Zone::UTC).unwrap();
        let words = in_words(&spec).unwrap();
        let again = PlainSchedule::parse(&words).unwrap();
        prop_assert_eq!((again.kind, every(&again.value)), (ScheduleType::Interval, every(&seconds.to_string())));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9:. -]{0,60}|\\PC{0,300}") {
        if let Ok(read) = PlainSchedule::parse(&text) {
            ScheduleSpec::parse(read.kind, &read.value, &Zone::UTC).unwrap();
        }
    }
}
