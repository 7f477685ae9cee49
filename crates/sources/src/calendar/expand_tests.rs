//! The examples of RFC 5545, section 3.8.5.3, and rules that never end.

use jiff::civil::datetime;
use proptest::prelude::*;

use super::*;
use crate::calendar::time_value::TimeValue;

/// Nine in the morning of 2 September 1997, a Tuesday, as in the standard.
fn start() -> DateTime {
    datetime(1997, 9, 2, 9, 0, 0, 0)
}

fn expand_from(start: DateTime, rule: &str, to: DateTime) -> Expansion {
    let rule = RecurrenceRule::parse(rule).unwrap();
    let until = rule.until.map(|until| match until {
        TimeValue::Date(date) => date.at(23, 59, 59, 0),
        TimeValue::Local(time) | TimeValue::Utc(time) => time,
    });
    expand(start, &rule, until, Window { from: start, to }, &mut StepBudget::default())
}

/// The first dates as `YEAR-MONTH-DAY`.
fn dates_from(start: DateTime, rule: &str, count: usize) -> Vec<String> {
    let expansion = expand_from(start, rule, datetime(2020, 1, 1, 0, 0, 0, 0));
    expansion.starts.iter().take(count).map(|start| start.date().to_string()).collect()
}

fn dates(rule: &str, count: usize) -> Vec<String> {
    dates_from(start(), rule, count)
}

#[test]
fn days_repeat_with_a_count_an_end_or_an_interval() {
    let ten = dates("FREQ=DAILY;COUNT=10", 100);
    assert_eq!((ten.len(), ten[0].as_str(), ten[9].as_str()), (10, "1997-09-02", "1997-09-11"));
    let until = dates("FREQ=DAILY;UNTIL=19971224T000000Z", 1_000);
    assert_eq!((until.len(), until.last().unwrap().as_str()), (113, "1997-12-23"));
    assert_eq!(
        dates("FREQ=DAILY;INTERVAL=10;COUNT=5", 100),
        ["1997-09-02", "1997-09-12", "1997-09-22", "1997-10-02", "1997-10-12"]
    );
    let januaries =
        dates_from(datetime(1998, 1, 1, 9, 0, 0, 0), "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1", 1_000);
    assert_eq!((januaries.len(), januaries[31].as_str()), (93, "1999-01-01"));
}

#[test]
fn weeks_begin_on_the_day_that_the_rule_says() {
    assert_eq!(
        dates("FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", 100),
        [
            "1997-09-02",
            "1997-09-04",
            "1997-09-16",
            "1997-09-18",
            "1997-09-30",
            "1997-10-02",
            "1997-10-14",
            "1997-10-16"
        ]
    );
    let august = datetime(1997, 8, 5, 9, 0, 0, 0);
    assert_eq!(
        dates_from(august, "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", 100),
        ["1997-08-05", "1997-08-10", "1997-08-19", "1997-08-24"]
    );
    assert_eq!(
        dates_from(august, "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", 100),
        ["1997-08-05", "1997-08-17", "1997-08-19", "1997-08-31"]
    );
}

#[test]
fn months_repeat_by_weekday_and_by_day() {
    let friday = datetime(1997, 9, 5, 9, 0, 0, 0);
    assert_eq!(
        dates_from(friday, "FREQ=MONTHLY;COUNT=4;BYDAY=1FR", 100),
        ["1997-09-05", "1997-10-03", "1997-11-07", "1997-12-05"]
    );
    let sunday = datetime(1997, 9, 7, 9, 0, 0, 0);
    assert_eq!(
        dates_from(sunday, "FREQ=MONTHLY;INTERVAL=2;COUNT=6;BYDAY=1SU,-1SU", 100),
        ["1997-09-07", "1997-09-28", "1997-11-02", "1997-11-30", "1998-01-04", "1998-01-25"]
    );
    let end = datetime(1997, 9, 28, 9, 0, 0, 0);
    assert_eq!(
        dates_from(end, "FREQ=MONTHLY;BYMONTHDAY=-3", 4),
        ["1997-09-28", "1997-10-29", "1997-11-28", "1997-12-29"]
    );
    assert_eq!(
        dates_from(datetime(1997, 9, 30, 9, 0, 0, 0), "FREQ=MONTHLY;COUNT=5;BYMONTHDAY=1,-1", 100),
        ["1997-09-30", "1997-10-01", "1997-10-31", "1997-11-01", "1997-11-30"]
    );
    // The start comes first, although it is no Friday the 13th.
    assert_eq!(
        dates("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", 4),
        ["1997-09-02", "1998-02-13", "1998-03-13", "1998-11-13"]
    );
    // Months without a 31st are skipped.
    assert_eq!(
        dates_from(datetime(1997, 10, 31, 9, 0, 0, 0), "FREQ=MONTHLY;COUNT=3", 100),
        ["1997-10-31", "1997-12-31", "1998-01-31"]
    );
}

#[test]
fn positions_choose_from_the_dates_of_a_period() {
    let thursday = datetime(1997, 9, 4, 9, 0, 0, 0);
    assert_eq!(
        dates_from(thursday, "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", 100),
        ["1997-09-04", "1997-10-07", "1997-11-06"]
    );
    assert_eq!(
        dates_from(datetime(1997, 9, 29, 9, 0, 0, 0), "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", 4),
        ["1997-09-29", "1997-10-30", "1997-11-27", "1997-12-30"]
    );
    assert_eq!(dates("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=366", 4), ["1997-09-02"], "no month has so many");
}

#[test]
fn years_repeat_by_month_and_weekday() {
    let june = datetime(1997, 6, 10, 9, 0, 0, 0);
    assert_eq!(
        dates_from(june, "FREQ=YEARLY;COUNT=4;BYMONTH=6,7", 100),
        ["1997-06-10", "1997-07-10", "1998-06-10", "1998-07-10"]
    );
    assert_eq!(
        dates_from(datetime(1997, 5, 19, 9, 0, 0, 0), "FREQ=YEARLY;BYDAY=20MO", 3),
        ["1997-05-19", "1998-05-18", "1999-05-17"]
    );
    assert_eq!(
        dates_from(
            datetime(1996, 11, 5, 9, 0, 0, 0),
            "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
            3
        ),
        ["1996-11-05", "2000-11-07", "2004-11-02"]
    );
    assert_eq!(
        dates_from(datetime(1996, 2, 29, 9, 0, 0, 0), "FREQ=YEARLY", 3),
        ["1996-02-29", "2000-02-29", "2004-02-29"]
    );
}

#[test]
fn spans_shorter_than_a_day_repeat_too() {
    let to = datetime(1997, 9, 3, 0, 0, 0, 0);
    let hours = expand_from(start(), "FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", to);
    let hours: Vec<i8> = hours.starts.iter().map(|start| start.hour()).collect();
    assert_eq!(hours, [9, 12, 15]);
    let minutes = expand_from(start(), "FREQ=MINUTELY;INTERVAL=90;COUNT=4", to);
    let minutes: Vec<(i8, i8)> = minutes.starts.iter().map(|start| (start.hour(), start.minute())).collect();
    assert_eq!(minutes, [(9, 0), (10, 30), (12, 0), (13, 30)]);
}

#[test]
fn a_window_long_after_the_start_costs_little() {
    let rule = RecurrenceRule::parse("FREQ=SECONDLY").unwrap();
    let from = datetime(2026, 3, 1, 0, 0, 0, 0);
    let window = Window { from, to: datetime(2026, 3, 1, 0, 0, 3, 0) };
    let mut budget = StepBudget::default();
    let expansion = expand(start(), &rule, None, window, &mut budget);
    assert_eq!(expansion.starts, [0, 1, 2].map(|second| datetime(2026, 3, 1, 0, 0, second, 0)));
    assert!(MAX_TOTAL_STEPS - budget.left < 10);
}

#[test]
fn a_rule_that_never_ends_is_cut() {
    let to = datetime(1998, 9, 2, 0, 0, 0, 0);
    let seconds = expand_from(start(), "FREQ=SECONDLY", to);
    assert_eq!((seconds.starts.len(), seconds.is_cut), (MAX_DATES, true));
    // None of these dates exists, or the first is far away.
    assert!(expand_from(start(), "FREQ=SECONDLY;BYMONTH=8;BYMONTHDAY=31", to).is_cut);
    let mut budget = StepBudget { left: 100 };
    let rule = RecurrenceRule::parse("FREQ=DAILY;COUNT=4000000000").unwrap();
    let window = Window { from: datetime(2026, 1, 1, 0, 0, 0, 0), to: datetime(2026, 1, 2, 0, 0, 0, 0) };
    assert!(expand(start(), &rule, None, window, &mut budget).is_cut);
    let never = expand_from(start(), "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", datetime(9999, 1, 1, 0, 0, 0, 0));
    assert_eq!(never.starts, [start()]);
}

#[test]
fn long_lists_count_as_work() {
    let positions: Vec<String> = (1..=366).map(|position: i32| position.to_string()).collect();
    let text = format!("FREQ=DAILY;COUNT=4000000000;BYSETPOS={}", positions.join(","));
    let rule = RecurrenceRule::parse(&text).unwrap();
    let window = Window { from: datetime(2026, 1, 1, 0, 0, 0, 0), to: datetime(2026, 1, 2, 0, 0, 0, 0) };
    assert!(expand(start(), &rule, None, window, &mut StepBudget::default()).is_cut);
}

proptest! {
    #[test]
    fn any_rule_gives_rising_dates_in_the_window(
        frequency in prop::sample::select(vec!["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "SECONDLY"]),
        interval in 1u32..=u32::MAX,
        small in 1u32..5,
        is_small in any::<bool>(),
        parts in prop::collection::vec(prop::sample::select(vec![
            "COUNT=7", "BYDAY=MO,-1FR,5WE", "BYMONTHDAY=31,-31,1", "BYMONTH=2,12", "BYSETPOS=-1,2", "WKST=SU",
        ]), 0..4),
        year in 1i16..=9999,
    ) {
        let interval = if is_small { small } else { interval };
        let rule = format!("FREQ={frequency};INTERVAL={interval};{}", parts.join(";"));
        let rule = RecurrenceRule::parse(&rule).unwrap();
        let start = datetime(year, 1, 31, 12, 0, 0, 0);
        let window = Window { from: datetime(2026, 1, 1, 0, 0, 0, 0), to: datetime(2027, 1, 1, 0, 0, 0, 0) };
        let expansion = expand(start, &rule, None, window, &mut StepBudget::default());
        prop_assert!(expansion.starts.is_sorted_by(|a, b| a < b));
        prop_assert!(expansion.starts.iter().all(|date| *date >= window.from && *date < window.to));
    }
}
