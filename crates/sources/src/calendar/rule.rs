//! Recurrence rules (`RRULE`) as values. Pure.

use jiff::civil::Weekday;

use super::time_value::TimeValue;

/// Entries of one list in a rule. Longer lists are cut.
const MAX_LIST: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frequency {
    Secondly,
    Minutely,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// A weekday, or the `nth` one of a month or year, counted from the end if negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleDay {
    pub nth: Option<i16>,
    pub day: Weekday,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecurrenceRule {
    pub frequency: Frequency,
    /// At least 1.
    pub interval: i64,
    pub count: Option<u32>,
    pub until: Option<TimeValue>,
    pub days: Vec<RuleDay>,
    pub month_days: Vec<i8>,
    pub months: Vec<i8>,
    pub positions: Vec<i32>,
    pub week_start: Weekday,
}

/// Why a rule is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RuleProblem {
    /// A part that is not supported.
    Unsupported(&'static str),
    Invalid,
}

/// The parts that rules may have and that are not followed.
const UNSUPPORTED: [&str; 5] = ["BYSECOND", "BYMINUTE", "BYHOUR", "BYYEARDAY", "BYWEEKNO"];

impl RecurrenceRule {
    pub fn parse(text: &str) -> Result<Self, RuleProblem> {
        let mut rule = RecurrenceRule {
            frequency: Frequency::Yearly,
            interval: 1,
            count: None,
            until: None,
            days: Vec::new(),
            month_days: Vec::new(),
            months: Vec::new(),
            positions: Vec::new(),
            week_start: Weekday::Monday,
        };
        let mut has_frequency = false;
        for part in text.split(';').filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=').ok_or(RuleProblem::Invalid)?;
            let (name, value) = (name.trim().to_ascii_uppercase(), value.trim().to_ascii_uppercase());
            if let Some(part) = UNSUPPORTED.into_iter().find(|part| *part == name) {
                return Err(RuleProblem::Unsupported(part));
            }
            rule.set(&name, &value).ok_or(RuleProblem::Invalid)?;
            has_frequency |= name == "FREQ";
        }
        if has_frequency { Ok(rule) } else { Err(RuleProblem::Invalid) }
    }

    /// `None` for an invalid value. An unknown part is ignored.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "FREQ" => self.frequency = frequency(value)?,
            "INTERVAL" => self.interval = value.parse::<u32>().ok().filter(|interval| *interval > 0)?.into(),
            "COUNT" => self.count = Some(value.parse::<u32>().ok().filter(|count| *count > 0)?),
            "UNTIL" => self.until = Some(TimeValue::parse(value)?),
            "WKST" => self.week_start = weekday(value)?,
            "BYDAY" => self.days = list(value, rule_day)?,
            "BYMONTHDAY" => self.month_days = list(value, |text| number(text, 31))?,
            "BYMONTH" => {
                let month = |text: &str| text.parse::<i8>().ok().filter(|month| (1..=12).contains(month));
                self.months = list(value, month)?;
            }
            "BYSETPOS" => self.positions = list(value, |text| number(text, 366))?,
            _ => {}
        }
        Some(())
    }
}

fn frequency(value: &str) -> Option<Frequency> {
    Some(match value {
        "SECONDLY" => Frequency::Secondly,
        "MINUTELY" => Frequency::Minutely,
        "HOURLY" => Frequency::Hourly,
        "DAILY" => Frequency::Daily,
        "WEEKLY" => Frequency::Weekly,
        "MONTHLY" => Frequency::Monthly,
        "YEARLY" => Frequency::Yearly,
        _ => return None,
    })
}

fn weekday(value: &str) -> Option<Weekday> {
    Some(match value {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return None,
    })
}

fn rule_day(text: &str) -> Option<RuleDay> {
    let start = text.len().checked_sub(2).filter(|start| text.is_char_boundary(*start))?;
    let (nth, day) = text.split_at(start);
    let nth = match nth {
        "" => None,
        nth => Some(number(nth, 53)?),
    };
    Some(RuleDay { nth, day: weekday(day)? })
}

/// A number from 1 to `most`, or the negative of one.
fn number<N: TryFrom<i32>>(text: &str, most: i32) -> Option<N> {
    let number: i32 = text.parse().ok()?;
    let is_valid = number != 0 && number.abs() <= most;
    is_valid.then(|| N::try_from(number).ok()).flatten()
}

/// The different entries of a list.
fn list<T: PartialEq>(value: &str, mut read: impl FnMut(&str) -> Option<T>) -> Option<Vec<T>> {
    let mut entries = Vec::new();
    for text in value.split(',').take(MAX_LIST) {
        let entry = read(text.trim())?;
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_with_all_its_parts() {
        let rule = RecurrenceRule::parse(
            "freq=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU,TU;BYMONTHDAY=-1,13;BYMONTH=1,12;BYSETPOS=-1;WKST=SU",
        );
        let day = |nth, day| RuleDay { nth, day };
        assert_eq!(
            rule,
            Ok(RecurrenceRule {
                frequency: Frequency::Monthly,
                interval: 2,
                count: Some(10),
                until: None,
                days: vec![
                    day(Some(1), Weekday::Sunday),
                    day(Some(-1), Weekday::Sunday),
                    day(None, Weekday::Tuesday)
                ],
                month_days: vec![-1, 13],
                months: vec![1, 12],
                positions: vec![-1],
                week_start: Weekday::Sunday,
            })
        );
    }

    #[test]
    fn an_entry_of_a_list_counts_once() {
        let text = format!("FREQ=YEARLY;BYMONTH={}2;BYMONTHDAY={}2", "1,".repeat(399), "1,".repeat(399));
        let rule = RecurrenceRule::parse(&text).unwrap();
        assert_eq!((rule.months, rule.month_days), (vec![1, 2], vec![1, 2]));
    }

    #[test]
    fn what_is_no_rule_or_not_supported_is_said() {
        for bad in [
            "",
            "FREQ",
            "INTERVAL=1",
            "FREQ=SOMETIMES",
            "FREQ=DAILY;INTERVAL=0",
            "FREQ=DAILY;INTERVAL=-1",
            "FREQ=DAILY;COUNT=0",
            "FREQ=DAILY;COUNT=99999999999",
            "FREQ=DAILY;UNTIL=tomorrow",
            "FREQ=WEEKLY;BYDAY=XX",
            "FREQ=WEEKLY;BYDAY=é",
            "FREQ=MONTHLY;BYMONTHDAY=32",
            "FREQ=YEARLY;BYMONTH=13",
            "FREQ=MONTHLY;BYSETPOS=0;BYDAY=MO",
        ] {
            assert_eq!(RecurrenceRule::parse(bad), Err(RuleProblem::Invalid), "{bad}");
        }
        let weeks = RecurrenceRule::parse("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO");
        assert_eq!(weeks, Err(RuleProblem::Unsupported("BYWEEKNO")));
    }
}
