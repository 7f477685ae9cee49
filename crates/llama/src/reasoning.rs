//! Separates the reasoning of a model, `<think>…</think>` before its answer, from the answer itself. Pure.

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// The marks around the reasoning, which must be visible.
pub(crate) const MARKS: [&str; 2] = [OPENING, CLOSING];

/// Whether a prompt ends inside reasoning, which some templates begin.
pub(crate) fn is_begun_by(prompt: &str) -> bool {
    prompt.trim_end().ends_with(OPENING)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerPart {
    Reasoning(String),
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Only blanks so far, or the beginning of a mark.
    Undecided,
    /// Before the first letter of the reasoning.
    BeforeReasoning,
    Reasoning,
    /// After the reasoning, with only blanks so far.
    BeforeAnswer,
    Answer,
}

/// Separates a stream of text, however it is split. Blanks around the reasoning are dropped.
#[derive(Debug)]
pub(crate) struct ReasoningParser {
    stage: Stage,
    /// The undecided text.
    held: String,
}

/// Whether an answer contains reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Thought {
    /// The answer shows it.
    #[default]
    Possible,
    /// The prompt ends inside the reasoning.
    Begun,
    /// The answer is plain text, even if it looks like reasoning.
    None,
}

impl ReasoningParser {
    pub(crate) fn new(thought: Thought) -> Self {
        let stage = match thought {
            Thought::Possible => Stage::Undecided,
            Thought::Begun => Stage::BeforeReasoning,
            Thought::None => Stage::Answer,
        };
        ReasoningParser { stage, held: String::new() }
    }

    pub(crate) fn push(&mut self, text: String) -> Vec<AnswerPart> {
        if self.stage == Stage::Answer {
            return vec![AnswerPart::Text(text)];
        }
        self.held.push_str(&text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// The undecided text at the end of the answer.
    pub(crate) fn finish(&mut self) -> Option<AnswerPart> {
        let held = std::mem::take(&mut self.held);
        match self.stage {
            Stage::Undecided | Stage::Answer if !held.is_empty() => Some(AnswerPart::Text(held)),
            Stage::BeforeReasoning | Stage::Reasoning if !held.trim_end().is_empty() => {
                Some(AnswerPart::Reasoning(held.trim_end().to_owned()))
            }
            _ => None,
        }
    }

    /// Enters the next stage; `false` if that needs more text.
    fn step(&mut self, parts: &mut Vec<AnswerPart>) -> bool {
        match self.stage {
            Stage::Undecided => {
                let said = self.held.trim_start();
                if let Some(rest) = said.strip_prefix(OPENING) {
                    self.held = rest.to_owned();
                    self.stage = Stage::BeforeReasoning;
                    return true;
                }
                if OPENING.starts_with(said) {
                    return false;
                }
                self.answer(parts)
            }
            Stage::BeforeReasoning => {
                if self.is_blank() {
                    return false;
                }
                self.stage = Stage::Reasoning;
                true
            }
            Stage::Reasoning => {
                if let Some((thought, rest)) = self.held.split_once(CLOSING) {
                    push_thought(thought.trim_end(), parts);
                    self.held = rest.to_owned();
                    self.stage = Stage::BeforeAnswer;
                    return true;
                }
                // Blanks before the mark are dropped, so they wait with what may be a mark.
                let ready = self.held[..self.held.len() - begun_mark(&self.held)].trim_end().len();
                push_thought(&self.held[..ready], parts);
                self.held.drain(..ready);
                false
            }
            Stage::BeforeAnswer => !self.is_blank() && self.answer(parts),
            Stage::Answer => false,
        }
    }

    /// Drops leading blanks; `true` if nothing else is left.
    fn is_blank(&mut self) -> bool {
        let blanks = self.held.len() - self.held.trim_start().len();
        self.held.drain(..blanks);
        self.held.is_empty()
    }

    fn answer(&mut self, parts: &mut Vec<AnswerPart>) -> bool {
        self.stage = Stage::Answer;
        parts.push(AnswerPart::Text(std::mem::take(&mut self.held)));
        false
    }
}

fn push_thought(text: &str, parts: &mut Vec<AnswerPart>) {
    if !text.is_empty() {
        parts.push(AnswerPart::Reasoning(text.to_owned()));
    }
}

/// The bytes at the end of `text` that may begin the closing mark.
fn begun_mark(text: &str) -> usize {
    (1..CLOSING.len()).rev().find(|&length| text.ends_with(&CLOSING[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Thought and words of an answer that comes in these pieces.
    fn hear<'a>(begun: bool, pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let mut parser = ReasoningParser::new(if begun { Thought::Begun } else { Thought::Possible });
        let mut parts: Vec<AnswerPart> =
            pieces.into_iter().flat_map(|piece| parser.push(piece.to_owned())).collect();
        parts.extend(parser.finish());
        let (mut thought, mut words) = (String::new(), String::new());
        for piece in parts {
            match piece {
                AnswerPart::Reasoning(text) => thought.push_str(&text),
                AnswerPart::Text(text) => words.push_str(&text),
            }
        }
        (thought, words)
    }

    fn heard(thought: &str, words: &str) -> (String, String) {
        (thought.to_owned(), words.to_owned())
    }

    #[test]
    fn reasoning_is_separated_from_the_answer() {
        let whole = "<think>\nTwo and two.\n\nIs four.\n</think>\n\nFour. ";
        assert_eq!(hear(false, [whole]), heard("Two and two.\n\nIs four.", "Four. "));
        assert_eq!(hear(false, ["<think>\n\n</think>\n\nFour."]), heard("", "Four."));
    }

    #[test]
    fn reasoning_that_the_prompt_began_continues() {
        assert!(is_begun_by("<|assistant|><think>\n") && !is_begun_by("<think>\n\n</think>\n\n"));
        assert_eq!(hear(true, ["Hm.\n</thi", "nk>\nYes."]), heard("Hm.", "Yes."));
    }

    #[test]
    fn an_answer_without_reasoning_is_unchanged() {
        assert_eq!(hear(false, ["\n <b>", "Yes</think>"]), heard("", "\n <b>Yes</think>"));
        assert_eq!(hear(false, ["Say <think>x</think>"]), heard("", "Say <think>x</think>"));
        assert_eq!(hear(false, ["<thi"]), heard("", "<thi"));
        let mut parser = ReasoningParser::new(Thought::Possible);
        assert_eq!(parser.push("Yes".into()), [AnswerPart::Text("Yes".into())]);
    }

    #[test]
    fn incomplete_reasoning_stays_reasoning() {
        assert_eq!(hear(false, ["<think>Hm, ", "well </th"]), heard("Hm, well </th", ""));
    }

    #[test]
    fn a_thought_is_heard_while_it_is_thought() {
        let mut parser = ReasoningParser::new(Thought::Begun);
        assert_eq!(parser.push("\n Hm".into()), [AnswerPart::Reasoning("Hm".into())]);
        assert_eq!(parser.push(" a < b".into()), [AnswerPart::Reasoning(" a < b".into())]);
    }

    proptest! {
        #[test]
        fn the_split_of_the_text_makes_no_difference(
            pieces in prop::collection::vec(prop::sample::select(vec!["<think>", "</think>", "<", "</th", "é", "\n", "x y", "ink>"]), 0..10),
            begun: bool,
        ) {
            let whole = pieces.concat();
            let letters: Vec<String> = whole.chars().map(String::from).collect();
            prop_assert_eq!(hear(begun, [whole.as_str()]), hear(begun, letters.iter().map(String::as_str)));
        }
    }
}
