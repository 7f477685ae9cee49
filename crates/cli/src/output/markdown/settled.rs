//! How much of an unfinished block can be shown: as far as nothing that follows can change how it looks.

use std::ops::Range;

use hob_text::markdown::MarkdownSource;
use pulldown_cmark::{Event, Tag, TagEnd};

use super::words::{is_gap, may_break};

/// Signs that may become something else with what follows them on the line: `-` an item, a rule or a line below a heading.
const MARKS: &str = "-=*+_#>|`~:.)0123456789 \t";

/// Signs before the text of a line in an item or a quotation.
const MARGINS: &str = "-*+>.)0123456789 \t";

/// Bytes without a last line of which it is not known yet what it is.
pub fn decided(source: &str) -> usize {
    let start = source.rfind('\n').map_or(0, |at| at + 1);
    let line = &source[start..];
    let text = line.trim_start_matches(|sign| MARGINS.contains(sign));
    let is_open = line.chars().all(|sign| MARKS.contains(sign))
        || ["```", "~~~", "<"].iter().any(|opening| text.starts_with(opening));
    if is_open { start } else { source.len() }
}

/// Bytes of an unfinished block that can be shown.
pub fn settled(source: &str) -> usize {
    let text = &source[..last_boundary(source)];
    let text = &text[..decided(text)];
    let Certain { end, wholes } = certain(text);
    // All of the text ends at a boundary already.
    let mut end = if end < text.len() { last_boundary(&text[..end]) } else { end };
    loop {
        end = decided(&text[..end]);
        match wholes.iter().find(|whole| whole.start < end && end < whole.end) {
            Some(whole) => end = last_boundary(&text[..whole.start]),
            None => return end,
        }
    }
}

/// Bytes up to the last word, which may go on, unless a space follows it.
fn last_boundary(source: &str) -> usize {
    let mut after: Option<char> = None;
    for (at, character) in source.char_indices().rev() {
        let end = at + character.len_utf8();
        if is_gap(character) || after.is_some_and(|after| may_break(character, after)) {
            return end;
        }
        after = Some(character);
    }
    0
}

/// What is certain of a text.
struct Certain {
    /// Where the first sign is that may turn out to have a meaning.
    end: usize,
    /// Code within lines, emphasis, links: shown as a whole or not at all.
    wholes: Vec<Range<usize>>,
}

fn certain(text: &str) -> Certain {
    let mut wholes = Vec::new();
    let mut is_code = false;
    let mut depth = 0;
    for (event, range) in MarkdownSource::new(text).events() {
        match event {
            Event::Start(Tag::Table(_) | Tag::HtmlBlock) => return Certain { end: range.start, wholes },
            Event::Start(Tag::CodeBlock(_)) => {
                is_code = true;
                if range.end >= text.trim_end().len() {
                    // Its last line continues.
                    let line = text.rfind('\n').map_or(0, |at| at + 1);
                    return Certain { end: line.max(range.start), wholes };
                }
            }
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Code(_) | Event::InlineHtml(_) if depth == 0 => wholes.push(range),
            Event::Start(tag) if is_inline(tag.to_end()) => {
                if depth == 0 {
                    wholes.push(range);
                }
                depth += 1;
            }
            Event::End(tag) if is_inline(tag) => depth -= 1,
            Event::Text(_) if !is_code => {
                let mut signs = text[range.clone()].char_indices();
                if let Some((at, _)) = signs.find(|(at, sign)| is_doubtful(text, range.start + at, *sign)) {
                    return Certain { end: range.start + at, wholes };
                }
            }
            _ => {}
        }
    }
    Certain { end: text.len(), wholes }
}

fn is_inline(end: TagEnd) -> bool {
    matches!(end, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}

/// Whether a sign that means nothing by itself may get a meaning by what follows.
fn is_doubtful(text: &str, at: usize, sign: char) -> bool {
    let earlier = &text[..at];
    let backslashes = at - earlier.trim_end_matches('\\').len();
    if backslashes % 2 == 1 {
        return false;
    }
    let before = earlier.chars().next_back();
    let rest = &text[at + sign.len_utf8()..];
    let next = rest.chars().next().filter(|next| !next.is_whitespace());
    match sign {
        '`' | '|' => true,
        // At the end of a line it may be the end of the line that is meant.
        '\\' => rest.trim().is_empty(),
        '*' | '~' => next.is_some(),
        '_' => next.is_some() && !before.is_some_and(char::is_alphanumeric),
        '<' => next.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?')),
        '[' => !is_plain_bracket(rest),
        _ => false,
    }
}

/// Whether `[` before `rest` is certain to be no link, and no box to tick.
fn is_plain_bracket(rest: &str) -> bool {
    let mut depth = 1;
    for (at, sign) in rest.char_indices() {
        match sign {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let is_box = matches!(&rest[..at], " " | "x" | "X");
            return !is_box && !rest[at + 1..].starts_with(['(', '[', ':']);
        }
    }
    false
}
