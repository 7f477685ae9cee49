//! Entry for the fuzz target of HTTP responses.

use super::head::{self, Head};
use crate::fuzzing::packets::packets;

/// The bytes of a connection: the head of a response, and its body.
pub fn http1(bytes: &[u8]) {
    let whole = shown(bytes);
    for end in (0..bytes.len()).step_by(1 + bytes.len() / 16) {
        let so_far = shown(&bytes[..end]);
        let is_open = matches!(so_far, Ok(None));
        assert!(is_open || so_far == whole, "the head changes with more bytes: {so_far:?}, then {whole:?}");
    }
    let Ok(Some((head, end))) = head::read(bytes) else { return };
    assert!(end <= bytes.len(), "the head is longer than the connection");
    let body = &bytes[end..];
    let Ok(Some((again, _))) = head::read(bytes) else { return };
    let in_one = taken(head, [body]);
    assert_eq!(in_one, taken(again, packets(body)), "packets change the body");
    if let Ok(body_read) = in_one {
        assert!(body_read.used <= body.len() && body_read.bytes.len() <= body_read.used);
    }
}

/// What a head says, in a form that can be compared.
fn shown(bytes: &[u8]) -> Result<Option<(String, usize)>, String> {
    let read = head::read(bytes).map_err(|error| error.to_string())?;
    Ok(read.map(|(head, end)| (format!("{head:?}"), end)))
}

#[derive(Debug, PartialEq)]
struct BodyRead {
    bytes: Vec<u8>,
    used: usize,
    is_complete: bool,
}

/// The body; `Err` if its coding is invalid.
fn taken<'a>(mut head: Head, packets: impl IntoIterator<Item = &'a [u8]>) -> Result<BodyRead, String> {
    let (mut bytes, mut used) = (Vec::new(), 0);
    for packet in packets {
        used += head.length.take(packet, &mut bytes).map_err(|error| error.to_string())?;
    }
    Ok(BodyRead { bytes, used, is_complete: head.length.is_reached() })
}
