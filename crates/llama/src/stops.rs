//! Ends an answer at a stop string, also when it spans several tokens. Knows only text.
//!
//! The stop strings are one automaton (Aho and Corasick), so the work for a byte of the answer does not grow with their number.

use std::collections::HashMap;

/// Passes text until a stop string is complete, and holds back what may begin one.
#[derive(Debug)]
pub(crate) struct StopMatcher {
    states: Vec<State>,
    /// The current state.
    at: usize,
    held: String,
    /// The stop string that ended the answer.
    matched: Option<String>,
}

/// A prefix of stop strings.
#[derive(Debug, Default)]
struct State {
    next: HashMap<u8, usize>,
    /// The longest suffix that is also a prefix.
    fallback: usize,
    length: usize,
    /// The length of the longest stop string that ends here.
    complete: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Text of the answer.
    pub(crate) text: String,
    /// Whether a stop string was completed.
    pub(crate) stopped: bool,
}

impl StopMatcher {
    pub(crate) fn new(stops: &[String]) -> Self {
        StopMatcher { states: states(stops), at: 0, held: String::new(), matched: None }
    }

    pub(crate) fn push(&mut self, text: String) -> Passed {
        if self.states.len() == 1 {
            return Passed { text, stopped: false };
        }
        let before = self.held.len();
        self.held.push_str(&text);
        // The first complete stop string wins, so that the result does not depend on how the text is split.
        for (offset, byte) in text.bytes().enumerate() {
            self.at = step(&self.states, self.at, byte);
            if let Some(length) = self.states[self.at].complete {
                let end = before + offset + 1;
                self.matched = self.held.get(end - length..end).map(str::to_owned);
                self.held.truncate(end - length);
                return Passed { text: std::mem::take(&mut self.held), stopped: true };
            }
        }
        // A prefix of a stop string begins with a whole character.
        let open = self.held.len() - self.states[self.at].length;
        let kept = self.held.split_off(open);
        Passed { text: std::mem::replace(&mut self.held, kept), stopped: false }
    }

    /// The stop string that ended the answer.
    pub(crate) fn take_matched(&mut self) -> Option<String> {
        self.matched.take()
    }

    /// The answer is over: what was held back is part of it after all.
    pub(crate) fn finish(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.held)
    }
}

/// The automaton of all stop strings. State 0 is the empty prefix.
fn states(stops: &[String]) -> Vec<State> {
    let mut states = vec![State::default()];
    for stop in stops.iter().filter(|stop| !stop.is_empty()) {
        let mut at = 0;
        for (length, byte) in (1..).zip(stop.bytes()) {
            at = match states[at].next.get(&byte) {
                Some(&next) => next,
                None => {
                    let new = states.len();
                    states.push(State { length, ..State::default() });
                    states[at].next.insert(byte, new);
                    new
                }
            };
        }
        states[at].complete = Some(stop.len());
    }
    // Shorter beginnings first, since the fallback of one is a shorter one.
    let mut order = vec![0];
    let mut done = 0;
    while let Some(&at) = order.get(done) {
        done += 1;
        let children: Vec<(u8, usize)> = states[at].next.iter().map(|(&byte, &next)| (byte, next)).collect();
        for (byte, child) in children {
            let fallback = if at == 0 { 0 } else { step(&states, states[at].fallback, byte) };
            states[child].fallback = fallback;
            states[child].complete = states[child].complete.or(states[fallback].complete);
            order.push(child);
        }
    }
    states
}

fn step(states: &[State], mut at: usize, byte: u8) -> usize {
    loop {
        if let Some(&next) = states[at].next.get(&byte) {
            return next;
        }
        if at == 0 {
            return 0;
        }
        at = states[at].fallback;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes out of a text cut into pieces.
    fn through<'a>(stops: &[String], pieces: impl IntoIterator<Item = &'a str>) -> (String, bool) {
        let mut matcher = StopMatcher::new(stops);
        let mut out = String::new();
        for piece in pieces {
            let passed = matcher.push(piece.to_owned());
            out.push_str(&passed.text);
            if passed.stopped {
                return (out, true);
            }
        }
        out.push_str(&matcher.finish());
        (out, false)
    }

    #[test]
    fn a_stop_string_across_pieces_ends_the_answer_before_it() {
        let stops = vec!["</end>".to_owned()];
        assert_eq!(through(&stops, ["hello <", "/e", "nd> more"]), ("hello ".into(), true));
    }

    #[test]
    fn a_partial_stop_string_is_returned_as_text() {
        let stops = vec!["</end>".to_owned()];
        assert_eq!(through(&stops, ["a </e", "m> b </"]), ("a </em> b </".into(), false));
    }

    #[test]
    fn the_stop_string_that_is_complete_first_wins() {
        let stops = vec!["abc".to_owned(), "b".to_owned()];
        assert_eq!(through(&stops, ["xabc"]), ("xa".into(), true));
        assert_eq!(through(&stops, ["xa", "bc"]), ("xa".into(), true));
    }

    #[test]
    fn many_stop_strings_cost_no_more_than_one() {
        let stops: Vec<String> = (0..100_000).map(|n| format!("stop number {n:06}!")).collect();
        let mut matcher = StopMatcher::new(&stops);
        // Looking for each of them in each of these pieces would take minutes.
        let pieces =
            (0..20_000).map(|n| matcher.push(format!("stop number {n:06} "))).filter(|passed| passed.stopped);
        assert_eq!(pieces.count(), 0);
        assert!(matcher.push("stop number 099999!".into()).stopped);
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_the_split(
            text in "[abé]{0,30}",
            stops in prop::collection::vec("[abé]{1,4}", 0..3),
            cuts in prop::collection::vec(1usize..4, 0..40),
        ) {
            let whole = through(&stops, [text.as_str()]);
            let chars: Vec<char> = text.chars().collect();
            let mut pieces = Vec::new();
            let mut rest = chars.as_slice();
            let mut cuts = cuts.into_iter().cycle();
            while !rest.is_empty() {
                let n = cuts.next().unwrap_or(1).min(rest.len());
                pieces.push(rest[..n].iter().collect::<String>());
                rest = &rest[n..];
            }
            prop_assert_eq!(&through(&stops, pieces.iter().map(String::as_str)), &whole);
            if !whole.1 {
                prop_assert_eq!(whole.0, text);
            } else {
                prop_assert!(text.starts_with(&whole.0));
                prop_assert!(stops.iter().all(|stop| !whole.0.contains(stop.as_str())));
            }
        }
    }
}
