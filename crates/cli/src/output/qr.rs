//! A QR code for the terminal: two rows of it in each line of text.

use qrcode::render::unicode::Dense1x2;
use qrcode::types::QrError;
use qrcode::{EcLevel, QrCode};

/// Draws the light parts only, which is right on a dark terminal. Phones also read the inverted code on a light one.
pub fn render(data: &str) -> Result<String, QrError> {
    let code = QrCode::with_error_correction_level(data, EcLevel::L)?;
    let drawn = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_square_and_has_its_three_corners() {
        let drawn =
            render("2@abcdefghijklmnopqrstuvwxyz,ABCDEFGHIJKLMNOPQRSTUVWXYZ,0123456789").expect("drawn");
        let lines: Vec<&str> = drawn.lines().collect();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width), "{drawn}");
        assert_eq!(lines.len(), width.div_ceil(2), "{drawn}");
        // Within a border of four, each corner begins with a dark row over the light row inside it.
        let corner: String = lines[2].chars().skip(4).take(7).collect();
        assert_eq!(corner, " ▄▄▄▄▄ ", "{drawn}");
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(render(&"x".repeat(4_000)).is_err());
    }
}
