//! The text protocol of `react`: `Thought:`, `Action:`, `Action Input:`, `Observation:`, `Final Answer:`. Pure.
//!
//! Models write it loosely, so it is parsed loosely: in any case, over several lines, with Markdown around the markers. The first
//! `Action:` or `Final Answer:` decides; a text with neither is the final answer.

use std::ops::Range;

use crate::protocol::TextFilter;

/// Markdown emphasis.
const EMPHASIS: [char; 3] = ['*', '_', '`'];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReactStep {
    /// A tool call.
    Act {
        thought: String,
        action: String,
        input: String,
    },
    Answer {
        thought: String,
        answer: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Thought,
    Action,
    ActionInput,
    Observation,
    FinalAnswer,
}

/// Longer words first, because `Action` is a prefix of `Action Input`.
const MARKERS: [(&str, Marker); 5] = [
    ("action input", Marker::ActionInput),
    ("final answer", Marker::FinalAnswer),
    ("observation", Marker::Observation),
    ("thought", Marker::Thought),
    ("action", Marker::Action),
];

#[derive(Clone, Copy)]
struct MarkerMatch<'a> {
    marker: Marker,
    /// The start, including emphasis.
    start: usize,
    /// After its colon.
    end: usize,
    /// The emphasis that is still open after the colon.
    open: &'a str,
}

pub(crate) fn parse(text: &str) -> ReactStep {
    let mut from = 0;
    while let Some(found) = decision(text, from) {
        let thought = thought(&text[..found.start]);
        if found.marker == Marker::FinalAnswer {
            return ReactStep::Answer {
                thought,
                answer: emphasised(&text[found.end..], found.open).to_owned(),
            };
        }
        let (action, input) = action(&text[found.end..]);
        // Some models write `none` as the name of the tool.
        if !["", "none", "n/a"].contains(&action.to_ascii_lowercase().as_str()) {
            return ReactStep::Act { thought, action, input };
        }
        from = line_end(text, found.end);
    }
    ReactStep::Answer { thought: String::new(), answer: text.trim().to_owned() }
}

/// Writes a step.
pub(crate) fn render(step: &ReactStep) -> String {
    let (thought, rest) = match step {
        ReactStep::Act { thought, action, input } => {
            (thought, format!("Action: {action}\nAction Input: {input}"))
        }
        ReactStep::Answer { thought, answer } => (thought, format!("Final Answer: {answer}")),
    };
    match thought.as_str() {
        "" => rest,
        thought => format!("Thought: {thought}\n{rest}"),
    }
}

/// The first `Action:` or `Final Answer:` in a line that begins at `from` or later.
fn decision(text: &str, from: usize) -> Option<MarkerMatch<'_>> {
    lines(text, from).find_map(|line| {
        marker_at_start(text, line.clone())
            .filter(|found| found.marker == Marker::Action)
            .or_else(|| final_answer_within(text, line))
    })
}

/// The ranges of the lines from `from`.
fn lines(text: &str, from: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = from;
    std::iter::from_fn(move || {
        let start = next;
        (start < text.len()).then(|| {
            next = line_end(text, start);
            start..next
        })
    })
}

/// The offset after the line at `from`.
fn line_end(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |length| from + length + 1)
}

fn marker_at_start(text: &str, line: Range<usize>) -> Option<MarkerMatch<'_>> {
    let words = text[line.clone()].trim_start_matches(['*', '_', '`', '#', '>', ' ', '\t', '\r']);
    let at = line.end - words.len();
    MARKERS.iter().find_map(|(word, marker)| {
        let spelt = words.get(..word.len())?;
        if !spelt.eq_ignore_ascii_case(word) {
            return None;
        }
        let (end, open) = colon(text, line.clone(), at..at + word.len())?;
        Some(MarkerMatch { marker: *marker, start: line.start, end, open })
    })
}

/// `Final Answer:` counts anywhere in a line, because many models do not start a new one.
fn final_answer_within(text: &str, line: Range<usize>) -> Option<MarkerMatch<'_>> {
    const WORD: &str = "final answer";
    let lower = text[line.clone()].to_ascii_lowercase();
    lower.match_indices(WORD).find_map(|(offset, _)| {
        let at = line.start + offset;
        let (end, open) = colon(text, line.clone(), at..at + WORD.len())?;
        let start = text[line.start..at].trim_end_matches(EMPHASIS).len() + line.start;
        Some(MarkerMatch { marker: Marker::FinalAnswer, start, end, open })
    })
}

/// The offset after the colon of a marker, and the emphasis that is still open there.
fn colon(text: &str, line: Range<usize>, word: Range<usize>) -> Option<(usize, &str)> {
    let before = &text[line.start..word.start];
    let open = &before[before.trim_end_matches(EMPHASIS).len()..];
    let behind = &text[word.end..line.end];
    let bare = behind.trim_start_matches(EMPHASIS);
    let open = if bare.len() < behind.len() { "" } else { open };
    let rest = bare.trim_start_matches([' ', '\t']).strip_prefix(':')?;
    Some((line.end - rest.len(), open))
}

/// The text after a marker, without the end of open emphasis.
fn emphasised<'a>(text: &'a str, open: &str) -> &'a str {
    match text.strip_prefix(open) {
        Some(rest) => rest.trim(),
        None => {
            let text = text.trim();
            text.strip_suffix(open).map_or(text, str::trim_end)
        }
    }
}

fn thought(text: &str) -> String {
    let text = text.trim();
    let first = lines(text, 0).next().and_then(|line| marker_at_start(text, line));
    match first.filter(|found| found.marker == Marker::Thought) {
        Some(found) => emphasised(&text[found.end..], found.open).to_owned(),
        None => text.to_owned(),
    }
}

/// The tool and its input in the text after `Action:`.
fn action(text: &str) -> (String, String) {
    // The rest of the line belongs to `Action:`.
    let mut markers = lines(text, line_end(text, 0)).filter_map(|line| marker_at_start(text, line));
    let first = markers.next();
    let named = text[..first.map_or(text.len(), |found| found.start)].trim();
    let (name, below) = named.split_once('\n').unwrap_or((named, ""));
    let input = match first.filter(|found| found.marker == Marker::ActionInput) {
        Some(found) => {
            let end = markers.next().map_or(text.len(), |next| next.start);
            emphasised(&text[found.end..end], found.open)
        }
        None => below.trim(),
    };
    let name = name.trim_matches(|letter: char| "*`\"'[] \t\r".contains(letter));
    (name.to_owned(), unfenced(input).to_owned())
}

/// Removes a code fence or backticks.
fn unfenced(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```") else {
        let quoted = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        return quoted.map_or(text, str::trim);
    };
    let inside = inside.strip_suffix("```").unwrap_or(inside);
    // The first line of a fence names the language.
    inside.split_once('\n').map_or(inside, |(_language, code)| code).trim()
}

/// Forwards the text after `Final Answer:`, however it is split.
#[derive(Default)]
pub(crate) struct FinalAnswerFilter {
    state: FilterState,
    /// The text that is not decided yet: the current line, or the whole answer.
    text: String,
}

#[derive(Default)]
enum FilterState {
    #[default]
    BeforeMarker,
    /// Inside the answer, of which `forwarded` bytes were forwarded.
    InAnswer { open: String, forwarded: usize },
    /// The text is an action.
    Closed,
}

impl TextFilter for FinalAnswerFilter {
    fn pass(&mut self, piece: &str) -> String {
        if matches!(self.state, FilterState::Closed) {
            return String::new();
        }
        self.text.push_str(piece);
        // Every marker ends with a colon.
        if matches!(self.state, FilterState::BeforeMarker) && piece.contains(':') {
            self.decide();
        }
        match &mut self.state {
            FilterState::BeforeMarker => {
                let line = self.text.rfind('\n').map_or(0, |at| at + 1);
                self.text.drain(..line);
                String::new()
            }
            FilterState::InAnswer { open, forwarded } => {
                let sure = stable(&self.text, open);
                let new = sure.get(*forwarded..).unwrap_or_default().to_owned();
                *forwarded += new.len();
                new
            }
            FilterState::Closed => String::new(),
        }
    }
}

impl FinalAnswerFilter {
    fn decide(&mut self) {
        let Some(found) = decision(&self.text, 0) else { return };
        if found.marker == Marker::Action {
            self.state = FilterState::Closed;
            return;
        }
        let (open, end) = (found.open.to_owned(), found.end);
        self.text.drain(..end);
        self.state = FilterState::InAnswer { open, forwarded: 0 };
    }
}

/// The part of the answer that cannot change: blanks and emphasis at the end may still be removed.
fn stable<'a>(text: &'a str, open: &str) -> &'a str {
    if text.len() < open.len() && open.starts_with(text) {
        return "";
    }
    match text.strip_prefix(open) {
        Some(rest) => rest.trim(),
        None => {
            text.trim().trim_end_matches(|letter: char| letter.is_whitespace() || EMPHASIS.contains(&letter))
        }
    }
}

#[cfg(test)]
#[path = "react_text_tests.rs"]
mod tests;
