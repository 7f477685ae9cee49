//! Parses the kinds of Markdown that models write.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};

use super::delimiters::with_dollars;

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
    /// The text before the delimiters of its formulas were replaced; `None` if none was.
    written: Option<String>,
    formulas: Formulas,
}

/// Whether formulas are events of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Formulas {
    AsText,
    Apart,
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
        MarkdownSource { parsable, written: None, formulas: Formulas::AsText }
    }

    /// The same with formulas as events of their own: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`.
    pub(super) fn with_formulas(text: &str) -> Self {
        let source = MarkdownSource::new(text);
        let replaced = with_dollars(&source.parsable);
        match replaced {
            None => MarkdownSource { formulas: Formulas::Apart, ..source },
            Some(parsable) => {
                MarkdownSource { written: Some(source.parsable), parsable, formulas: Formulas::Apart }
            }
        }
    }

    /// The events, with their ranges in the text.
    pub fn events(&self) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
        let mut options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        options.set(Options::ENABLE_MATH, self.formulas == Formulas::Apart);
        let mut is_code = false;
        Parser::new_ext(&self.parsable, options).into_offset_iter().map(move |(event, range)| {
            match &event {
                Event::Start(Tag::CodeBlock(_)) => is_code = true,
                Event::End(TagEnd::CodeBlock) => is_code = false,
                _ => {}
            }
            (restored(self.as_written(event, &range, is_code)), range)
        })
    }

    /// The event with the delimiters that were replaced although they are in no formula.
    fn as_written<'a>(&'a self, event: Event<'a>, range: &Range<usize>, is_code: bool) -> Event<'a> {
        match event {
            Event::Text(text) if is_code => Event::Text(self.written_as(text, range)),
            Event::Text(text) => Event::Text(self.shown_as(text, range)),
            Event::Code(text) => Event::Code(self.written_as(text, range)),
            Event::Html(text) => Event::Html(self.written_as(text, range)),
            Event::InlineHtml(text) => Event::InlineHtml(self.written_as(text, range)),
            other => other,
        }
    }

    /// What was written where the parser read this text.
    fn written_as<'a>(&'a self, text: CowStr<'a>, range: &Range<usize>) -> CowStr<'a> {
        match self.found_at(&text, range) {
            Some((_, found)) => found.into(),
            None => text,
        }
    }

    /// The same outside of code, where the backslash of a delimiter is not shown.
    fn shown_as<'a>(&'a self, text: CowStr<'a>, range: &Range<usize>) -> CowStr<'a> {
        let Some((begin, found)) = self.found_at(&text, range) else { return text };
        let is_shown = |at: usize, sign: char| sign != '\\' || self.parsable.as_bytes()[begin + at] == b'\\';
        let signs = found.char_indices().filter(|(at, sign)| is_shown(*at, *sign));
        signs.map(|(_, sign)| sign).collect::<String>().into()
    }

    /// Where the parser read this text, and what was written there; `None` where the parser changed it, or where nothing was replaced.
    fn found_at(&self, text: &str, range: &Range<usize>) -> Option<(usize, &str)> {
        let written = self.written.as_deref().filter(|_| text.contains('$'))?;
        let at = range.start + self.parsable.get(range.clone())?.find(text)?;
        Some((at, written.get(at..at + text.len())?))
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
        Event::InlineMath(text) => Event::InlineMath(restored_text(text)),
        Event::DisplayMath(text) => Event::DisplayMath(restored_text(text)),
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
