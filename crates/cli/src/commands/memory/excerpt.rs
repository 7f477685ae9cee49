//! The part of a passage that shows why it was found, on one line.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;

use hob_memory::Passage;

/// Characters shown before the first match.
const BEFORE: usize = 60;

const LEFT_OUT: &str = "…";

/// A part of an excerpt.
#[derive(Debug, PartialEq, Eq)]
pub struct ExcerptPart {
    pub text: String,
    /// Whether this part matches the query.
    pub is_hit: bool,
}

/// About `most` characters from the part with most matches, or from the beginning if there is none.
pub fn excerpt(passage: &Passage, most: usize) -> Vec<ExcerptPart> {
    let Passage { text, marks, .. } = passage;
    let first = best_start(text, marks, most.saturating_sub(BEFORE));
    let start = text[..first].char_indices().rev().nth(BEFORE).map_or(0, |(at, _)| at);
    let end = text[start..].char_indices().nth(most).map_or(text.len(), |(at, _)| start + at);
    let mut pieces = Vec::new();
    let mut push = |text: &str, is_hit: bool| {
        if !text.is_empty() {
            pieces.push(ExcerptPart { text: spaced(text), is_hit });
        }
    };
    if start > 0 {
        push(LEFT_OUT, false);
    }
    let mut at = start;
    for mark in marks.iter().filter(|mark| mark.start >= start && mark.end <= end) {
        push(&text[at..mark.start], false);
        push(&text[mark.clone()], true);
        at = mark.end;
    }
    push(&text[at..end], false);
    if end < text.len() {
        push(LEFT_OUT, false);
    }
    pieces
}

/// The mark from which most different words follow within so many bytes; among equals the one with most marks, then the first.
fn best_start(text: &str, marks: &[Range<usize>], within: usize) -> usize {
    let worth = |(index, mark): &(usize, &Range<usize>)| {
        let near: Vec<String> = marks[*index..]
            .iter()
            .take_while(|other| other.end <= mark.start + within)
            .map(|other| text[other.clone()].to_lowercase())
            .collect();
        (near.iter().collect::<HashSet<_>>().len(), near.len(), Reverse(mark.start))
    };
    marks.iter().enumerate().max_by_key(worth).map_or(0, |(_, mark)| mark.start)
}

/// The text with every run of white space as one space.
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            blank if blank.is_whitespace() => {
                if !spaced.ends_with(' ') {
                    spaced.push(' ');
                }
            }
            other => spaced.push(other),
        }
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(text: &str, marks: impl IntoIterator<Item = Range<usize>>) -> Passage {
        Passage {
            source: "a".into(),
            title: String::new(),
            text: text.into(),
            position: 0,
            place: hob_memory::PositionUnit::Line,
            line: 1,
            end_line: 1,
            tokens: 1,
            score: 1.0,
            marks: marks.into_iter().collect(),
        }
    }

    fn shown(passage: &Passage, most: usize) -> String {
        let mark = |piece: ExcerptPart| if piece.is_hit { format!("[{}]", piece.text) } else { piece.text };
        excerpt(passage, most).into_iter().map(mark).collect()
    }

    #[test]
    fn matches_are_visible_and_marked() {
        assert_eq!(shown(&passage("Drain\n\nthe boiler.", Some(11..17)), 100), "Drain the [boiler].");
        let far = "ä".repeat(500) + "boiler" + &"z".repeat(500);
        let text = shown(&passage(&far, Some(1000..1006)), 80);
        assert!(text.starts_with("…ä") && text.contains("ä[boiler]z") && text.ends_with("z…"), "{text}");
    }

    #[test]
    fn the_part_with_most_matches_is_shown() {
        let text = format!("Pump. {}The pump, the boiler and the pump.", "z ".repeat(200));
        let found = ["Pump", "pump", "boiler"].into_iter().flat_map(|word| text.match_indices(word));
        let mut marks: Vec<Range<usize>> = found.map(|(at, word)| at..at + word.len()).collect();
        marks.sort_by_key(|mark| mark.start);
        let shown = shown(&passage(&text, marks), 120);
        assert!(shown.ends_with("The [pump], the [boiler] and the [pump]."), "{shown}");
    }

    #[test]
    fn without_a_match_the_excerpt_is_the_beginning() {
        assert_eq!(shown(&passage("one two three", None), 7), "one two…");
        assert_eq!(shown(&passage("", None), 7), "");
    }
}
