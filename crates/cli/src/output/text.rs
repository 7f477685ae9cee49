//! Text from outside, made safe to look at: a model or a server that writes control characters must not command the terminal.

use std::borrow::Cow;

/// The text without control characters, except for line breaks and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmful = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if text.contains(is_harmful) { Cow::Owned(text.replace(is_harmful, "")) } else { Cow::Borrowed(text) }
}

/// The same on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().map(printable).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_command_the_terminal() {
        assert_eq!(printable("plain\n\ttext, ünïcode 🦙"), "plain\n\ttext, ünïcode 🦙");
        assert_eq!(printable("\u{1b}]0;owned\u{7}x\u{9b}2J\r"), "]0;ownedx2J");
        assert_eq!(one_line(" two\n\u{1b}[2Jlines\t"), "two [2Jlines");
    }
}
