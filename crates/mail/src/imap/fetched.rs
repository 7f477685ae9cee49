//! What the server reports of a message: its number, its size, and what a list shows. Pure.

use jiff::Timestamp;

use super::response::{ResponseValue, number};
use crate::message::MailSummary;

/// The names and values of one FETCH response.
pub(crate) type FetchedParts = Vec<(String, ResponseValue)>;

/// About the memory that a value of a response takes besides its text.
const VALUE_BYTES: usize = 64;

/// The bytes of a value.
pub(crate) fn size(value: &ResponseValue) -> usize {
    let content = match value {
        ResponseValue::Atom(bytes) | ResponseValue::Text(bytes) => bytes.len(),
        ResponseValue::List(values) => values.iter().map(size).sum(),
    };
    content + VALUE_BYTES
}

/// The number of the message.
pub(crate) fn uid_of(parts: &[(String, ResponseValue)]) -> Option<u32> {
    parts.iter().find_map(|(name, value)| match value {
        ResponseValue::Atom(digits) if name == "UID" => number(digits),
        _ => None,
    })
}

/// What a list shows of the message.
pub(crate) fn summary(parts: &[(String, ResponseValue)]) -> Option<MailSummary> {
    let (mut is_read, mut received) = (false, None);
    let mut header: &[u8] = &[];
    for (name, value) in parts {
        match (name.as_str(), value) {
            ("FLAGS", ResponseValue::List(flags)) => {
                let is_seen = |flag: &ResponseValue| matches!(flag, ResponseValue::Atom(name) if name.eq_ignore_ascii_case(b"\\Seen"));
                is_read = flags.iter().any(is_seen);
            }
            ("INTERNALDATE", ResponseValue::Text(text)) => received = internal_date(text),
            (name, ResponseValue::Text(bytes)) if name.starts_with("BODY[HEADER]") => {
                header = bytes.as_slice()
            }
            _ => {}
        }
    }
    Some(MailSummary { uid: uid_of(parts)?, received, is_read, ..MailSummary::of_header(header) })
}

/// `17-Jul-1996 02:44:25 -0700`.
fn internal_date(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.trim();
    Timestamp::strptime("%d-%b-%Y %H:%M:%S %z", text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_arrival_is_read() {
        let read = |text: &str| internal_date(text.as_bytes()).map(|time| time.to_string());
        assert_eq!(read("17-Jul-1996 02:44:25 -0700").as_deref(), Some("1996-07-17T09:44:25Z"));
        assert_eq!(read(" 7-Jul-1996 02:44:25 +0000").as_deref(), Some("1996-07-07T02:44:25Z"));
        assert_eq!(read("yesterday"), None);
    }
}
