//! The delimiters of formulas with a backslash, `\(…\)` and `\[…\]`, as dollars, which the parser knows. Every byte keeps its place.

use std::ops::Range;

/// What replaces a delimiter. It has as many bytes, and allows spaces inside of it.
const DOLLARS: &str = "$$";

const LINE_ENDS: [char; 2] = ['\n', '\r'];

/// The text with dollars, or `None` if nothing is to be replaced.
///
/// Only pairs are replaced: in one line, or with brackets in the lines of one paragraph. Lines with a dollar or a link stay as
/// they are, so that a dollar that is replaced never meets another one, whatever text follows.
pub(super) fn with_dollars(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    let mut line = CheckedLine::default();
    while let Some(found) = text[at..].find('\\').map(|found| at + found) {
        let Some(length) = pair_length(text, found, &mut line) else {
            // What is escaped begins nothing.
            at = next_boundary(text, found + 1);
            continue;
        };
        let end = found + length;
        out.push_str(&text[copied..found]);
        out.push_str(DOLLARS);
        out.push_str(&text[found + 2..end - 2]);
        out.push_str(DOLLARS);
        (copied, at) = (end, end);
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// Behind the character at this place.
fn next_boundary(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(0, char::len_utf8)
}

/// The line that was checked last: many pairs can be in one long line.
#[derive(Default)]
struct CheckedLine {
    range: Range<usize>,
    is_fit: bool,
}

impl CheckedLine {
    /// Whether the lines of this part of the text have no dollar and no link.
    fn is_fit_around(&mut self, text: &str, part: &Range<usize>) -> bool {
        if self.range.start <= part.start && part.end <= self.range.end {
            return self.is_fit;
        }
        let begin = text[..part.start].rfind(LINE_ENDS).map_or(0, |newline| newline + 1);
        let end = text[part.end..].find(LINE_ENDS).map_or(text.len(), |newline| part.end + newline);
        let lines = &text[begin..end];
        let is_fit = !lines.contains('$') && !lines.contains("](");
        if !lines.contains(LINE_ENDS) {
            *self = CheckedLine { range: begin..end, is_fit };
        }
        is_fit
    }
}

/// Bytes from the delimiter that begins here to the one that closes it.
fn pair_length(text: &str, begin: usize, line: &mut CheckedLine) -> Option<usize> {
    let inside = &text[begin + 1..];
    let (closing, is_line) = match inside.as_bytes().first()? {
        b'(' => (b')', true),
        b'[' => (b']', false),
        _ => return None,
    };
    let end = begin + 2 + closing_delimiter(&inside[1..], closing)?;
    let pair = &text[begin..end];
    let is_fit = match pair.contains(LINE_ENDS) {
        true => !is_line && is_in_one_paragraph(text, begin..end) && line.is_fit_around(text, &(begin..end)),
        false => line.is_fit_around(text, &(begin..end)),
    };
    is_fit.then_some(end - begin)
}

/// Whether no line of a pair begins another block. A formula that is refused here is shown as text.
fn is_in_one_paragraph(text: &str, pair: Range<usize>) -> bool {
    let before = &text[text[..pair.start].rfind(LINE_ENDS).map_or(0, |newline| newline + 1)..pair.start];
    let is_paragraph = !before.trim_start().starts_with('#') && !before.contains('|');
    let pair = text[pair].replace("\r\n", "\n");
    is_paragraph && pair.split(LINE_ENDS).skip(1).all(|line| continues_paragraph(line.trim()))
}

fn continues_paragraph(line: &str) -> bool {
    let begins_list = || {
        let rest = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
        rest.len() < line.len() && rest.starts_with(['.', ')'])
    };
    !line.is_empty()
        && !line.starts_with(['-', '+', '*', '>', '#', '|', '~', '`', '<', '_'])
        && line.contains(|sign: char| sign != '=')
        && !begins_list()
}

/// Where the closing delimiter ends. Another delimiter before it is no formula.
fn closing_delimiter(text: &str, closing: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b'\\')?;
        match bytes.get(at + 1)? {
            found if *found == closing => return Some(at + 2),
            b'(' | b'[' | b')' | b']' => return None,
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_dollars_of_the_same_length() {
        for (text, expected) in [
            ("a \\(x\\) b", "a $$x$$ b"),
            ("\\[ x = \\frac{1}{2} \\]", "$$ x = \\frac{1}{2} $$"),
            ("\\[\nx\n\\]", "$$\nx\n$$"),
            ("\\[\r\nx\r\n\\]", "$$\r\nx\r\n$$"),
            ("\\(漢\\) and \\(y\\)", "$$漢$$ and $$y$$"),
        ] {
            assert_eq!(with_dollars(text).as_deref(), Some(expected), "{text}");
            assert_eq!(text.len(), expected.len());
        }
    }

    #[test]
    fn what_is_no_pair_stays() {
        for text in [
            "plain",
            "\\(x",
            "x\\)",
            "\\(a\nb\\)",
            "\\[a\n\nb\\]",
            "\\[a\r\n\r\nb\\]",
            "\\[a\r\rb\\]",
            "\\[\n- b\n\\]",
            "\\[ a\n===\n\\]",
            "\\[a\n1. b\\]",
            "# \\[a\nb\\]",
            "| \\[a\nb\\]",
            "\\\\[4pt]",
            "\\\\(x\\\\)",
            "\\(x\\]",
            "costs $5 \\(x\\)",
            "[a](b\\(c\\))",
            "\\",
            "\\漢\\(",
        ] {
            assert_eq!(with_dollars(text), None, "{text}");
        }
    }
}
