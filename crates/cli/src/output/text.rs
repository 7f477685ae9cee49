//! Untrusted text, made safe to print: control characters from a model or a server must not reach the terminal.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

/// The text without control characters, except for line breaks and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmful = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if text.contains(is_harmful) { Cow::Owned(text.replace(is_harmful, "")) } else { Cow::Borrowed(text) }
}

/// The same on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().map(printable).collect::<Vec<_>>().join(" ")
}

/// JSON that is safe to print on a terminal. serde_json escapes most control characters; this escapes the others.
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_control() && character != '\n' {
            shown.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// The text, cut to `most` characters with an ellipsis if it is longer.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text in lines that are no longer than `width`, broken between words. Lines after the first begin with `indent` spaces. A
/// word that is longer, such as an address, stays whole.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
            column = 0;
        }
        // Each word keeps the spaces after it, so that runs of spaces survive.
        let mut words = line.split_inclusive(' ').peekable();
        let mut space = 0;
        while let Some(piece) = words.next() {
            let word = piece.trim_end_matches(' ');
            if column > 0 && !word.is_empty() && column + space + word.width() > width {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                (column, space) = (indent, 0);
            }
            if !word.is_empty() {
                out.extend(std::iter::repeat_n(' ', space));
                out.push_str(word);
                column += space + word.width();
                space = 0;
            }
            space += piece.len() - word.len();
            if words.peek().is_none() {
                out.extend(std::iter::repeat_n(' ', space));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_control_the_terminal() {
        assert_eq!(printable("plain\n\ttext, ünïcode 🦙"), "plain\n\ttext, ünïcode 🦙");
        assert_eq!(printable("\u{1b}]0;owned\u{7}x\u{9b}2J\r"), "]0;ownedx2J");
        assert_eq!(one_line(" two\n\u{1b}[2Jlines\t"), "two [2Jlines");
    }

    #[test]
    fn json_cannot_control_the_terminal_and_keeps_its_value() {
        let value = serde_json::json!({ "content": "\u{1b}[2J \u{9b}2J \u{7f} ü\n" });
        let shown = printable_json(&serde_json::to_string_pretty(&value).expect("JSON"));
        assert_eq!(shown, "{\n  \"content\": \"\\u001b[2J \\u009b2J \\u007f ü\\n\"\n}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("Set a key under [server] first.", 12, 0), "Set a key\nunder\n[server]\nfirst.");
        assert_eq!(wrapped("note  two  spaces", 11, 2), "note  two\n  spaces");
        assert_eq!(
            wrapped("see http://127.0.0.1:8000/v1 there", 10, 0),
            "see\nhttp://127.0.0.1:8000/v1\nthere"
        );
        assert_eq!(wrapped("  indented line\n\nnext ", 80, 4), "  indented line\n\nnext ");
        assert_eq!(wrapped("äöü äöü", 7, 0), "äöü äöü");
        assert_eq!(wrapped("", 5, 0), "");
    }

    #[test]
    fn omitted_text_is_marked() {
        assert_eq!([0, 2, 3].map(|most| shortened("äöü", most)), ["…", "äö…", "äöü"]);
    }
}
