//! E-mails in a form that a parser reads with bounded effort: no message is nested in another one, few multiparts, short fields.
//!
//! A parser that builds a tree of nested messages uses one frame of the stack for each level when it frees the tree, and a sender
//! can nest as many as fit into the size of a message. Only the types of parts are changed, and every byte stays at its place. The
//! check looks at bytes, and finds more fields than there are: a parser may begin a header in the middle of a line.
//!
//! Knows no library for e-mail.

use std::borrow::Cow;
use std::ops::Range;

/// The longest field with parameters. A parser joins the parts of a long parameter in quadratic time.
const MAX_FIELD_BYTES: usize = 4 << 10;

/// The most multiparts. A parser may search the rest of the message for the first part of each.
const MAX_MULTIPARTS: usize = 32;

const TYPE: &[u8] = b"content-type";

const DISPOSITION: &[u8] = b"content-disposition";

/// The types of parts that contain messages: `message/rfc822`, `message/global` and `multipart/digest`.
const MESSAGES: [&str; 3] = ["rfc822", "global", "digest"];

const MULTIPART: &str = "multipart";

/// The e-mail with nested messages as plain attachments.
pub fn flattened(mail: &[u8]) -> Cow<'_, [u8]> {
    let mut flat = Cow::Borrowed(mail);
    let mut multiparts = 0;
    // Several colons can be in one field, which is looked at once: otherwise the time would be quadratic.
    let (mut field_end, mut readable_end, mut type_end) = (0, 0, 0);
    for colon in colons(mail) {
        let is_type = ends_with_name(&mail[..colon], TYPE);
        let is_blanked = (readable_end..field_end).contains(&colon);
        if is_blanked || !(is_type || ends_with_name(&mail[..colon], DISPOSITION)) {
            continue;
        }
        if colon >= field_end {
            field_end = end_of_field(mail, colon + 1);
            readable_end = field_end.min((colon + 1).saturating_add(MAX_FIELD_BYTES));
            if readable_end < field_end {
                flat.to_mut()[readable_end..field_end].fill(b' ');
            }
        }
        if is_type && colon >= type_end {
            let named = type_in(mail, colon + 1..readable_end);
            type_end = named.end;
            for word in MESSAGES {
                places(mail, named.clone(), word).for_each(|place| hide(&mut flat, place, word));
            }
            for place in places(mail, named, MULTIPART) {
                multiparts += 1;
                if multiparts > MAX_MULTIPARTS {
                    hide(&mut flat, place, MULTIPART);
                }
            }
        }
    }
    flat
}

/// A text or the type of a part as it was before [`flattened`].
pub fn unflattened(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for word in MESSAGES.into_iter().chain([MULTIPART]) {
        let hidden = hidden(word);
        if text.contains(&hidden) {
            text = Cow::Owned(text.replace(&hidden, word));
        }
    }
    text
}

/// A word that no parser knows, of the same length.
fn hidden(word: &str) -> String {
    format!("x{}", &word[1..])
}

fn hide(flat: &mut Cow<'_, [u8]>, place: usize, word: &str) {
    flat.to_mut()[place..place + word.len()].copy_from_slice(hidden(word).as_bytes());
}

fn colons(mail: &[u8]) -> impl Iterator<Item = usize> {
    mail.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(place, _)| place)
}

/// Whether the name of a field ends here. Blanks do not count: a parser may ignore them.
fn ends_with_name(before: &[u8], name: &[u8]) -> bool {
    let mut letters = before.iter().rev().filter(|byte| !b" \t\r\x0c".contains(byte));
    name.iter()
        .rev()
        .all(|wanted| letters.next().is_some_and(|letter| letter.to_ascii_lowercase() == *wanted))
}

/// The end of the line that no other line continues.
fn end_of_field(mail: &[u8], start: usize) -> usize {
    let rest = mail.get(start..).unwrap_or_default();
    let is_last = |(place, byte): (usize, &u8)| {
        *byte == b'\n' && !rest.get(place + 1).is_some_and(|next| b" \t".contains(next))
    };
    rest.iter().enumerate().position(is_last).map_or(mail.len(), |place| start + place)
}

/// The part of a field before its parameters. A comment may contain the separator, so then it is the whole field.
fn type_in(mail: &[u8], field: Range<usize>) -> Range<usize> {
    let text = mail.get(field.clone()).unwrap_or_default();
    match text.iter().position(|byte| b";(".contains(byte)) {
        Some(place) if text[place] == b';' => field.start..field.start + place,
        _ => field,
    }
}

/// Where a word begins, in upper or lower case.
fn places<'a>(mail: &'a [u8], range: Range<usize>, word: &'a str) -> impl Iterator<Item = usize> {
    let start = range.start;
    let text = mail.get(range).unwrap_or_default();
    let found = text.windows(word.len()).enumerate();
    found
        .filter(move |(_, letters)| letters.eq_ignore_ascii_case(word.as_bytes()))
        .map(move |(place, _)| start + place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flat(mail: &str) -> String {
        String::from_utf8(flattened(mail.as_bytes()).into_owned()).expect("text")
    }

    #[test]
    fn an_ordinary_message_is_not_changed() {
        let mail = "From: a@x\nContent-Type: multipart/mixed; boundary=global\n\n--global\n\
            Content-Type: application/pdf; name=\"global digest rfc822.pdf\"\n\nThe global digest of RFC822: see below.\n";
        assert!(matches!(flattened(mail.as_bytes()), Cow::Borrowed(_)));
    }

    #[test]
    fn a_nested_message_is_an_attachment_however_its_type_is_written() {
        for (field, expected) in [
            ("Content-Type: message/rfc822", "Content-Type: message/xfc822"),
            ("content-TYPE:Message/RFC822; a=rfc822", "content-TYPE:Message/xfc822; a=rfc822"),
            ("Con tent-Type\t:\n message\n /global\n", "Con tent-Type\t:\n message\n /xlobal\n"),
            ("--bContent-Type: message/\"rfc822\"", "--bContent-Type: message/\"xfc822\""),
            ("Content-Type: message/(a;b)rfc822", "Content-Type: message/(a;b)xfc822"),
            ("Content-Type: multipart/digest; boundary=b", "Content-Type: multipart/xigest; boundary=b"),
            (
                "Content-Type: a/b; --bContent-Type: message/rfc822",
                "Content-Type: a/b; --bContent-Type: message/xfc822",
            ),
        ] {
            assert_eq!(flat(field), expected);
            assert_eq!(unflattened(expected).to_ascii_lowercase(), field.to_ascii_lowercase());
        }
    }

    #[test]
    fn multiparts_over_the_limit_are_attachments() {
        let part = "Content-Type: multipart/mixed; boundary=multipart\n\n";
        let mail = flat(&part.repeat(MAX_MULTIPARTS + 2));
        assert_eq!(mail.matches(": multipart/").count(), MAX_MULTIPARTS);
        assert_eq!(mail.matches(": xultipart/").count(), 2);
    }

    #[test]
    fn a_long_field_is_cut_with_its_continued_lines() {
        let long = " a*1=b;\r\n".repeat(10_000);
        for name in ["Content-Type: text/plain;", "Content-Disposition: attachment;"] {
            let mail = format!("{name}\r\n{long}Subject: x\r\n\r\n{long}");
            let cut = flat(&mail);
            assert_eq!(cut.len(), mail.len());
            let (field, rest) = cut.split_at(cut.find("\nSubject").expect("the next field"));
            assert!(field.trim_end().len() <= name.len() + MAX_FIELD_BYTES, "{name}");
            assert_eq!(rest, &mail[field.len()..], "{name}");
        }
        // One line with many names of fields takes no longer than others.
        flattened("Content-Type:".repeat(200_000).as_bytes());
    }

    proptest! {
        #[test]
        fn nothing_moves(mail in "([a-z :;/(\r\n\t]|Content-Type:|message/rfc822|multipart/|digest){0,60}") {
            let once = flattened(mail.as_bytes()).into_owned();
            prop_assert_eq!(once.len(), mail.len());
            prop_assert_eq!(&*flattened(&once), once.as_slice());
        }
    }
}
