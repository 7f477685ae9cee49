//! Decodes pages, by the character set that the server or the page states.

use encoding_rs::{Encoding, UTF_8};

/// Browsers look for the character set in this many bytes.
const SNIFFED_BYTES: usize = 1_024;

/// Decodes a page. Invalid bytes become replacement characters.
pub fn decode(body: &[u8], content_type: Option<&str>) -> String {
    let named = content_type.and_then(charset).and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = named.or_else(|| stated(body)).unwrap_or(UTF_8);
    // A byte order mark overrides both.
    encoding.decode(body).0.into_owned()
}

/// The value of `charset=`.
fn charset(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1);
    parameters.filter_map(|parameter| parameter.split_once('=')).find_map(|(name, value)| {
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// The character set in a `<meta>` element or an XML declaration.
fn stated(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(SNIFFED_BYTES)]).to_ascii_lowercase();
    ["charset=", "encoding="].iter().find_map(|key| {
        let (_, rest) = head.split_once(key)?;
        let rest = rest.trim_start_matches(['"', '\'', ' ']);
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_:.".contains(letter))?;
        Encoding::for_label(&rest.as_bytes()[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_the_page_and_utf_8_are_used_in_this_order() {
        let latin = b"caf\xe9";
        assert_eq!(decode(latin, Some("text/html; charset=ISO-8859-1")), "café");
        assert_eq!(decode(latin, Some("text/html; Charset=\"latin1\"")), "café");
        assert_eq!(
            decode(b"<meta charset=\"windows-1252\">\xe9", Some("text/html")),
            "<meta charset=\"windows-1252\">é"
        );
        assert_eq!(decode("<p>é".as_bytes(), None), "<p>é");
        assert_eq!(decode(latin, Some("text/html; charset=nonsense")), "caf\u{fffd}");
        assert_eq!(decode("\u{feff}é".as_bytes(), Some("text/plain; charset=latin1")), "é");
    }
}
