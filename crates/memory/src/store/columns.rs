//! The form of paths and units in the tables of both databases.

use crate::types::PositionUnit;

pub(super) fn unit_name(unit: PositionUnit) -> &'static str {
    match unit {
        PositionUnit::Line => "line",
        PositionUnit::Page => "page",
        PositionUnit::Paragraph => "paragraph",
        PositionUnit::Row => "row",
        PositionUnit::Slide => "slide",
    }
}

pub(super) fn unit_of(name: &str) -> PositionUnit {
    match name {
        "page" => PositionUnit::Page,
        "paragraph" => PositionUnit::Paragraph,
        "row" => PositionUnit::Row,
        "slide" => PositionUnit::Slide,
        _ => PositionUnit::Line,
    }
}

/// The path itself, and the range of paths below it.
pub(super) fn range_below(path: &str) -> (&str, String, String) {
    const SEPARATOR: char = std::path::MAIN_SEPARATOR;
    let exact = if path.len() > 1 { path.trim_end_matches(SEPARATOR) } else { path };
    let stem = exact.trim_end_matches(SEPARATOR);
    let behind = char::from_u32(SEPARATOR as u32 + 1).unwrap_or(char::MAX);
    (exact, format!("{stem}{SEPARATOR}"), format!("{stem}{behind}"))
}

pub(super) fn stored_size(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
