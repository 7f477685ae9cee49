//! The dates of a recurrence rule in a window. Pure: works on local times and knows no zones.
//!
//! The work for one rule and for a whole calendar is limited, because a rule of a few letters can repeat every second for ever.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Weekday};

use super::rule::{Frequency, RecurrenceRule, RuleDay};
use super::time_value::{add_days, days_between};

/// Steps for one rule.
const MAX_STEPS: u64 = 400_000;
/// Steps for all rules of a calendar.
const MAX_TOTAL_STEPS: u64 = 20_000_000;
/// Dates of one rule in a window.
const MAX_DATES: usize = 2_000;

/// From the first to before the last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub from: DateTime,
    pub to: DateTime,
}

/// The dates of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expansion {
    /// In order.
    pub starts: Vec<DateTime>,
    /// Whether a limit ended the work.
    pub is_cut: bool,
}

/// The work that is left for a calendar.
pub(super) struct StepBudget {
    left: u64,
}

impl Default for StepBudget {
    fn default() -> Self {
        StepBudget { left: MAX_TOTAL_STEPS }
    }
}

/// The dates of a rule in a window. The start is the first date, also if the rule does not contain it. `until` is the last
/// possible date, in the same zone as the start.
pub(super) fn expand(
    start: DateTime,
    rule: &RecurrenceRule,
    until: Option<DateTime>,
    window: Window,
    budget: &mut StepBudget,
) -> Expansion {
    let mut expansion = Expansion { starts: Vec::new(), is_cut: false };
    if start >= window.from && start < window.to {
        expansion.starts.push(start);
    }
    let periods = Periods { start, rule };
    let mut index = if rule.count.is_some() { 0 } else { periods.near(window.from) };
    let mut seen = 1;
    let cost = periods.cost();
    let mut steps = 0;
    while let Some(begin) = periods.begin(index) {
        if begin >= window.to || until.is_some_and(|until| begin > until) {
            return expansion;
        }
        if steps + cost > MAX_STEPS || budget.left < cost {
            expansion.is_cut = true;
            return expansion;
        }
        steps += cost;
        budget.left -= cost;
        for date in periods.dates(begin) {
            if date <= start {
                continue;
            }
            let is_over = date >= window.to || until.is_some_and(|until| date > until);
            if is_over || rule.count.is_some_and(|count| seen >= count) {
                return expansion;
            }
            seen += 1;
            if date >= window.from {
                if expansion.starts.len() >= MAX_DATES {
                    expansion.is_cut = true;
                    return expansion;
                }
                expansion.starts.push(date);
            }
        }
        index += 1;
    }
    expansion
}

/// The years, months, weeks, days or shorter spans that a rule counts.
struct Periods<'a> {
    start: DateTime,
    rule: &'a RecurrenceRule,
}

impl Periods<'_> {
    /// The steps that one period counts as. Each of its dates is compared with the lists of the rule.
    fn cost(&self) -> u64 {
        let dates = match self.rule.frequency {
            Frequency::Yearly => 400,
            Frequency::Monthly => 40,
            Frequency::Weekly => 10,
            Frequency::Daily | Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => 1,
        };
        let listed = self.rule.days.len() + self.rule.positions.len();
        dates * (1 + listed as u64 / 8)
    }

    /// The index of a period before a time, from which the dates may be counted instead of from the start.
    fn near(&self, time: DateTime) -> i64 {
        let start = self.start;
        let units = match self.rule.frequency {
            Frequency::Yearly => i64::from(time.year()) - i64::from(start.year()),
            Frequency::Monthly => months(time.date()) - months(start.date()),
            Frequency::Weekly => days_between(start.date(), time.date()) / 7,
            Frequency::Daily => days_between(start.date(), time.date()),
            Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => {
                start.duration_until(time).as_secs() / self.seconds()
            }
        };
        (units / self.rule.interval - 1).max(0)
    }

    /// The length of a period that is shorter than a day.
    fn seconds(&self) -> i64 {
        match self.rule.frequency {
            Frequency::Hourly => 3_600,
            Frequency::Minutely => 60,
            _ => 1,
        }
    }

    /// The first possible date of a period; `None` after the last year of the calendar.
    fn begin(&self, index: i64) -> Option<DateTime> {
        let units = index.checked_mul(self.rule.interval)?;
        let midnight = |date: Date| date.at(0, 0, 0, 0);
        match self.rule.frequency {
            Frequency::Yearly => {
                let year = i16::try_from(i64::from(self.start.year()).checked_add(units)?).ok()?;
                Date::new(year, 1, 1).ok().map(midnight)
            }
            Frequency::Monthly => {
                let month = months(self.start.date()).checked_add(units)?;
                let year = i16::try_from(month.div_euclid(12)).ok()?;
                Date::new(year, i8::try_from(month.rem_euclid(12)).ok()? + 1, 1).ok().map(midnight)
            }
            Frequency::Weekly => {
                let into_week = i64::from(self.start.weekday().since(self.rule.week_start));
                let days = units.checked_mul(7)?.checked_sub(into_week)?;
                add_days(self.start.date(), days).map(midnight)
            }
            Frequency::Daily => add_days(self.start.date(), units).map(midnight),
            Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => {
                let seconds = units.checked_mul(self.seconds())?;
                self.start.checked_add(SignedDuration::from_secs(seconds)).ok()
            }
        }
    }

    /// The dates of the period that begins at this time, in order.
    fn dates(&self, begin: DateTime) -> Vec<DateTime> {
        let first = begin.date();
        let days = match self.rule.frequency {
            Frequency::Yearly => self.dates_of_year(first),
            Frequency::Monthly => match self.is_in_months(first) {
                true => self.dates_of_month(first),
                false => Vec::new(),
            },
            Frequency::Weekly => self.dates_of_week(first),
            Frequency::Daily => vec![first],
            Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => {
                // A period is one date, with a time of its own.
                return if self.is_listed(first) { vec![begin] } else { Vec::new() };
            }
        };
        let is_limited = matches!(self.rule.frequency, Frequency::Weekly | Frequency::Daily);
        let mut dates: Vec<DateTime> = days
            .into_iter()
            .filter(|date| !is_limited || self.is_listed(*date))
            .map(|date| date.to_datetime(self.start.time()))
            .collect();
        dates.sort_unstable();
        dates.dedup();
        self.at_positions(dates)
    }

    fn dates_of_year(&self, first: Date) -> Vec<Date> {
        let rule = self.rule;
        let in_month = |month: &i8| Date::new(first.year(), *month, 1).ok();
        if rule.months.is_empty() && rule.month_days.is_empty() {
            return match rule.days.is_empty() {
                true => Date::new(first.year(), self.start.month(), self.start.day()).into_iter().collect(),
                false => weekdays_between(first, first.last_of_year(), &rule.days),
            };
        }
        let all: Vec<i8> = (1..=12).collect();
        let months = if rule.months.is_empty() { &all } else { &rule.months };
        months.iter().filter_map(in_month).flat_map(|month| self.dates_of_month(month)).collect()
    }

    fn dates_of_month(&self, first: Date) -> Vec<Date> {
        let rule = self.rule;
        let last = first.last_of_month();
        if !rule.month_days.is_empty() {
            let days = rule.month_days.iter().filter_map(|day| {
                let day = if *day < 0 { last.day() + 1 + day } else { *day };
                Date::new(first.year(), first.month(), day).ok()
            });
            return days.filter(|date| self.is_on_listed_weekday(*date)).collect();
        }
        if !rule.days.is_empty() {
            return weekdays_between(first, last, &rule.days);
        }
        // A month without this day has no date.
        Date::new(first.year(), first.month(), self.start.day()).into_iter().collect()
    }

    fn dates_of_week(&self, first: Date) -> Vec<Date> {
        let day = |day: Weekday| add_days(first, i64::from(day.since(self.rule.week_start)));
        match self.rule.days.is_empty() {
            true => day(self.start.weekday()).into_iter().collect(),
            false => self.rule.days.iter().filter_map(|listed| day(listed.day)).collect(),
        }
    }

    /// Whether a date fits all lists.
    fn is_listed(&self, date: Date) -> bool {
        let days = &self.rule.month_days;
        let from_end = date.day() - date.days_in_month() - 1;
        self.is_in_months(date)
            && (days.is_empty() || days.contains(&date.day()) || days.contains(&from_end))
            && self.is_on_listed_weekday(date)
    }

    fn is_in_months(&self, date: Date) -> bool {
        self.rule.months.is_empty() || self.rule.months.contains(&date.month())
    }

    fn is_on_listed_weekday(&self, date: Date) -> bool {
        let days = &self.rule.days;
        days.is_empty() || days.iter().any(|listed| listed.day == date.weekday())
    }

    /// The dates at the positions of the rule, or all.
    fn at_positions(&self, dates: Vec<DateTime>) -> Vec<DateTime> {
        if self.rule.positions.is_empty() {
            return dates;
        }
        let index = |position: &i32| {
            let position = isize::try_from(*position).ok()?;
            match position > 0 {
                true => usize::try_from(position - 1).ok(),
                false => dates.len().checked_add_signed(position),
            }
        };
        let mut chosen: Vec<DateTime> =
            self.rule.positions.iter().filter_map(|position| dates.get(index(position)?).copied()).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

/// The months since the year 0.
fn months(date: Date) -> i64 {
    i64::from(date.year()) * 12 + i64::from(date.month()) - 1
}

/// The listed weekdays from the first to the last date.
fn weekdays_between(first: Date, last: Date, days: &[RuleDay]) -> Vec<Date> {
    let mut dates = Vec::new();
    for RuleDay { nth, day } in days {
        let to_first = i64::from(day.since(first.weekday()));
        let from_last = i64::from(last.weekday().since(*day));
        match nth.map(i64::from) {
            Some(nth) if nth > 0 => dates.extend(add_days(first, to_first + 7 * (nth - 1))),
            Some(nth) => dates.extend(add_days(last, 7 * (nth + 1) - from_last)),
            None => {
                let mut date = add_days(first, to_first);
                while let Some(found) = date.filter(|date| *date <= last) {
                    dates.push(found);
                    date = add_days(found, 7);
                }
            }
        }
    }
    dates.retain(|date| (first..=last).contains(date));
    dates
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
