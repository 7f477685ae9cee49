//! A QR code as the path of an SVG, so that a page draws it without code of its own.

use qrcode::{Color, EcLevel, QrCode};
use serde::Serialize;

/// Modules of the border that scanners need.
const BORDER: usize = 4;

/// Dark squares of size 1 in a square with sides of `size`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct QrPath {
    size: usize,
    /// The attribute `d` of the element `path`.
    path: String,
}

impl QrPath {
    /// `None` if the text is too long for a code.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
        let width = code.width();
        let colors = code.to_colors();
        let mut path = String::new();
        for (y, row) in colors.chunks(width).enumerate() {
            let mut x = 0;
            while x < width {
                let run = row[x..].iter().take_while(|color| **color == Color::Dark).count();
                if run > 0 {
                    path += &format!("M{} {}h{run}v1h-{run}z", x + BORDER, y + BORDER);
                }
                x += run.max(1);
            }
        }
        Some(QrPath { size: width + 2 * BORDER, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_begins_with_the_corner_inside_its_border() {
        let code = QrPath::of("2@abc").expect("short enough");
        assert_eq!(code.size, 29);
        assert!(code.path.starts_with("M4 4h7v1h-7z"), "{}", code.path);
        assert_eq!(QrPath::of(&"x".repeat(4_000)), None);
    }
}
