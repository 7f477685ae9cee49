//! Mailboxes (MBOX): the messages of one file, each with its header and its text.

use super::draft::Draft;
use super::{Document, ReadError, ReadLimits, mail};
use crate::types::PositionUnit;

/// Begins a message, after an empty line.
const MARK: &[u8] = b"From ";

/// Messages of one mailbox. The text of a document has its own limit.
const MAX_MESSAGES: usize = 100_000;

pub fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut draft = Draft::new(PositionUnit::Line, limits);
    let mut count = 0;
    for message in Messages::of(bytes).take(MAX_MESSAGES) {
        // A message that is broken does not hide the others.
        if mail::append(&message.bytes, message.line, limits, &mut draft)? {
            count += 1;
        }
    }
    if count == 0 && !bytes.trim_ascii().is_empty() {
        return Err(ReadError::Broken { reason: "it has no messages of a mailbox".to_owned() });
    }
    Ok(draft.finish())
}

/// A message, and the line of the file on which it begins.
#[derive(Debug, PartialEq, Eq)]
struct BoxedMessage {
    bytes: Vec<u8>,
    line: u32,
}

struct Messages<'a> {
    lines: std::slice::SplitInclusive<'a, u8, fn(&u8) -> bool>,
    /// The line of the next message.
    next: Option<u32>,
    /// Lines that were read.
    read: u32,
}

impl<'a> Messages<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let is_feed: fn(&u8) -> bool = |byte| *byte == b'\n';
        let mut messages = Messages { lines: bytes.split_inclusive(is_feed), next: None, read: 0 };
        // Before the first mark is no message.
        messages.message();
        messages
    }

    /// The lines up to the next mark.
    fn message(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut is_after_blank = true;
        self.next = None;
        for line in self.lines.by_ref() {
            self.read = self.read.saturating_add(1);
            if is_after_blank && line.starts_with(MARK) {
                self.next = Some(self.read.saturating_add(1));
                break;
            }
            is_after_blank = line.trim_ascii().is_empty();
            bytes.extend_from_slice(unquoted(line));
        }
        bytes
    }
}

impl Iterator for Messages<'_> {
    type Item = BoxedMessage;

    fn next(&mut self) -> Option<BoxedMessage> {
        let line = self.next?;
        Some(BoxedMessage { bytes: self.message(), line })
    }
}

/// A line of a message that begins with `From ` is quoted as `>From `, so that it is not taken for a mark.
fn unquoted(line: &[u8]) -> &[u8] {
    let quotes = line.iter().take_while(|byte| **byte == b'>').count();
    if quotes > 0 && line[quotes..].starts_with(MARK) { &line[1..] } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_begins_a_message_only_after_an_empty_line() {
        let file = b"From a Mon\nSubject: x\n\nHe said:\nFrom now on\n>From here\n>>From there\n\nFrom b Tue\nSubject: y\n";
        let messages: Vec<(String, u32)> = Messages::of(file)
            .map(|message| (String::from_utf8(message.bytes).unwrap(), message.line))
            .collect();
        let first = "Subject: x\n\nHe said:\nFrom now on\nFrom here\n>From there\n\n".to_owned();
        assert_eq!(messages, [(first, 2), ("Subject: y\n".to_owned(), 10)]);
        assert_eq!(Messages::of(b"").count(), 0);
        assert_eq!(Messages::of(b"no mailbox").count(), 0);
    }
}
