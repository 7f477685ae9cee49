//! The text protocol of `react`: `Thought:`, `Action:`, `Action Input:`, `Observation:`, `Final Answer:`. Pure.
//!
//! Models write it loosely, so it is read loosely: in any case, over several lines, with Markdown around the markers. The
//! first `Action:` or `Final Answer:` decides what a text is; a text with neither is the final answer as it stands.

use std::ops::Range;

use crate::protocol::TextFilter;

/// Characters that Markdown puts around a word to make it stand out.
const EMPHASIS: [char; 3] = ['*', '_', '`'];

/// What a model wrote in one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReactStep {
    /// It wants a tool to be run.
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

/// Longer words first: `Action` is also the beginning of `Action Input`.
const MARKERS: [(&str, Marker); 5] = [
    ("action input", Marker::ActionInput),
    ("final answer", Marker::FinalAnswer),
    ("observation", Marker::Observation),
    ("thought", Marker::Thought),
    ("action", Marker::Action),
];

/// A marker in a text.
#[derive(Clone, Copy)]
struct MarkerMatch<'a> {
    marker: Marker,
    /// Where it begins, with what emphasises it.
    start: usize,
    /// Behind its colon.
    end: usize,
    /// The emphasis that begins before it and does not end before its colon.
    open: &'a str,
}

/// Reads a turn.
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
        // Models that want no tool say so in the place of its name.
        if !["", "none", "n/a"].contains(&action.to_ascii_lowercase().as_str()) {
            return ReactStep::Act { thought, action, input };
        }
        from = line_end(text, found.end);
    }
    ReactStep::Answer { thought: String::new(), answer: text.trim().to_owned() }
}

/// Writes a step the way it is asked for.
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

/// The lines from `from` on, as ranges.
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

/// Behind the line feed that ends the line at `from`.
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

/// `Final Answer:` counts anywhere in a line, because many models go straight on from their thought.
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

/// The end of the colon behind a marker's word, and the emphasis around the word that is still open there.
fn colon(text: &str, line: Range<usize>, word: Range<usize>) -> Option<(usize, &str)> {
    let before = &text[line.start..word.start];
    let open = &before[before.trim_end_matches(EMPHASIS).len()..];
    let behind = &text[word.end..line.end];
    let bare = behind.trim_start_matches(EMPHASIS);
    let open = if bare.len() < behind.len() { "" } else { open };
    let rest = bare.trim_start_matches([' ', '\t']).strip_prefix(':')?;
    Some((line.end - rest.len(), open))
}

/// A text behind a marker, without the end of the emphasis that began before it.
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

/// The tool and its input, out of what follows `Action:`.
fn action(text: &str) -> (String, String) {
    // The rest of its own line belongs to `Action:` whatever is in it.
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

/// A text without the code fence or backticks around it.
fn unfenced(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```") else {
        let quoted = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        return quoted.map_or(text, str::trim);
    };
    let inside = inside.strip_suffix("```").unwrap_or(inside);
    // The first line of a fence names the language.
    inside.split_once('\n').map_or(inside, |(_language, code)| code).trim()
}

/// Forwards what follows `Final Answer:`, however the pieces are split.
#[derive(Default)]
pub(crate) struct FinalAnswerFilter {
    state: FilterState,
    /// What is not decided yet: the line under way, or the whole answer.
    text: String,
}

#[derive(Default)]
enum FilterState {
    #[default]
    BeforeMarker,
    /// Inside the answer, of which `heard` bytes were forwarded.
    InAnswer { open: String, heard: usize },
    /// It is an action.
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
            FilterState::InAnswer { open, heard } => {
                let sure = sure(&self.text, open);
                let new = sure.get(*heard..).unwrap_or_default().to_owned();
                *heard += new.len();
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
        self.state = FilterState::InAnswer { open, heard: 0 };
    }
}

/// What will be in the answer whatever follows: blanks and emphasis at its end may yet fall away.
fn sure<'a>(text: &'a str, open: &str) -> &'a str {
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
