//! Decodes bytes, or finds that they are not text.

use encoding_rs::{Encoding, UTF_8};

use super::ReadError;
use super::kind::Kind;

/// The part of a file that is checked.
const SNIFFED: usize = 64 << 10;

/// One in this many bytes may be a control character. Compressed data has one in ten.
const RARE: usize = 200;

pub fn decode(bytes: &[u8], kind: Kind) -> Result<String, ReadError> {
    // A byte order mark decides. Text in UTF-16 is full of zeros.
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let (text, had_errors) = encoding.decode_without_bom_handling(&bytes[mark..]);
        return if had_errors && text.contains('\0') {
            Err(ReadError::Binary)
        } else {
            Ok(text.into_owned())
        };
    }
    if is_binary(bytes) {
        return Err(ReadError::Binary);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.to_owned());
    }
    if kind == Kind::Html {
        let text = hob_text::charset::decode(bytes, None);
        if !text.contains(char::REPLACEMENT_CHARACTER) {
            return Ok(text);
        }
    }
    Ok(guess(bytes).decode_without_bom_handling(bytes).0.into_owned())
}

fn is_binary(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(SNIFFED)];
    let is_odd = |byte: &&u8| matches!(**byte, 1..=6 | 14..=26 | 28..=31 | 127);
    bytes.contains(&0) || head.iter().filter(is_odd).count() * RARE > head.len()
}

/// Text that is not UTF-8: an older character set, or damaged UTF-8.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let head = &bytes[..bytes.len().min(SNIFFED)];
    let broken = head.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    let high = head.iter().filter(|byte| !byte.is_ascii()).count();
    // In an older character set, nearly every letter beyond ASCII is invalid UTF-8.
    if broken * 10 < high {
        return UTF_8;
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(head, head.len() == bytes.len());
    detector.guess(None, chardetng::Utf8Detection::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> Option<String> {
        decode(bytes, Kind::Plain).ok()
    }

    #[test]
    fn text_in_old_character_sets_is_read() {
        let german = "Über die Straße läuft ein Hündchen, fröhlich und müde.";
        let (latin, _, _) = encoding_rs::WINDOWS_1252.encode(german);
        assert_eq!(plain(&latin).as_deref(), Some(german));
        let russian = "Съешь же ещё этих мягких французских булок, да выпей чаю.";
        let (cyrillic, _, _) = encoding_rs::WINDOWS_1251.encode(russian);
        assert_eq!(plain(&cyrillic).as_deref(), Some(russian));
    }

    #[test]
    fn byte_order_marks_are_used_and_removed() {
        assert_eq!(plain(b"\xef\xbb\xbfabc").as_deref(), Some("abc"));
        assert_eq!(plain(b"\xff\xfea\0b\0").as_deref(), Some("ab"));
    }

    #[test]
    fn a_few_broken_bytes_are_replaced() {
        let mut bytes = "früh und spät, häufig größer als möglich äöüßäöüß".as_bytes().to_vec();
        bytes.push(0xff);
        assert_eq!(
            plain(&bytes).as_deref(),
            Some("früh und spät, häufig größer als möglich äöüßäöüß\u{fffd}")
        );
    }

    #[test]
    fn binary_data_is_not_text() {
        assert_eq!(plain(b"abc\0def"), None);
        let noise =
            (0..4_096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 | 1).collect::<Vec<_>>();
        assert_eq!(plain(&noise), None);
    }
}
