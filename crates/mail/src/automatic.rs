//! Which messages programs wrote. They are never answered: two programs that answer each other never stop.

use mail_parser::{Message, MimeHeaders};

use crate::plain_line::one_line;

/// The parts before the `@` of addresses whose mail is not read.
const UNREAD: [&str; 9] = [
    "mailer-daemon",
    "postmaster",
    "noreply",
    "no-reply",
    "no_reply",
    "donotreply",
    "do-not-reply",
    "bounce",
    "bounces",
];

/// Fields that only programs write.
const FIELDS: [&str; 8] = [
    "List-Id",
    "List-Unsubscribe",
    "List-Post",
    "X-Autoreply",
    "X-Autorespond",
    "X-Auto-Response-Suppress",
    "X-Failed-Recipients",
    "Feedback-ID",
];

/// Why a program may have written a message (RFC 3834); `None` for what people write.
pub(crate) fn automatic_reason(message: &Message<'_>) -> Option<&'static str> {
    for header in message.headers() {
        // Also fields whose text is in no known character set.
        let range = header.offset_start() as usize..header.offset_end() as usize;
        let value = message.raw_message().get(range).unwrap_or_default();
        let value = one_line(&String::from_utf8_lossy(value)).to_ascii_lowercase();
        let is = |field: &str| header.name().eq_ignore_ascii_case(field);
        if is("Auto-Submitted") && !value.starts_with("no") {
            return Some("it was sent automatically");
        }
        if is("Precedence") && ["bulk", "list", "junk", "auto_reply"].contains(&value.as_str()) {
            return Some("it was sent to many people");
        }
        if is("Return-Path") && (value == "<>" || value.is_empty()) {
            return Some("it is a report of a mail server");
        }
        if FIELDS.iter().any(|field| is(field)) {
            return Some("it comes from a mailing list or an automatic sender");
        }
    }
    if message.is_content_type("multipart", "report") {
        return Some("it is a report of a mail server");
    }
    // Servers that check senders look at one field, and programs that read messages at another.
    let is_sender = |name: &str| name.eq_ignore_ascii_case("From");
    if message.headers().iter().filter(|header| is_sender(header.name())).count() > 1 {
        return Some("it names its sender more than once");
    }
    let senders = message.from().map(|from| from.iter().filter_map(|person| person.address()));
    let is_unread = |address: &str| {
        let local = address.split('@').next().unwrap_or_default().to_ascii_lowercase();
        UNREAD.iter().any(|name| local == *name)
    };
    match senders {
        Some(mut senders) => senders.any(is_unread).then_some("replies to its address are not read"),
        None => Some("it has no sender"),
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{MailMessage, MessageLimits};

    fn reason(header: &str) -> Option<&'static str> {
        let text = format!("{header}\r\nSubject: x\r\n\r\nHello.\r\n");
        let limits = MessageLimits { text_chars: 100, attachment_bytes: 0 };
        MailMessage::read(text.as_bytes(), limits).expect("a message").automatic
    }

    #[test]
    fn what_a_person_writes_is_not_automatic() {
        for header in [
            "From: ann@example.org",
            "From: ann@example.org\r\nAuto-Submitted: no",
            "From: ann@example.org\r\nPrecedence: normal",
            "Return-Path: <ann@example.org>\r\nFrom: ann@example.org",
        ] {
            assert_eq!(reason(header), None, "{header}");
        }
    }

    #[test]
    fn everything_that_programs_write_is_recognised() {
        for header in [
            "From: ann@example.org\r\nAuto-Submitted: auto-replied",
            "From: ann@example.org\r\nauto-submitted: AUTO-GENERATED (vacation)",
            "From: ann@example.org\r\nPrecedence: Bulk",
            "From: ann@example.org\r\nList-Id: <list.example.org>",
            "From: ann@example.org\r\nList-Unsubscribe: <mailto:x@example.org>",
            "From: ann@example.org\r\nX-Auto-Response-Suppress: All",
            "Return-Path: <>\r\nFrom: ann@example.org",
            "From: MAILER-DAEMON@example.org",
            "From: no-reply@example.org",
            "From: ann@example.org\r\nContent-Type: multipart/report; boundary=x",
            "To: hob@example.org",
            "From: eve@example.net\r\nFrom: ann@example.org",
            "From: ann@example.org\r\nSubject: a\r\nfrom: eve@example.net",
        ] {
            assert!(reason(header).is_some(), "{header}");
        }
    }
}
