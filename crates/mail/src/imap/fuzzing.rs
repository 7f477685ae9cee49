//! Entry for the fuzz target of IMAP answers. Takes any bytes and panics if a promise of the crate is broken. Only in builds with
//! `--cfg fuzzing`.

use super::fetched::{FetchedParts, summary, uid_of};
use super::response::{Fragment, ImapResponse, ResponseValue, is_free_text, literal_length, read_response};
use crate::message::{MailMessage, MessageLimits};

/// Small limits, so that an input can reach them.
const LIMITS: MessageLimits = MessageLimits { text_chars: 500, attachment_bytes: 1_000 };

/// What a server sends: its responses, and the messages in them.
pub fn imap_answer(bytes: &[u8]) {
    let mut rest = bytes;
    while let Some((fragments, after)) = next_response(rest) {
        rest = after;
        match read_response(&fragments) {
            Ok(ImapResponse::Fetch(parts)) => check_message(&parts),
            Ok(ImapResponse::Done { text, .. } | ImapResponse::Status { text, .. }) => check_line(&text),
            Ok(_) => {}
            Err(error) => assert!(!error.to_string().is_empty(), "an answer is refused without a reason"),
        }
    }
}

/// The lines and literals of a response, as a session reads them, and what follows; `None` if the connection ends in it.
fn next_response(mut rest: &[u8]) -> Option<(Vec<Fragment>, &[u8])> {
    let mut fragments = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        let literal = match fragments.is_empty() && is_free_text(line) {
            true => None,
            false => literal_length(line),
        };
        fragments.push(Fragment::Line(line.to_vec()));
        let Some(length) = literal else { return Some((fragments, rest)) };
        let (literal, after) = rest.split_at_checked(length)?;
        fragments.push(Fragment::Literal(literal.to_vec()));
        rest = after;
    }
}

/// A message is the same when it is written in another way. What is shown of it has limits.
fn check_message(parts: &FetchedParts) {
    let again = read_response(&written(parts)).ok();
    assert_eq!(again, Some(ImapResponse::Fetch(parts.clone())), "a message changes when it is written");
    let shown = summary(parts);
    assert_eq!(shown.as_ref().map(|shown| shown.uid), uid_of(parts), "a message has another number");
    if let Some(shown) = &shown {
        check_line(&shown.subject);
    }
    for (name, value) in parts {
        if let ResponseValue::Text(bytes) = value
            && name.starts_with("BODY[")
            && let Some(message) = MailMessage::read(bytes, LIMITS)
        {
            check_line(&message.subject);
            assert!(message.text.chars().count() <= LIMITS.text_chars, "a message is too long");
            let attached: usize = message.attachments.iter().map(|attachment| attachment.bytes.len()).sum();
            assert!(attached <= LIMITS.attachment_bytes, "the attachments are too large");
        }
    }
}

/// The parts of a message with all texts as literals.
fn written(parts: &FetchedParts) -> Vec<Fragment> {
    let mut fragments = Vec::new();
    let mut line = b"* 1 FETCH (".to_vec();
    for (name, value) in parts {
        line.extend_from_slice(name.as_bytes());
        line.push(b' ');
        write(value, &mut line, &mut fragments);
        line.push(b' ');
    }
    line.push(b')');
    fragments.push(Fragment::Line(line));
    fragments
}

fn write(value: &ResponseValue, line: &mut Vec<u8>, fragments: &mut Vec<Fragment>) {
    match value {
        ResponseValue::Atom(word) => line.extend_from_slice(word),
        ResponseValue::Text(text) => {
            line.extend_from_slice(format!("{{{}}}", text.len()).as_bytes());
            fragments.push(Fragment::Line(std::mem::take(line)));
            fragments.push(Fragment::Literal(text.clone()));
        }
        ResponseValue::List(values) => {
            line.push(b'(');
            for value in values {
                write(value, line, fragments);
                line.push(b' ');
            }
            line.push(b')');
        }
    }
}

/// The words of a stranger are one line.
fn check_line(text: &str) {
    assert!(!text.contains(char::is_control), "a text has a control character");
}
