//! E-mail: sender, recipients, date, subject and text. Attachments are named and not read.

use hob_text::flat_mail::{flattened, unflattened};
use mail_parser::{Address, Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use super::draft::{Draft, Lines};
use super::{BlockKind, Document, ReadError, ReadLimits, html, plain};
use crate::types::PositionUnit;

/// The number of addresses of a header that are written.
const MAX_ADDRESSES: usize = 50;

const MAX_ATTACHMENTS: usize = 100;

/// The longest subject of a message in a mailbox, in characters.
const MAX_SUBJECT: usize = 300;

/// The heading of a message without a subject.
const NO_SUBJECT: &str = "(no subject)";

pub fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let flat = flattened(bytes);
    let message = parsed(&flat)
        .ok_or_else(|| ReadError::Broken { reason: "it has no header of an e-mail".to_owned() })?;
    let mut draft = Draft::new(PositionUnit::Line, limits);
    draft.title(message.subject().unwrap_or_default());
    content(&message, bytes, 1, limits, &mut draft)?;
    Ok(draft.finish())
}

/// Adds a message of a mailbox, which begins on this line, under its subject. Returns whether it is one.
pub fn append(
    bytes: &[u8],
    first_line: u32,
    limits: &ReadLimits,
    draft: &mut Draft,
) -> Result<bool, ReadError> {
    let flat = flattened(bytes);
    let Some(message) = parsed(&flat) else { return Ok(false) };
    let subject = message.subject().map(folded).filter(|subject| !subject.is_empty());
    let heading: String = subject.as_deref().unwrap_or(NO_SUBJECT).chars().take(MAX_SUBJECT).collect();
    draft.push(BlockKind::Heading(1), &heading, (first_line, first_line))?;
    content(&message, bytes, first_line, limits, draft)?;
    Ok(true)
}

/// Parses a message in which none is nested: the parser recurses over those.
fn parsed(flat: &[u8]) -> Option<Message<'_>> {
    MessageParser::default().parse(flat).filter(|message| !message.headers().is_empty())
}

/// Adds the header, the text and the names of the attachments.
fn content(
    message: &Message,
    bytes: &[u8],
    first_line: u32,
    limits: &ReadLimits,
    draft: &mut Draft,
) -> Result<(), ReadError> {
    // The header is reordered, so all of it is on the first line.
    draft.push(BlockKind::Paragraph, &head(message), (first_line, first_line))?;
    let mut lines = Lines::new(bytes);
    let mut line_of = |place: usize| lines.line_of(place).saturating_add(first_line - 1);
    for part in message.text_bodies() {
        let first = line_of(part.offset_body as usize);
        body(part, first, limits, draft)?;
    }
    let names = message.attachments().take(MAX_ATTACHMENTS).filter_map(MessagePart::attachment_name);
    let names = names.map(|name| format!("Attachment: {}", folded(name))).collect::<Vec<_>>().join("\n");
    let last = line_of(bytes.len());
    draft.push(BlockKind::Paragraph, &names, (last, last))
}

/// The header.
fn head(message: &Message) -> String {
    let date = message.date().map(mail_parser::DateTime::to_rfc3339);
    let fields = [
        ("Subject", message.subject().map(folded)),
        ("From", message.from().and_then(addresses)),
        ("To", message.to().and_then(addresses)),
        ("Cc", message.cc().and_then(addresses)),
        ("Date", date),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    fields.collect::<Vec<_>>().join("\n")
}

fn addresses(header: &Address) -> Option<String> {
    let found = header.iter().take(MAX_ADDRESSES).filter_map(|address| {
        match (address.name.as_deref().map(folded), address.address.as_deref().map(folded)) {
            (Some(name), Some(address)) => Some(format!("{name} <{address}>")),
            (name, address) => name.or(address),
        }
    });
    let found = found.collect::<Vec<_>>().join(", ");
    (!found.is_empty()).then_some(found)
}

fn body(part: &MessagePart, first: u32, limits: &ReadLimits, draft: &mut Draft) -> Result<(), ReadError> {
    match &part.body {
        // Unencoded text has the lines of the file; encoded text has only the first.
        PartType::Text(text) => {
            plain::paragraphs(&unflattened(text), first, |paragraph, (line, end_line)| {
                let place = if part.encoding == Encoding::None { (line, end_line) } else { (first, first) };
                draft.push(BlockKind::Paragraph, paragraph, place)
            })
        }
        PartType::Html(page) => html::append(&unflattened(page), limits, draft, |_| first),
        _ => Ok(()),
    }
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
