//! Parses tool calls in a stream of text. Pure.
//!
//! With a grammar, the text is always well formed; without one, text that is not a call is returned as text.

use crate::tools::ToolFormat;

/// A longer head is not a call.
const MAX_HEAD: usize = 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// The start of a call, from zero.
    Call {
        index: u32,
        name: String,
    },
    /// A part of the arguments.
    Arguments {
        index: u32,
        text: String,
    },
}

#[derive(Debug)]
enum State {
    /// Plain text; what may begin an opening is held back.
    Text { held: String },
    /// Between an opening and the arguments.
    Head { seen: String },
    /// Inside the arguments.
    Arguments { depth: usize, in_text: bool, escaped: bool },
    /// After the arguments: punctuation until the next call.
    Tail { seen: String },
    /// After the last call.
    Over,
}

#[derive(Debug)]
pub(crate) struct ToolParser {
    format: ToolFormat,
    state: State,
    calls: u32,
    /// Whether there was text that is not blank.
    anything: bool,
    /// The text from the first opening.
    call_text: Option<String>,
}

impl ToolParser {
    pub(crate) fn new(format: ToolFormat) -> Self {
        ToolParser {
            format,
            state: State::Text { held: String::new() },
            calls: 0,
            anything: false,
            call_text: None,
        }
    }

    /// The number of calls.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// The text since the first opening, if any.
    pub(crate) fn call_text(&self) -> Option<&str> {
        self.call_text.as_deref()
    }

    pub(crate) fn push(&mut self, text: &str) -> Vec<Piece> {
        if let Some(call_text) = &mut self.call_text {
            call_text.push_str(text);
        }
        let mut pieces = Vec::new();
        let mut rest = text.to_owned();
        while !rest.is_empty() {
            rest = self.step(rest, &mut pieces);
        }
        pieces
    }

    /// The answer has ended. Returns the held text.
    pub(crate) fn finish(&mut self) -> Vec<Piece> {
        let left = match &mut self.state {
            State::Text { held } => std::mem::take(held),
            State::Head { seen } if self.calls == 0 => std::mem::take(seen),
            _ => String::new(),
        };
        if left.is_empty() { Vec::new() } else { vec![Piece::Text(left)] }
    }

    /// Processes a part of `text`, and returns the rest.
    fn step(&mut self, text: String, pieces: &mut Vec<Piece>) -> String {
        match &mut self.state {
            State::Text { held } => {
                held.push_str(&text);
                let held = std::mem::take(held);
                self.in_text(held, pieces)
            }
            State::Head { seen } => {
                seen.push_str(&text);
                match read_head(seen, self.format, self.calls) {
                    Head::Whole { name, length } => {
                        let rest = seen.split_off(length);
                        pieces.push(Piece::Call { index: self.calls, name });
                        self.calls += 1;
                        self.state = State::Arguments { depth: 0, in_text: false, escaped: false };
                        rest
                    }
                    Head::Unfinished if seen.len() <= MAX_HEAD => String::new(),
                    Head::Unfinished | Head::Wrong if self.calls == 0 => {
                        let seen = std::mem::take(seen);
                        self.give_back(seen, pieces)
                    }
                    Head::Unfinished | Head::Wrong => {
                        self.state = State::Over;
                        String::new()
                    }
                }
            }
            State::Arguments { .. } => self.in_arguments(text, pieces),
            State::Tail { seen } => {
                seen.push_str(&text);
                let seen = std::mem::take(seen);
                self.in_tail(seen)
            }
            State::Over => String::new(),
        }
    }

    fn in_text(&mut self, held: String, pieces: &mut Vec<Piece>) -> String {
        let opening = self.format.opening();
        let found = if opening.is_empty() {
            // A bare call must be the whole answer.
            let blank = held.len() - held.trim_start().len();
            (!self.anything && held[blank..].starts_with('{')).then_some(blank)
        } else {
            held.find(opening)
        };
        if let Some(at) = found {
            let (before, after) = held.split_at(at);
            if !before.trim().is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            self.call_text = Some(after.to_owned());
            self.state = State::Head { seen: String::new() };
            return after.to_owned();
        }
        let keep = (1..opening.len().min(held.len() + 1))
            .rev()
            .find(|&length| held.ends_with(&opening[..length]))
            .unwrap_or(0);
        let (sure, open) = held.split_at(held.len() - keep);
        self.anything |= !sure.trim().is_empty();
        // Blanks before a call are dropped, so they wait.
        if self.anything {
            pieces.push(Piece::Text(sure.to_owned()));
            self.state = State::Text { held: open.to_owned() };
        } else {
            self.state = State::Text { held };
        }
        String::new()
    }

    /// Not a call after all.
    fn give_back(&mut self, seen: String, pieces: &mut Vec<Piece>) -> String {
        self.anything = true;
        self.call_text = None;
        pieces.push(Piece::Text(seen));
        self.state = State::Text { held: String::new() };
        String::new()
    }

    fn in_arguments(&mut self, text: String, pieces: &mut Vec<Piece>) -> String {
        let State::Arguments { depth, in_text, escaped } = &mut self.state else {
            return text;
        };
        let mut end = None;
        for (at, char) in text.char_indices() {
            if *escaped {
                *escaped = false;
                continue;
            }
            match char {
                '\\' if *in_text => *escaped = true,
                '"' => *in_text = !*in_text,
                '{' | '[' if !*in_text => *depth += 1,
                // Closes the call: the arguments were not an object.
                '}' | ']' if !*in_text && *depth == 0 => {
                    end = Some(at);
                    break;
                }
                '}' | ']' if !*in_text => {
                    *depth -= 1;
                    if *depth == 0 {
                        end = Some(at + 1);
                        break;
                    }
                }
                _ => {}
            }
        }
        let (arguments, rest) = text.split_at(end.unwrap_or(text.len()));
        if !arguments.is_empty() {
            pieces.push(Piece::Arguments { index: self.calls.saturating_sub(1), text: arguments.to_owned() });
        }
        if end.is_some() {
            self.state = State::Tail { seen: String::new() };
        }
        rest.to_owned()
    }

    /// Skips punctuation until the next call. Text after a call is dropped.
    fn in_tail(&mut self, seen: String) -> String {
        let rest = match self.format {
            ToolFormat::Tagged => seen.split_once(self.format.opening()).map(|(_, rest)| rest),
            ToolFormat::List => {
                let after = seen.trim_start_matches(|char: char| char.is_whitespace() || char == '}');
                if !after.is_empty() && !after.starts_with(',') {
                    // The list is closed.
                    self.state = State::Over;
                    return String::new();
                }
                after.strip_prefix(',')
            }
            ToolFormat::Bare => None,
        };
        match rest {
            Some(rest) => {
                self.state = State::Head { seen: String::new() };
                rest.to_owned()
            }
            None => {
                // Enough to recognise a split opening.
                let mut keep = seen.len().saturating_sub(32);
                while !seen.is_char_boundary(keep) {
                    keep += 1;
                }
                self.state = State::Tail { seen: seen[keep..].to_owned() };
                String::new()
            }
        }
    }
}

enum Head {
    Unfinished,
    Wrong,
    Whole {
        name: String,
        /// The offset of the arguments.
        length: usize,
    },
}

/// Parses up to the arguments: from the opening, or from the separator after earlier `calls`.
fn read_head(text: &str, format: ToolFormat, calls: u32) -> Head {
    let key = format!("\"{}\"", format.arguments_key());
    let mut cursor = Cursor { text, at: 0 };
    let (opening, bracket) = match (calls, format) {
        (0, ToolFormat::List) => (format.opening(), "["),
        (0, _) => (format.opening(), ""),
        _ => ("", ""),
    };
    for word in [opening, bracket, "{", "\"name\"", ":"] {
        match cursor.word(word) {
            Some(true) => {}
            Some(false) => return Head::Wrong,
            None => return Head::Unfinished,
        }
    }
    let name = match cursor.quoted() {
        Some(Some(name)) => name,
        Some(None) => return Head::Wrong,
        None => return Head::Unfinished,
    };
    for word in [",", key.as_str(), ":"] {
        match cursor.word(word) {
            Some(true) => {}
            Some(false) => return Head::Wrong,
            None => return Head::Unfinished,
        }
    }
    cursor.blanks();
    if cursor.rest().is_empty() {
        return Head::Unfinished;
    }
    Head::Whole { name, length: cursor.at }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Whether `word` is next; `None` if more text is needed.
    fn word(&mut self, word: &str) -> Option<bool> {
        self.blanks();
        if self.rest().starts_with(word) {
            self.at += word.len();
            Some(true)
        } else if word.starts_with(self.rest()) {
            None
        } else {
            Some(false)
        }
    }

    /// The next JSON string: `None` if more text is needed, `Some(None)` if there is none.
    fn quoted(&mut self) -> Option<Option<String>> {
        if !self.word("\"")? {
            return Some(None);
        }
        let start = self.at - 1;
        let mut escaped = false;
        for (offset, char) in self.rest().char_indices() {
            match char {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.at += offset + 1;
                    return Some(serde_json::from_str(&self.text[start..self.at]).ok());
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a text cut into pieces amounts to: words, then names with their arguments.
    fn read<'a>(
        format: ToolFormat,
        pieces: impl IntoIterator<Item = &'a str>,
    ) -> (String, Vec<(String, String)>) {
        let mut parser = ToolParser::new(format);
        let mut found: Vec<Piece> = pieces.into_iter().flat_map(|piece| parser.push(piece)).collect();
        found.extend(parser.finish());
        let (mut words, mut calls) = (String::new(), Vec::<(String, String)>::new());
        for piece in found {
            match piece {
                Piece::Text(text) => words.push_str(&text),
                Piece::Call { index, name } => {
                    assert_eq!(index as usize, calls.len());
                    calls.push((name, String::new()));
                }
                Piece::Arguments { index, text } => calls[index as usize].1.push_str(&text),
            }
        }
        (words, calls)
    }

    fn call(name: &str, arguments: &str) -> (String, String) {
        (name.into(), arguments.into())
    }

    const TWO: &str = "Let me look.\n<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": \"}\\\"{\", \"y\": [1]}}\n</tool_call>\n\
        <tool_call>{\"name\":\"b\",\"arguments\":{}}</tool_call>";

    #[test]
    fn tagged_calls_are_found_after_text() {
        assert_eq!(
            read(ToolFormat::Tagged, [TWO]),
            ("Let me look.\n".into(), vec![call("a", "{\"x\": \"}\\\"{\", \"y\": [1]}"), call("b", "{}")])
        );
    }

    #[test]
    fn a_list_of_calls_is_found() {
        let text = "[TOOL_CALLS][{\"name\": \"a\", \"arguments\": {\"x\": 1}}, {\"name\": \"b\", \"arguments\": {}}]";
        assert_eq!(
            read(ToolFormat::List, [text]),
            (String::new(), vec![call("a", "{\"x\": 1}"), call("b", "{}")])
        );
    }

    #[test]
    fn text_after_a_list_of_calls_is_dropped() {
        let list = "[TOOL_CALLS][{\"name\": \"a\", \"arguments\": {\"x\": 1}}";
        for after in ["], and so on", "] , {\"name\": \"b\"", ", but no call", " then, this"] {
            let text = format!("{list}{after}");
            let (words, calls) = read(ToolFormat::List, [text.as_str()]);
            assert_eq!((words.as_str(), calls), ("", vec![call("a", "{\"x\": 1}")]), "{text}");
        }
    }

    #[test]
    fn a_bare_call_is_the_whole_answer() {
        let text = " {\"name\": \"a\", \"parameters\": {\"x\": 1}}";
        assert_eq!(read(ToolFormat::Bare, [text]), (String::new(), vec![call("a", "{\"x\": 1}")]));
        let words = "An object is {\"name\": 1}.";
        assert_eq!(read(ToolFormat::Bare, [words]), (words.into(), vec![]));
    }

    #[test]
    fn text_that_is_not_a_call_stays_text() {
        for words in ["<tool_call> is how calls begin", "a < b <tool", "<tool_call>{\"nam"] {
            assert_eq!(read(ToolFormat::Tagged, [words]), (words.into(), vec![]));
        }
    }

    #[test]
    fn an_incomplete_call_keeps_its_text() {
        assert_eq!(
            read(ToolFormat::Tagged, ["<tool_call>{\"name\": \"a\", \"arguments\": {\"x\": \"abc"]),
            (String::new(), vec![call("a", "{\"x\": \"abc")])
        );
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_the_split(cuts in prop::collection::vec(1usize..9, 1..40)) {
            let mut pieces = Vec::new();
            let mut rest = TWO;
            let mut cuts = cuts.into_iter().cycle();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(read(ToolFormat::Tagged, pieces), read(ToolFormat::Tagged, [TWO]));
        }

        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,80}", format in 0..3) {
            let format = [ToolFormat::Tagged, ToolFormat::List, ToolFormat::Bare][format as usize];
            let _ = read(format, text.chars().map(|char| char.to_string()).collect::<Vec<_>>().iter().map(String::as_str));
        }
    }
}
