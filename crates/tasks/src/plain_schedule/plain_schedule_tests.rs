use proptest::prelude::*;

use super::*;
use crate::schedule::Schedule;
use crate::schedule_text::in_words;

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
        ("on the 3rd in the evening at 9", Cron, "0 21 3 * *"),
        ("last day of the month 18:00", Cron, "0 18 L * *"),
        ("first monday 09:00", Cron, "0 9 * * 1#1"),
        ("every first monday of the month at 09:00", Cron, "0 9 * * 1#1"),
        ("second tuesday 09:00", Cron, "0 9 * * 2#2"),
        ("last friday 17:00", Cron, "0 17 * * 5#L"),
        ("at 9:00 on the last friday and at 18:00", Cron, "0 9,18 * * 5#L"),
        ("last friday of the month at 9:00 and 18:00", Cron, "0 9,18 * * 5#L"),
        ("last friday of the month at 9:00 and last friday of the month at 18:00", Cron, "0 9,18 * * 5#L"),
        ("9:00 monday to friday and 18:00", Cron, "0 9,18 * * 1-5"),
        ("9:00 on the first monday and 18:00", Cron, "0 9,18 * * 1#1"),
        ("9:00 on the last day of the month and 18:00", Cron, "0 9,18 L * *"),
        ("monday and thursday 9:00 and monday and thursday 18:00", Cron, "0 9,18 * * 1,4"),
        ("every second tuesday of the month 9:00", Cron, "0 9 * * 2#2"),
        ("first and third monday 9:00", Cron, "0 9 * * 1#1,1#3"),
        ("fifth friday of the month 9:00", Cron, "0 9 * * 5#5"),
        ("1st of every month at 9am", Cron, "0 9 1 * *"),
        ("every 15th of the month 9:00", Cron, "0 9 15 * *"),
        ("every 15 of the month 9:00", Cron, "0 9 15 * *"),
        ("on the first day of every month at 9:00", Cron, "0 9 1 * *"),
        ("start of the month 9:00", Cron, "0 9 1 * *"),
        ("at the end of the month at 18:00", Cron, "0 18 L * *"),
        ("monthly on day 15 at 9:00", Cron, "0 9 15 * *"),
        ("15th and last day of the month 9:00", Cron, "0 9 15,L * *"),
        ("last working day of the month 17:00", Cron, "0 17 LW * *"),
        ("first weekday of the month 9:00", Cron, "0 9 1W * *"),
        ("business days 9:00", Cron, "0 9 * * 1-5"),
        ("every week day at 9", Cron, "0 9 * * 1-5"),
        ("mon/wed/fri 9:00", Cron, "0 9 * * 1,3,5"),
        ("monday thru friday at eight", Cron, "0 8 * * 1-5"),
        ("weekdays at 8 and 18", Cron, "0 8,18 * * 1-5"),
        ("9 o'clock daily", Cron, "0 9 * * *"),
        ("nightly 2:00", Cron, "0 2 * * *"),
        ("at midnight", Cron, "0 0 * * *"),
        ("daily at noon", Cron, "0 12 * * *"),
        ("once a day at 9:00", Cron, "0 9 * * *"),
        ("once a day on mondays 9:00", Cron, "0 9 * * 1"),
        ("once a day at 9:00 on mondays and fridays", Cron, "0 9 * * 1,5"),
        ("once daily on the 1st at 9:00", Cron, "0 9 1 * *"),
        ("once every day at 9:00 from monday to friday", Cron, "0 9 * * 1-5"),
        ("once a day at 1 at night", Cron, "0 1 * * *"),
        ("every evening at 8, once a day", Cron, "0 20 * * *"),
        ("once every monday at 9", Cron, "0 9 * * 1"),
        ("once every 2 hours", Interval, "2h"),
        ("once a month on the 1st 9:00", Cron, "0 9 1 * *"),
        ("once a week on friday at 17:00", Cron, "0 17 * * 5"),
        ("twice a day at 8:00 and 18:00", Cron, "0 8,18 * * *"),
        ("two times a day at 8 and 18", Cron, "0 8,18 * * *"),
        ("one time a day at 9", Cron, "0 9 * * *"),
        ("once an hour", Cron, "0 * * * *"),
        ("twice a week on monday and thursday 9:00", Cron, "0 9 * * 1,4"),
        ("twice a month on the first and third monday 9:00", Cron, "0 9 * * 1#1,1#3"),
        ("every evening at 7 and 9", Cron, "0 19,21 * * *"),
        ("every morning at 7 and every evening at 9", Cron, "0 7,21 * * *"),
        ("at 7 every morning and at 9 every evening", Cron, "0 7,21 * * *"),
        ("every morning at 8 and every evening at 8", Cron, "0 8,20 * * *"),
        ("every morning and evening at 8", Cron, "0 8,20 * * *"),
        ("every morning and every evening at 8", Cron, "0 8,20 * * *"),
        ("weekday mornings at 8 and evenings at 6", Cron, "0 8,18 * * 1-5"),
        ("weekdays at 8 in the morning and at 6 in the evening", Cron, "0 8,18 * * 1-5"),
        ("monday morning and friday morning at 8", Cron, "0 8 * * 1,5"),
        ("every evening at 8 on mondays", Cron, "0 20 * * 1"),
        ("weekly at 9:00 on monday mornings", Cron, "0 9 * * 1"),
        ("every night at 10", Cron, "0 22 * * *"),
        ("every night at 1", Cron, "0 1 * * *"),
        ("sunday night at 11", Cron, "0 23 * * 0"),
        ("every afternoon at 3", Cron, "0 15 * * *"),
        ("every afternoon at 18:00", Cron, "0 18 * * *"),
        ("at 7 every evening", Cron, "0 19 * * *"),
        ("at 7:30 on monday and friday evening", Cron, "30 19 * * 1,5"),
        ("daily at 8, 12 and 18", Cron, "0 8,12,18 * * *"),
        ("weekdays at 8, 12, and 18", Cron, "0 8,12,18 * * 1-5"),
        ("daily at 9 o'clock and 15", Cron, "0 9,15 * * *"),
        ("3 times a day at 8:00, 12:00 and 18:00", Cron, "0 8,12,18 * * *"),
        ("at 8:00 and 18:00, 2 times a day", Cron, "0 8,18 * * *"),
        ("9:00 on the 1, 15 and 20 of every month", Cron, "0 9 1,15,20 * *"),
        ("1st and 3rd monday of the month 9:00", Cron, "0 9 * * 1#1,1#3"),
        ("on the first and the third monday 9:00", Cron, "0 9 * * 1#1,1#3"),
        ("first and last friday 9:00", Cron, "0 9 * * 5#1,5#L"),
        ("every day from monday to friday at 9:00", Cron, "0 9 * * 1-5"),
        ("every day at 9:00 from monday to friday", Cron, "0 9 * * 1-5"),
        ("daily on weekdays at 9:00", Cron, "0 9 * * 1-5"),
        ("once a day on weekdays at 9", Cron, "0 9 * * 1-5"),
        ("twice a day on weekdays at 8 and 18", Cron, "0 8,18 * * 1-5"),
        ("daily at quarter to 9", Cron, "45 8 * * *"),
        ("every evening at half past eight", Cron, "30 20 * * *"),
        ("daily at a quarter past 8pm", Cron, "15 20 * * *"),
        ("daily at 12 noon", Cron, "0 12 * * *"),
        ("daily at 12:00 noon", Cron, "0 12 * * *"),
        ("daily at 12 midnight", Cron, "0 0 * * *"),
        ("on mondays at 9 o'clock in the evening", Cron, "0 21 * * 1"),
        ("the 1st at 9 and 15 o'clock", Cron, "0 9,15 1 * *"),
        ("from monday to friday at 9:00", Cron, "0 9 * * 1-5"),
        ("every second of the month 9:00", Cron, "0 9 2 * *"),
        ("every 3 hours between 9 and 17", Cron, "0 9,12,15 * * *"),
        ("every hour from 9:30 to 12:30 on weekdays", Cron, "30 9,10,11,12 * * 1-5"),
        ("every 3 hours between 9:30 and 17", Cron, "30 9,12,15 * * *"),
        ("every 2 hours from monday to friday", Cron, "0 */2 * * 1-5"),
        ("every hour from 1pm to 3pm", Cron, "0 13,14,15 * * *"),
        ("weekdays hourly 9-11", Cron, "0 9,10,11 * * 1-5"),
        ("every 15 minutes between 9am and 5pm", Cron, "*/15 9-16 * * *"),
        ("every 20 minutes from 9 to 10", Cron, "*/20 9 * * *"),
        ("every 30 minutes on weekdays", Cron, "*/30 * * * 1-5"),
        ("hourly on weekdays", Cron, "0 * * * 1-5"),
        ("every 2 hours on monday and friday", Cron, "0 */2 * * 1,5"),
        ("monday 9:00 morning", Cron, "0 9 * * 1"),
        ("friday 6 o'clock evening", Cron, "0 18 * * 5"),
        ("weekdays at 8 every morning", Cron, "0 8 * * 1-5"),
        ("daily at 7 every evening", Cron, "0 19 * * *"),
        ("every day at 1 every night", Cron, "0 1 * * *"),
        ("at 8 and 9 every morning", Cron, "0 8,9 * * *"),
        ("at 8:00 and 18:00 on weekdays", Cron, "0 8,18 * * 1-5"),
        ("daily on weekdays at 8:00 and 18:00", Cron, "0 8,18 * * 1-5"),
        ("daily at 9:00, monday to friday", Cron, "0 9 * * 1-5"),
        ("every morning and night at 8", Cron, "0 8,20 * * *"),
        ("mon, wed and fri at 9", Cron, "0 9 * * 1,3,5"),
        ("Monday, Wednesday & Friday @ 9 AM", Cron, "0 9 * * 1,3,5"),
        ("mondays and wednesdays at 9, 12 and 18", Cron, "0 9,12,18 * * 1,3"),
        ("twice daily at 9am and 5pm", Cron, "0 9,17 * * *"),
        ("2x daily at 8 and 18", Cron, "0 8,18 * * *"),
        ("three times a day at 8, 13 and 20", Cron, "0 8,13,20 * * *"),
        ("twice a day on mondays at 9 and 17", Cron, "0 9,17 * * 1"),
        ("twice a day at 8 and 18 on weekdays", Cron, "0 8,18 * * 1-5"),
        ("3 times a week on mon, wed and fri at 9", Cron, "0 9 * * 1,3,5"),
        ("twice a month on the 1st and 15th at 9:00", Cron, "0 9 1,15 * *"),
        ("monday at 9 and thursday at 9", Cron, "0 9 * * 1,4"),
        ("monday 9:00 to friday 9:00", Cron, "0 9 * * 1-5"),
        ("saturday and sunday at 10am", Cron, "0 10 * * 6,0"),
        ("every weekend at 10", Cron, "0 10 * * 6,0"),
        ("sunday to thursday at 9", Cron, "0 9 * * 1,2,3,4,0"),
        ("weekdays and saturday at 8", Cron, "0 8 * * 1,2,3,4,5,6"),
        ("mornings and evenings at 8", Cron, "0 8,20 * * *"),
        ("every day, morning and evening, at 8", Cron, "0 8,20 * * *"),
        ("every sunday evening at 6", Cron, "0 18 * * 0"),
        ("every friday at 5 in the afternoon", Cron, "0 17 * * 5"),
        ("saturday mornings at 10", Cron, "0 10 * * 6"),
        ("every noon", Cron, "0 12 * * *"),
        ("every midnight", Cron, "0 0 * * *"),
        ("daily at midday", Cron, "0 12 * * *"),
        ("noon and midnight", Cron, "0 0,12 * * *"),
        ("weekends at noon", Cron, "0 12 * * 6,0"),
        ("weekdays and weekends at midnight", Cron, "0 0 * * *"),
        ("last of the month at 18:00", Cron, "0 18 L * *"),
        ("first and last of the month at 9", Cron, "0 9 1,L * *"),
        ("the first of every month at 9am", Cron, "0 9 1 * *"),
        ("monthly at 9:00 on the 15th", Cron, "0 9 15 * *"),
        ("end of month at 18:00", Cron, "0 18 L * *"),
        ("every last friday of the month at 5pm", Cron, "0 17 * * 5#L"),
        ("every 2nd and 4th tuesday at 6pm", Cron, "0 18 * * 2#2,2#4"),
        ("every day of the month at 9", Cron, "0 9 * * *"),
        ("on the 1st of the month at 9 and on the 15th of the month at 9", Cron, "0 9 1,15 * *"),
        ("every day of the week at 9", Cron, "0 9 * * *"),
        ("weekdays only at 9", Cron, "0 9 * * 1-5"),
        ("every hour on the hour", Cron, "0 * * * *"),
        ("hourly every day from 9 to 11", Cron, "0 9,10,11 * * *"),
        ("every 4 hours between midnight and noon", Cron, "0 0,4,8,12 * * *"),
        ("every 15 minutes every day", Cron, "*/15 * * * *"),
        ("every 2 hrs", Interval, "2h"),
        ("every 90m", Interval, "90m"),
        ("every fortnight", Interval, "336h"),
        ("every two hours", Interval, "2h"),
        ("every 2 h", Interval, "2h"),
        ("every half-hour", Interval, "30m"),
        ("every half hour", Interval, "30m"),
        ("every 15min", Interval, "15m"),
        ("every 2h", Interval, "2h"),
        ("every other day", Interval, "48h"),
        ("every third day", Interval, "72h"),
        ("every other week", Interval, "336h"),
        ("fortnightly", Interval, "336h"),
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
        "9:00 on monday and thursday 18:00",
        "9:00 on the 1st and 15th and 18:00",
        "last friday 9:00 and first friday 18:00",
        "every morning at 9 and every friday at 10",
        "every morning at 9 and friday morning at 9",
        "every morning 9:00 and friday 10:00",
        "monday evening at 9 and tuesday at 9",
        "at 9 monday and at 9 tuesday evening",
        "8:00 daily and 18:00 on mondays",
        "every day at 9:00 and monday at 9:00",
        "9:00 and friday 18:00",
        "at 8 and on mondays at 18",
        "mondays at 9 and 10, and wednesdays at 17",
        "9:00, monday 18:00",
        "9:00 and friday 9:00",
        "at 9 and on fridays",
        "8:00 and 18:00 and on weekdays",
    ] {
        let expected =
            "is not possible: a task cannot have different times on different days; create a task for each";
        let error = parsed(text).unwrap_err();
        assert!(error.ends_with(expected), "{text}: {error}");
    }
}

#[test]
fn every_day_and_certain_days_contradict_each_other() {
    for text in [
        "every day at 8:00 and 18:00 on weekdays",
        "weekdays at 8:00 and 18:00 every day",
        "daily at 8 and weekends",
        "every day at 9:00 on saturday and sunday",
        "daily on mondays at 9:00",
        "daily at 9:00 and 18:00 on the 1st",
        "every evening at 8 and on mondays",
        "every evening at 8 and 9 on mondays",
        "once a day every day on mondays 9:00",
    ] {
        let expected = "is not possible: it names both every day and certain days; name only those days, as in 'weekdays 8:00 and \
                        18:00'";
        let error = parsed(text).unwrap_err();
        assert!(error.ends_with(expected), "{text}: {error}");
    }
}

#[test]
fn the_example_for_a_missing_time_is_a_schedule() {
    for (text, example) in [
        ("weekdays", "weekdays 09:00"),
        ("every night", "every night 21:00"),
        ("morning and evening", "morning and evening 09:00"),
        ("once a day", "once a day 09:00"),
        ("once a day on mondays", "once a day on mondays 09:00"),
        ("every morning and afternoon", "daily 09:00"),
        ("monday morning and friday evening", "daily 09:00"),
    ] {
        let expected = format!("'{text}' has no time of day; add one, as in '{example}'");
        let error = parsed(text).unwrap_err();
        assert!(error.ends_with(&expected), "{text}: {error}");
        parsed(example).unwrap();
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
        ("every morning at 12", "the time is in another part of the day"),
        ("every evening at 12:00", "the time is in another part of the day"),
        ("every morning at 8 and 18:00", "the time is in another part of the day"),
        ("every morning at 7 and every evening", "name a time for each part of the day"),
        ("every afternoon at 3 and 4 and every evening", "name a time for each part of the day"),
        ("every morning and evening at 7 and 9", "name a time for each part of the day"),
        ("weekdays at 9 and evenings", "name a time for each part of the day"),
        ("monday at 9 and tuesday evening", "name a time for each part of the day"),
        ("7 in the morning and evening", "name a time for each part of the day"),
        ("daily at 8 and every evening at 9", "name a time for each part of the day"),
        ("at 7 every evening and at 9", "name a time for each part of the day"),
        ("monday morning and friday evening at 8", "name a time for each part of the day"),
        ("every morning and friday evening at 8:00 and 20:00", "name a time for each part of the day"),
        ("every morning and night at 5", "name a time for each part of the day"),
        ("every morning and night at 5:00", "name a time for each part of the day"),
        ("every afternoon and evening at 5", "name a time for each part of the day"),
        ("weekdays at 8 and every morning", "name a time for each part of the day"),
        ("monday evening and friday at 8", "name a time for each part of the day"),
        ("monday evening, friday at 8", "name a time for each part of the day"),
        ("every evening and on mondays at 8", "name a time for each part of the day"),
        ("every morning and every friday at 8", "name a time for each part of the day"),
        ("mondays and every evening at 8", "name a time for each part of the day"),
        ("weekdays and evenings at 8", "name a time for each part of the day"),
        ("at 8 every evening and friday", "name a time for each part of the day"),
        ("at 7 and 9 evening", "write am or pm at each hour"),
        ("daily at 6 and 6", "write am or pm at each hour"),
        ("saturday night at 12", "after midnight it is the next day"),
        ("fridays at 1 every night", "after midnight it is the next day"),
        ("friday at midnight", "midnight can be the beginning or the end of a day; write 'friday 00:00'"),
        ("weekdays at noon and midnight", "midnight can be the beginning or the end of a day"),
        ("last day of the month at midnight", "midnight can be the beginning or the end of a day"),
        ("friday morning at 8 and friday night at 1", "after midnight it is the next day"),
        ("friday night at 1am", "after midnight it is the next day"),
        ("friday at 1 at night", "after midnight it is the next day"),
        ("daily 13:00 in the morning", "the time is in another part of the day"),
        ("daily 7am in the evening", "the time is in another part of the day"),
        ("daily 12 in the evening", "the time is in another part of the day"),
        ("daily 25:00 in the morning", "'25:00' is not a time of day"),
        ("weekdays in the evening", "no time of day; add one, as in 'weekdays in the evening 21:00'"),
        ("weekdys at 7 in the morning", "Did you mean 'weekdays at 7 in the morning'?"),
        ("weekday nights at midnight", "after midnight it is the next day"),
        ("tomorrow 9:00", "a single run needs a date, as in '2027-01-31 09:00'"),
        ("tonight at 9", "a single run needs a date, as in '2027-01-31 09:00'"),
        ("next monday at 9", "a single run needs a date, as in '2027-01-31 09:00'"),
        ("in 10 minutes", "a date for a single run, such as '2027-01-31 09:00'"),
        ("2099-01-31", "has no time"),
        ("monthly 09:00", "name the day, as in 'monthly on the 1st 09:00'"),
        ("every 2 months", "use the type cron"),
        ("every second month 9:00", "use the type cron"),
        ("every other month 9:00", "use the type cron"),
        ("every 1 month at 9:00", "use the type cron"),
        ("3 months 9:00", "use the type cron"),
        ("last month 9:00", "use the type cron"),
        ("first month 9:00", "use the type cron"),
        ("once at 9:00", "a single run needs a date, as in '2027-01-31 09:00'"),
        ("daily at 8am and 5", "write am or pm at each hour, as in 'daily 9am and 5pm'"),
        ("at 7 and 9 in the evening", "write am or pm at each hour"),
        ("at 7:00 and 9:00 in the evening", "write am or pm at each hour"),
        ("twice daily at 9 and 5", "write am or pm at each hour"),
        ("daily at noon and 6", "write am or pm at each hour"),
        ("daily at 9am, 12 and 3pm", "write am or pm at each hour"),
        ("every hour from 1 to 5pm", "write am or pm at each hour"),
        ("the 1st at 9 and 15", "Did you mean 'the 1st at 9 and 15:00'?"),
        ("the 1st at 9 o'clock and 15", "Did you mean 'the 1st at 9 o'clock and 15:00'?"),
        ("on the 1st at 9, 12 and 15", "Did you mean 'on the 1st at 9, 12:00 and 15:00'?"),
        ("on the 1st at 9am, 12 and 3pm", "Did you mean 'on the 1st at 9am, 12:00 and 3pm'?"),
        ("monthly on the 1st at 8, 18", "Did you mean 'monthly on the 1st at 8, 18:00'?"),
        ("9:00, 15 and the last day of the month", "is not a schedule"),
        ("on the 5 at 9", "is not a schedule. Write one"),
        ("8:00, 15 of every month", "name the day, as in 'monthly on the 1st 09:00'"),
        ("on the 1st at 8:00 15", "'8:00 15' is not a time of day"),
        ("daily at 7 30", "'7 30' is not a time of day"),
        ("daily at 12:00 midnight", "'12:00 midnight' is not a time of day"),
        ("on the 1st and on mondays at 9:00", "both days of the month and days of the week"),
        ("mondays 9:00 and the 1st 9:00", "both days of the month and days of the week"),
        ("on the 1st at 9:00 and on the last friday at 9:00", "both days of the month and days of the week"),
        ("every month on the 1st and weekdays 9:00", "both days of the month and days of the week"),
        ("second last friday of the month 17:00", "it cannot count from the end of the month"),
        ("second last day of the month 9:00", "it cannot count from the end of the month"),
        ("two last days of the month 9:00", "it cannot count from the end of the month"),
        ("daily at quarter to 12pm", "write the time in digits, as in 'daily 8:45'"),
        ("daily at half past noon", "write the time in digits, as in 'daily 8:45'"),
        ("daily at 9 and weekdays at 9", "a task cannot have different times on different days"),
        ("monday between 9 and 17", "say how often"),
        ("every 2 hours from 9:00", "name two hours of one day"),
        ("between monday and friday 9:00", "is not a schedule. Write one"),
        ("twice a week monday and thursday at 9:00 and 18:00", "name each time or day"),
        ("quarterly", "words cannot name months or longer times; use the type cron, as in '0 9 1 */3 *'"),
        ("every year on march 1st 9:00", "use the type cron"),
        ("every other monday 9:00", "it cannot leave out weeks on a certain day"),
        ("every 2 weeks on monday 9:00", "'every 2 weeks' counts from the creation of the task"),
        ("daily except sunday 9:00", "name the days on which it runs"),
        ("twice a day", "name each time or day, as in 'daily 8:00 and 18:00'"),
        ("twice a week at 9:00", "name each time or day"),
        ("3 times a day at 8:00 and 18:00", "name each time or day"),
        ("once a day at 8:00 and 18:00", "name each time or day"),
        ("once a day on mondays at 8:00 and 18:00", "name each time or day"),
        ("daily 8:00 and", "it ends with 'and'; name what follows, as in 'monday and thursday 9:00'"),
        ("monday and thursday 9:00 and on the", "it ends with 'and'"),
        ("weekdays 9:00 &", "it ends with 'and'"),
        ("every 15 minutes and", "it ends with 'and'"),
        ("daily from 9:00 to 17:00", "say how often, as in 'every 2 hours between 9:00 and 17:00'"),
        ("every hour between 17 and 9", "the earlier one first"),
        ("every 7 minutes on weekdays", "must divide an hour"),
        ("every 5 hours on weekdays", "must divide a day"),
        ("every 10 minutes between 9:30 and 17:00", "from the full hour"),
        ("every weekday morning", "add one, as in 'every weekday morning 09:00'"),
        ("1st of every month", "add one, as in '1st of every month 09:00'"),
        ("mon-fri 7", "Did you mean 'mon - fri 07:00'?"),
        ("every hour at 15", "is not a schedule"),
        ("weekly 09:00", "name the day, as in 'monday 09:00'"),
        ("at the end of every week at 17:00", "name the day, as in 'monday 09:00'"),
        ("weekly on the last day 17:00", "name the day, as in 'monday 09:00'"),
        ("weekly on the 1st 9:00", "name the day, as in 'monday 09:00'"),
        ("weekly on the first monday 9:00", "name the day, as in 'monday 09:00'"),
        ("daily 7:00 and 8:30", "create a task for each time"),
        ("every 15 minutes at 9:00", "an interval has no time of day"),
        ("every 2 days in the morning", "an interval has no time of day"),
        ("every 30 seconds at night", "an interval has no time of day"),
        ("every other evening at 8", "is not a schedule"),
        ("every hour in the morning", "is not a schedule"),
        ("biweekly on monday 9:00", "'biweekly' and 'bimonthly' have two meanings"),
        ("every fortnight on monday 9:00", "it cannot leave out weeks on a certain day"),
        ("monday to monday 9:00", "is not a schedule"),
        ("every hour and 15 minutes", "is not a schedule"),
        ("every january 1st at 9", "use the type cron"),
        ("every hour from 9 to 5", "the earlier one first"),
        ("last week of the month 9:00", "is not a schedule"),
        ("daily 20:00 pm", "'20:00 pm' is not a time of day"),
        ("every second monday 9:00", "it can mean once a month or once in several weeks"),
        ("every second day of the month 9:00", "it can mean once a month or once in several days"),
        ("second evening at 8", "is not a schedule"),
        ("first in the morning at 8", "is not a schedule"),
        ("9:00 UTC daily", "words cannot name a time zone"),
        ("3rd evening at 8", "is not a schedule"),
        ("first 5 days of the month 9:00", "name each day, as in 'monthly on the 1st and 15th 09:00'"),
        ("last 5 of the month 9:00", "name each day, as in 'monthly on the 1st and 15th 09:00'"),
        ("weekdays from monday to thursday 9:00", "is not a schedule"),
        ("weekends on saturday 9:00", "is not a schedule"),
        ("every m from 9 to 17", "is not a schedule"),
        ("every hour from 9 to 11 a m", "is not a schedule"),
        ("from 9 to 11 a m", "is not a schedule"),
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
        Just("last weekday of the month".to_owned()),
        Just("first weekday of the month".to_owned()),
        Just("first and third monday of the month".to_owned()),
        Just("15th and last day of the month".to_owned()),
    ]
}

#[test]
fn days_of_a_month_that_are_no_dates_come_every_month() {
    let after = "2027-01-01T00:00:00Z".parse().unwrap();
    let days = |text: &str| -> Vec<String> {
        let read = PlainSchedule::parse(text).unwrap();
        let schedule = Schedule::from_now(read.kind, &read.value, Zone::UTC, after).unwrap();
        schedule.upcoming(after).take(5).map(|slot| slot.to_string()[..10].to_owned()).collect()
    };
    assert_eq!(
        days("last working day of the month 17:00"),
        ["2027-01-29", "2027-02-26", "2027-03-31", "2027-04-30", "2027-05-31"]
    );
    // 2027-05-01 is a Saturday.
    assert_eq!(
        days("first working day of the month 9:00"),
        ["2027-01-01", "2027-02-01", "2027-03-01", "2027-04-01", "2027-05-03"]
    );
    assert_eq!(
        days("first and third monday 9:00"),
        ["2027-01-04", "2027-01-18", "2027-02-01", "2027-02-15", "2027-03-01"]
    );
    assert_eq!(
        days("15th and last day of the month 9:00"),
        ["2027-01-15", "2027-01-31", "2027-02-15", "2027-02-28", "2027-03-15"]
    );
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
