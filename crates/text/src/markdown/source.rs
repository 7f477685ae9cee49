//! Parses the kinds of Markdown that models write.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag};

/// Tables with more columns are text. A parser adds the cells that are missing in short rows, so wide tables cost far more
/// memory than their text.
pub(super) const MAX_COLUMNS: usize = 64;

/// Stand for characters that would have a meaning to the parser, and occur in no text that is shown.
const COLON: char = '\u{1}';
const HYPHEN: char = '\u{2}';

/// A text to parse.
pub struct MarkdownSource {
    /// With stand-ins, and every byte at its place.
    parsable: String,
}

impl MarkdownSource {
    pub fn new(text: &str) -> Self {
        // A definition of a link's address would be hidden from the reader, and change the meaning of text that is shown.
        let mut parsable = text.replace("]:", &format!("]{COLON}"));
        if text.lines().any(is_too_wide) {
            let lines = parsable.split_inclusive('\n');
            let narrow =
                |line: &str| if is_too_wide(line) { line.replace('-', "\u{2}") } else { line.to_owned() };
            parsable = lines.map(narrow).collect();
        }
        MarkdownSource { parsable }
    }

    /// The events, with their ranges in the text.
    pub fn events(&self) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let parser = Parser::new_ext(&self.parsable, options);
        parser.into_offset_iter().map(|(event, range)| (restored(event), range))
    }
}

/// Where the blocks begin, each at the beginning of its line.
pub fn block_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in MarkdownSource::new(text).events() {
        if depth == 0 {
            starts.push(line_start(text, range.start));
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    starts
}

/// Whether an HTML tag is a line break, the only tag with a meaning. All others are shown as text.
pub fn is_line_break(html: &str) -> bool {
    html.trim_end_matches(['>', '/', ' ']).eq_ignore_ascii_case("<br")
}

/// Where the line of this byte begins. The byte may be in the middle of a character.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    let is_newline = |byte: &u8| matches!(byte, b'\n' | b'\r');
    text.as_bytes()[..at].iter().rposition(is_newline).map_or(0, |newline| newline + 1)
}

/// Whether this line below the head of a table has too many columns.
fn is_too_wide(line: &str) -> bool {
    line.len() > MAX_COLUMNS
        && line.bytes().all(|byte| b" \t\r\n|:->".contains(&byte))
        && line.matches('|').count() > MAX_COLUMNS
}

/// The event with the characters of the text instead of their stand-ins.
fn restored(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Text(text) => Event::Text(restored_text(text)),
        Event::Code(text) => Event::Code(restored_text(text)),
        Event::Html(text) => Event::Html(restored_text(text)),
        Event::InlineHtml(text) => Event::InlineHtml(restored_text(text)),
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(restored_text(info))))
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Link { link_type, dest_url: restored_text(dest_url), title, id })
        }
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            Event::Start(Tag::Image { link_type, dest_url: restored_text(dest_url), title, id })
        }
        other => other,
    }
}

fn restored_text(text: CowStr<'_>) -> CowStr<'_> {
    match text.contains([COLON, HYPHEN]) {
        true => text.replace(COLON, ":").replace(HYPHEN, "-").into(),
        false => text,
    }
}
