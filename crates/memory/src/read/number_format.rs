//! Numbers of spreadsheets as people see them: dates are stored as a number of days.

use std::collections::HashMap;
use std::io::BufRead;

use quick_xml::events::Event;

use super::ReadError;
use super::office_archive::{attribute, events};

/// The last day that spreadsheet programs show, 31 December 9999.
const LAST_DAY: f64 = 2_958_465.0;

/// Days from 30 December 1899 to 1 January 1970.
const DAYS_TO_1970: i64 = 25_569;

/// Days from 30 December 1899 to 1 January 1904.
const DAYS_TO_1904: f64 = 1_462.0;

const SECONDS_OF_A_DAY: f64 = 86_400.0;

/// The day that dates are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DateSystem {
    #[default]
    From1900,
    /// Of older programs.
    From1904,
}

/// Which styles of cells show dates.
#[derive(Debug, Default)]
pub struct NumberFormats {
    /// By the number of the style.
    dates: Vec<bool>,
}

impl NumberFormats {
    pub fn read(part: impl BufRead) -> Result<Self, ReadError> {
        let mut codes: HashMap<u32, bool> = HashMap::new();
        let mut dates = Vec::new();
        let mut is_cell_style = false;
        events(part, |event| {
            match event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().as_ref() {
                    "cellXfs" => is_cell_style = true,
                    "numFmt" => {
                        let id = attribute(&tag, "numFmtId").and_then(|id| id.parse().ok());
                        if let (Some(id), Some(code)) = (id, attribute(&tag, "formatCode")) {
                            codes.insert(id, is_date_code(&code));
                        }
                    }
                    "xf" if is_cell_style => {
                        let id = attribute(&tag, "numFmtId").and_then(|id| id.parse().ok()).unwrap_or(0);
                        dates.push(codes.get(&id).copied().unwrap_or_else(|| is_date_id(id)));
                    }
                    _ => {}
                },
                Event::End(tag) if tag.local_name().as_ref() == "cellXfs" => is_cell_style = false,
                _ => {}
            }
            Ok(())
        })?;
        Ok(NumberFormats { dates })
    }

    /// A number as it is shown in a cell of this style.
    pub fn shown(&self, style: usize, number: &str, dates: DateSystem) -> String {
        let is_date = self.dates.get(style).copied().unwrap_or(false);
        let date = number.parse::<f64>().ok().filter(|_| is_date).and_then(|days| date(days, dates));
        date.unwrap_or_else(|| plain(number))
    }
}

/// The formats that every program knows.
fn is_date_id(id: u32) -> bool {
    matches!(id, 14..=22 | 27..=36 | 45..=47 | 50..=58)
}

/// Whether a format such as `dd/mm/yyyy` shows a date or a time. Texts in quotes and brackets are not part of it.
fn is_date_code(code: &str) -> bool {
    let mut letters = code.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => drop(letters.by_ref().find(|letter| *letter == '"')),
            '[' => {
                let inside: String = letters.by_ref().take_while(|letter| *letter != ']').collect();
                // Elapsed time, unlike a colour or a language.
                if matches!(inside.to_ascii_lowercase().as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss") {
                    return true;
                }
            }
            '\\' | '_' | '*' => drop(letters.next()),
            'd' | 'm' | 'y' | 'h' | 's' | 'D' | 'M' | 'Y' | 'H' | 'S' => return true,
            _ => {}
        }
    }
    false
}

/// A number of days as a date, a time, or both.
fn date(days: f64, system: DateSystem) -> Option<String> {
    let shift = if system == DateSystem::From1904 { DAYS_TO_1904 } else { 0.0 };
    if !(0.0..=LAST_DAY).contains(&(days + shift)) {
        return None;
    }
    let seconds = (days * SECONDS_OF_A_DAY).round() as i64;
    let (whole, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let time = format!("{:02}:{:02}", rest / 3_600, rest / 60 % 60);
    // A time of day without a date.
    if whole == 0 {
        return Some(time);
    }
    let (year, month, day) = civil(whole + shift as i64 - DAYS_TO_1970);
    let day = format!("{year:04}-{month:02}-{day:02}");
    Some(if rest == 0 { day } else { format!("{day} {time}") })
}

/// The date of a number of days since 1 January 1970, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the leap day is the last one.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A number without the digits that only binary fractions have: 0.30000000000000004 is 0.3.
fn plain(number: &str) -> String {
    let is_long = number.len() > 15 && number.contains('.');
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && value.abs() >= 0.001 && is_long => {
            let rounded = format!("{value:.9}");
            rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_from_numbers_of_days() {
        let shown = |days| date(days, DateSystem::From1900);
        assert_eq!(shown(46_100.0).as_deref(), Some("2026-03-19"));
        assert_eq!(shown(36_526.5).as_deref(), Some("2000-01-01 12:00"));
        assert_eq!(shown(60.0 + 1.0).as_deref(), Some("1900-03-01"));
        assert_eq!(shown(0.25).as_deref(), Some("06:00"));
        assert_eq!([shown(-1.0), shown(1e12), shown(f64::NAN)], [None, None, None]);
        assert_eq!(date(0.5, DateSystem::From1904).as_deref(), Some("12:00"));
        assert_eq!(date(44_638.0, DateSystem::From1904).as_deref(), Some("2026-03-19"));
    }

    #[test]
    fn a_format_with_days_or_hours_is_a_date() {
        for code in ["dd/mm/yyyy", "h:mm", "[hh]:mm", "[$-407]d. mmmm yyyy", "YYYY-MM-DD"] {
            assert!(is_date_code(code), "{code}");
        }
        for code in ["0.00", "#,##0 \"days\"", "[Red]0", "0.0\\h", "General\" m\"", "0.00E+00"] {
            assert!(!is_date_code(code), "{code}");
        }
    }

    #[test]
    fn long_fractions_are_rounded() {
        assert_eq!(plain("0.30000000000000004"), "0.3");
        for number in ["12345678901234567", "310.5", "1e400", "0.00000000012345678"] {
            assert_eq!(plain(number), number);
        }
    }
}
