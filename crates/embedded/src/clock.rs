//! Dates for chat templates, which like to tell the model what day it is. UTC; knows no other calendar.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// The time now, written the way `format` says.
pub(crate) fn strftime_now(format: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    strftime(format, now)
}

/// A moment in Unix seconds, written the way `format` says. What templates do not use stays as it is.
fn strftime(format: &str, seconds: u64) -> String {
    let (days, clock) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let name = |names: &[&'static str], at: u64| {
        usize::try_from(at).ok().and_then(|at| names.get(at).copied()).unwrap_or_default()
    };
    let month_name = name(&MONTHS, month - 1);
    let day_name = name(&DAYS, days % 7);
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(char) = rest.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        match rest.next() {
            Some('Y') => out.push_str(&year.to_string()),
            Some('y') => out.push_str(&format!("{:02}", year % 100)),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('e') => out.push_str(&format!("{day:2}")),
            Some('B') => out.push_str(month_name),
            Some('b') => out.push_str(&month_name[..3.min(month_name.len())]),
            Some('A') => out.push_str(day_name),
            Some('a') => out.push_str(&day_name[..3.min(day_name.len())]),
            Some('H') => out.push_str(&format!("{:02}", clock / 3600)),
            Some('M') => out.push_str(&format!("{:02}", clock / 60 % 60)),
            Some('S') => out.push_str(&format!("{:02}", clock % 60)),
            Some('%') => out.push('%'),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    out
}

/// Year, month and day of a number of days since 1970, by counting whole years and months.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let mut year = 1970;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(strftime("%d %b %Y %H:%M:%S %A", 1_709_209_845), "29 Feb 2024 12:30:45 Thursday");
        assert_eq!(strftime("%e %B %y, %a", 0), " 1 January 70, Thu");
        assert_eq!(strftime("100%% %q %", 0), "100% %q %");
    }
}
