//! The lines of a calendar file (RFC 5545): unfolding, parameters and escapes. Pure.

/// A property, such as `DTSTART;TZID=Europe/Berlin:20260301T090000`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContentLine {
    /// In capitals.
    pub name: String,
    /// Names in capitals.
    parameters: Vec<(String, String)>,
    /// As written, with escapes.
    pub value: String,
}

impl ContentLine {
    /// Reads an unfolded line; `None` if it is none.
    pub fn parse(line: &str) -> Option<Self> {
        let colon = outside_quotes(line, ':')?;
        let (head, value) = (&line[..colon], &line[colon + 1..]);
        let mut pieces = split_outside_quotes(head, ';').into_iter();
        let name = pieces.next()?.trim().to_ascii_uppercase();
        let parameters = pieces
            .filter_map(|piece| piece.split_once('='))
            .map(|(name, value)| {
                (name.trim().to_ascii_uppercase(), value.trim().trim_matches('"').to_owned())
            })
            .collect();
        (!name.is_empty()).then(|| ContentLine { name, parameters, value: value.to_owned() })
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value as text, without escapes and on one line, at most so many characters.
    pub fn text(&self, most: usize) -> String {
        let mut text = String::new();
        let mut escaped = false;
        for character in self.value.chars() {
            match (escaped, character) {
                (false, '\\') => escaped = true,
                (true, 'n' | 'N') => {
                    text.push(' ');
                    escaped = false;
                }
                (_, character) => {
                    text.push(if character.is_control() { ' ' } else { character });
                    escaped = false;
                }
            }
        }
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match words.char_indices().nth(most) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        }
    }
}

/// Calls `each` with every unfolded line.
pub(super) fn for_each_line(text: &str, mut each: impl FnMut(&str)) {
    let mut whole = String::new();
    for line in text.lines() {
        match line.strip_prefix([' ', '\t']) {
            Some(rest) if !whole.is_empty() => whole.push_str(rest),
            _ => {
                if !whole.is_empty() {
                    each(&whole);
                }
                whole.clear();
                whole.push_str(line);
            }
        }
    }
    if !whole.is_empty() {
        each(&whole);
    }
}

/// The offset of the first such character outside quotes.
fn outside_quotes(text: &str, wanted: char) -> Option<usize> {
    let mut quoted = false;
    text.char_indices().find_map(|(offset, character)| {
        quoted ^= character == '"';
        (character == wanted && !quoted).then_some(offset)
    })
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|character: char| {
        quoted ^= character == '"';
        character == separator && !quoted
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for_each_line(text, |line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn folded_lines_are_joined() {
        let text =
            "\u{feff}BEGIN:X\r\nDESCRIPTION:This is a lo\r\n ng description\r\n\t that exists.\r\n\r\nEND:X";
        assert_eq!(
            lines(text.trim_start_matches('\u{feff}')),
            ["BEGIN:X", "DESCRIPTION:This is a long description that exists.", "END:X"]
        );
        assert_eq!(lines(" folded without a first line"), [" folded without a first line"]);
    }

    #[test]
    fn parameters_may_be_quoted_and_contain_separators() {
        let line =
            ContentLine::parse("attendee;CN=\"Doe; Jane: x\";role=CHAIR:mailto:jane@example.org").unwrap();
        assert_eq!(line.name, "ATTENDEE");
        assert_eq!(line.parameter("CN"), Some("Doe; Jane: x"));
        assert_eq!(line.parameter("ROLE"), Some("CHAIR"));
        assert_eq!(line.value, "mailto:jane@example.org");
        for none in ["", "no colon", ":value", "A;B=\"open:quote"] {
            assert_eq!(ContentLine::parse(none), None, "{none}");
        }
    }

    #[test]
    fn text_has_no_escapes_and_is_one_line() {
        let line = ContentLine::parse("SUMMARY:Tea\\, cake\\; more\\nnext\u{7}\\\\end").unwrap();
        assert_eq!(line.text(100), "Tea, cake; more next \\end");
        assert_eq!(line.text(3), "Tea…");
    }
}
