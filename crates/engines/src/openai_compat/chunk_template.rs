//! A fast path for chunks that differ from an earlier one only in their text, as almost all chunks of a stream do.
//!
//! Parsing a chunk as JSON costs more than everything else Hob does with it. The bytes around the text are the same
//! in every chunk. So after one chunk was parsed, a chunk with the same bytes around its text has the same meaning,
//! and only the text is read.

/// A frame with a placeholder for its text.
#[derive(Debug)]
pub(super) struct ChunkTemplate {
    pub(super) choice: u32,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl ChunkTemplate {
    /// From a frame that was parsed, and its text. `None` when the text is not a slice of the frame, because it had
    /// escapes.
    pub(super) fn cut(choice: u32, frame: &[u8], text: &str) -> Option<Self> {
        let start = (text.as_ptr() as usize).checked_sub(frame.as_ptr() as usize)?;
        let end = start.checked_add(text.len())?;
        let (before, after) = (frame.get(..start)?, frame.get(end..)?);
        let in_quotes = before.ends_with(b"\"") && after.starts_with(b"\"");
        in_quotes.then(|| ChunkTemplate { choice, before: before.to_vec(), after: after.to_vec() })
    }

    /// The text of a frame that matches the template.
    pub(super) fn text<'a>(&self, frame: &'a [u8]) -> Option<&'a str> {
        let text = frame.strip_prefix(self.before.as_slice())?.strip_suffix(self.after.as_slice())?;
        // Any other byte would end the text or need unescaping.
        let is_plain = text.iter().all(|byte| *byte >= b' ' && *byte != b'"' && *byte != b'\\');
        if is_plain { std::str::from_utf8(text).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: &str = r#"data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}"#;

    fn template() -> ChunkTemplate {
        let at = FRAME.find("Hello").unwrap();
        ChunkTemplate::cut(0, FRAME.as_bytes(), &FRAME[at..at + 5]).unwrap()
    }

    #[test]
    fn a_frame_with_another_text_is_read() {
        for text in ["", " world", "größer 🙂", "a/b: {c}"] {
            assert_eq!(template().text(FRAME.replace("Hello", text).as_bytes()), Some(text));
        }
    }

    #[test]
    fn a_frame_that_differs_elsewhere_is_not() {
        for (from, to) in [
            ("null", "\"stop\""),
            ("index\":0", "index\":1"),
            ("Hello", "a\\nb"),
            ("Hello", "a\",\"role\":\"assistant"),
            ("Hello", "a\nb"),
            ("data: ", "error: "),
            ("]}", "]}\ndata: {}"),
        ] {
            assert_eq!(template().text(FRAME.replace(from, to).as_bytes()), None, "{to}");
        }
        assert_eq!(template().text(&FRAME.as_bytes()[..FRAME.len() - 40]), None, "before and after overlap");
        let broken: Vec<u8> =
            FRAME.replace("Hello", "#").bytes().map(|byte| if byte == b'#' { 0xff } else { byte }).collect();
        assert_eq!(template().text(&broken), None, "no text");
    }

    #[test]
    fn a_text_from_elsewhere_makes_no_stencil() {
        let copy = "Hello".to_owned();
        assert!(ChunkTemplate::cut(0, FRAME.as_bytes(), &copy).is_none());
        assert!(ChunkTemplate::cut(0, FRAME.as_bytes(), &FRAME[..4]).is_none(), "no string");
    }
}
