//! Messages as people read them: addresses, subject, date, text and attachments. Pure. Everything in a message was written by its sender,
//! and everything has a limit.

use hob_text::flat_mail::{flattened, unflattened};
use hob_text::html_to_text::{ReadOptions, readable_lines};
use jiff::Timestamp;
use mail_parser::{Address, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::automatic::automatic_reason;
use crate::plain_line::{is_message_id, one_line};

/// The most addresses of a field.
const MAX_PEOPLE: usize = 50;

/// The most messages that a message refers to.
const MAX_REFERENCES: usize = 50;

/// The most attachments that are named.
const MAX_ATTACHMENTS: usize = 50;

/// The field in which servers write what they found out about the sender.
const AUTHENTICATION: &str = "Authentication-Results";

/// Someone with an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailPerson {
    pub name: Option<String>,
    pub address: String,
}

impl MailPerson {
    /// `Name <address>`, or the address alone.
    pub fn shown(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} <{}>", self.address),
            None => self.address.clone(),
        }
    }
}

/// What a list shows of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailSummary {
    pub uid: u32,
    pub from: Option<MailPerson>,
    pub subject: String,
    /// When the server got it.
    pub received: Option<Timestamp>,
    /// As the sender wrote it.
    pub date: Option<Timestamp>,
    pub is_read: bool,
}

impl MailSummary {
    /// From the header alone.
    pub(crate) fn of_header(header: &[u8]) -> Self {
        let header = flattened(header);
        let Some(message) = MessageParser::default().parse_headers(&*header) else {
            return MailSummary::default();
        };
        MailSummary {
            from: people(message.from()).into_iter().next(),
            subject: subject(&message),
            date: date(&message),
            ..MailSummary::default()
        }
    }
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailAttachment {
    pub name: String,
    pub media_type: String,
    pub size: usize,
    /// Empty if it is larger than the limit.
    pub bytes: Vec<u8>,
}

/// How much of a message is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLimits {
    pub text_chars: usize,
    /// The bytes of all attachments together; 0 keeps only their names.
    pub attachment_bytes: usize,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailMessage {
    /// Without the angle brackets.
    pub message_id: Option<String>,
    pub in_reply_to: Option<String>,
    /// The thread so far, oldest first.
    pub references: Vec<String>,
    /// More than one is allowed, and unusual.
    pub from: Vec<MailPerson>,
    pub reply_to: Vec<MailPerson>,
    pub to: Vec<MailPerson>,
    pub cc: Vec<MailPerson>,
    pub subject: String,
    pub date: Option<Timestamp>,
    pub text: String,
    /// Whether the text was longer.
    pub is_shortened: bool,
    pub attachments: Vec<MailAttachment>,
    /// Why a program may have written it; `None` for what people write.
    pub automatic: Option<&'static str>,
    /// What servers on the way say about the sender, newest first.
    pub authentication_results: Vec<String>,
}

impl MailMessage {
    /// Reads a message; `None` if it has no header.
    pub fn read(bytes: &[u8], limits: MessageLimits) -> Option<Self> {
        let bytes = flattened(bytes);
        let parsed = MessageParser::default().parse(&*bytes);
        let message = parsed.filter(|message| !message.headers().is_empty())?;
        let (text, is_shortened) = text(&message, limits.text_chars);
        Some(MailMessage {
            message_id: message.message_id().and_then(id),
            in_reply_to: ids(message.in_reply_to()).into_iter().next(),
            references: ids(message.references()),
            from: people(message.from()),
            reply_to: people(message.reply_to()),
            to: people(message.to()),
            cc: people(message.cc()),
            subject: subject(&message),
            date: date(&message),
            text,
            is_shortened,
            attachments: attachments(&message, limits.attachment_bytes),
            automatic: automatic_reason(&message),
            authentication_results: authentication_results(&message),
        })
    }
}

fn subject(message: &Message<'_>) -> String {
    one_line(message.subject().unwrap_or_default())
}

fn date(message: &Message<'_>) -> Option<Timestamp> {
    Timestamp::from_second(message.date()?.to_timestamp()).ok()
}

fn people(field: Option<&Address<'_>>) -> Vec<MailPerson> {
    let Some(field) = field else { return Vec::new() };
    let found = field.iter().filter_map(|person| {
        let address = one_line(person.address()?);
        let name = person.name().map(one_line).filter(|name| !name.is_empty());
        (!address.is_empty()).then_some(MailPerson { name, address })
    });
    found.take(MAX_PEOPLE).collect()
}

fn ids(field: &HeaderValue<'_>) -> Vec<String> {
    let mut found: Vec<String> = match field {
        HeaderValue::Text(text) => id(text).into_iter().collect(),
        HeaderValue::TextList(list) => list.iter().filter_map(|text| id(text)).collect(),
        _ => Vec::new(),
    };
    // The newest ones and the first one say what a thread is.
    if found.len() > MAX_REFERENCES {
        found.drain(1..found.len() - MAX_REFERENCES + 1);
    }
    found
}

/// The id of a message, if it may stand in a header again.
fn id(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches('<').trim_end_matches('>');
    is_message_id(text).then(|| text.to_owned())
}

/// The plain text of a message, else its HTML as text.
fn text(message: &Message<'_>, most: usize) -> (String, bool) {
    let mut text = String::new();
    for part in message.text_bodies() {
        let piece = match &part.body {
            PartType::Text(piece) => unflattened(piece).replace("\r\n", "\n"),
            PartType::Html(page) => {
                let options = ReadOptions { base: None, max_bytes: most.saturating_mul(4) };
                readable_lines(&unflattened(page), options).0.text
            }
            _ => continue,
        };
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(piece.trim());
    }
    match text.char_indices().nth(most) {
        Some((end, _)) => {
            text.truncate(end);
            (text, true)
        }
        None => (text, false),
    }
}

fn attachments(message: &Message<'_>, most_bytes: usize) -> Vec<MailAttachment> {
    let mut left = most_bytes;
    let attached = message.attachments().take(MAX_ATTACHMENTS).enumerate();
    attached
        .map(|(number, part)| {
            let contents = part.contents();
            let bytes = if contents.len() <= left { contents.to_vec() } else { Vec::new() };
            left -= bytes.len();
            MailAttachment {
                name: file_name(part, number),
                media_type: media_type(part),
                size: contents.len(),
                bytes,
            }
        })
        .collect()
}

/// The last part of the name that the sender chose.
fn file_name(part: &MessagePart<'_>, number: usize) -> String {
    let name = part.attachment_name().map(one_line).unwrap_or_default();
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().trim_matches('.').to_owned();
    if name.is_empty() { format!("attachment-{}", number + 1) } else { name }
}

fn media_type(part: &MessagePart<'_>) -> String {
    let named = part.content_type().map(|kind| match kind.subtype() {
        Some(subtype) => format!("{}/{}", kind.ctype(), unflattened(subtype)),
        None => kind.ctype().to_owned(),
    });
    let is_plain = |kind: &String| {
        kind.len() <= 100 && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/+-._".contains(&byte))
    };
    named
        .map(|kind| kind.to_ascii_lowercase())
        .filter(is_plain)
        .unwrap_or("application/octet-stream".to_owned())
}

/// The fields in any character set: a field that were skipped would make an older one count, which the sender may have written.
fn authentication_results(message: &Message<'_>) -> Vec<String> {
    let fields = message.headers().iter().filter(|field| field.name().eq_ignore_ascii_case(AUTHENTICATION));
    let raw = fields.map(|field| {
        let range = field.offset_start() as usize..field.offset_end() as usize;
        String::from_utf8_lossy(message.raw_message.get(range).unwrap_or_default())
    });
    raw.map(|value| unfolded(&value)).take(MAX_PEOPLE).collect()
}

/// A field of the header on one line, with its limit.
fn unfolded(value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    words.join(" ").chars().take(4_000).collect()
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
