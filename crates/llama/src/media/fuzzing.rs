//! Entry for the fuzz target of pictures.

use super::picture::decode;

/// A picture of a caller has as many bytes as its size says.
pub fn picture(file: &[u8]) {
    match decode(file) {
        Ok(pixels) => {
            let expected = u64::from(pixels.width) * u64::from(pixels.height) * 3;
            assert_eq!(pixels.bytes.len() as u64, expected, "a picture has another size than it says");
        }
        Err(reason) => assert!(!reason.is_empty(), "an error has no reason"),
    }
}
