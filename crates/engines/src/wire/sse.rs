//! Server-sent events: the fields of one block.

use std::borrow::Cow;

/// One event.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct SseEvent<'a> {
    /// The value of `event:`; empty for the default.
    pub name: &'a [u8],
    /// The values of all `data:` lines, joined by line feeds.
    pub data: Cow<'a, [u8]>,
    /// llama.cpp reports errors within a stream in its own field, `error:`.
    pub error: Option<&'a [u8]>,
}

impl<'a> SseEvent<'a> {
    /// Parses a block of lines. `None` when it has neither data nor an error, such as a keep-alive comment.
    pub fn read(block: &'a [u8]) -> Option<Self> {
        let mut event = SseEvent::default();
        let mut has_data = false;
        for line in block.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let (field, value) = match memchr::memchr(b':', line) {
                Some(colon) => (&line[..colon], &line[colon + 1..]),
                None => (line, &line[line.len()..]),
            };
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match field {
                b"data" if !has_data => {
                    has_data = true;
                    event.data = Cow::Borrowed(value);
                }
                b"data" => {
                    let data = event.data.to_mut();
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                b"event" => event.name = value,
                b"error" => event.error = Some(value),
                // Comments (an empty field), `id`, `retry` and unknown fields.
                _ => {}
            }
        }
        (has_data || event.error.is_some()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_with_and_without_the_space() {
        let event = SseEvent::read(b"event:delta\ndata: {\"a\"\r\ndata:1}\nid: 7").unwrap();
        assert_eq!((event.name, event.data.as_ref()), (&b"delta"[..], &b"{\"a\"\n1}"[..]));
    }

    #[test]
    fn comments_are_not_events() {
        assert_eq!(SseEvent::read(b": keep-alive"), None);
        assert_eq!(SseEvent::read(b"retry: 5"), None);
    }

    #[test]
    fn an_error_field_is_an_event() {
        assert_eq!(SseEvent::read(b"error: {}").and_then(|event| event.error), Some(&b"{}"[..]));
    }

    #[test]
    fn empty_data_is_data() {
        assert!(SseEvent::read(b"data:").is_some());
    }
}
