//! Ends an answer at a stop string, also when it spans several tokens. Knows only text.
//!
//! The stop strings are one automaton (Aho and Corasick), so the work for a byte of the answer does not grow with their number.

use std::collections::HashMap;
use std::sync::Arc;

/// Passes text until a stop string is complete, and holds back what may begin one.
#[derive(Debug)]
pub(crate) struct StopMatcher {
    stops: StopStrings,
    /// The current state.
    at: usize,
    held: String,
    /// The stop string that ended the answer.
    matched: Option<String>,
}

/// The stop strings of a request. Its answers share them. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct StopStrings(Arc<Automaton>);

#[derive(Debug)]
struct Automaton {
    /// State 0 is the empty prefix.
    states: Vec<State>,
    /// The state after a state and a byte.
    next: HashMap<(usize, u8), usize>,
}

/// A prefix of stop strings.
#[derive(Debug, Default)]
struct State {
    /// The prefix without its last byte, and that byte.
    parent: (usize, u8),
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
    pub(crate) fn new(stops: &StopStrings) -> Self {
        StopMatcher { stops: stops.clone(), at: 0, held: String::new(), matched: None }
    }

    pub(crate) fn push(&mut self, text: String) -> Passed {
        let automaton = &*self.stops.0;
        if automaton.states.len() == 1 {
            return Passed { text, stopped: false };
        }
        let before = self.held.len();
        self.held.push_str(&text);
        // The first complete stop string wins, so that the result does not depend on how the text is split.
        for (offset, byte) in text.bytes().enumerate() {
            self.at = automaton.step(self.at, byte);
            if let Some(length) = automaton.states[self.at].complete {
                let end = before + offset + 1;
                self.matched = self.held.get(end - length..end).map(str::to_owned);
                self.held.truncate(end - length);
                return Passed { text: std::mem::take(&mut self.held), stopped: true };
            }
        }
        // A prefix of a stop string begins with a whole character.
        let open = self.held.len() - automaton.states[self.at].length;
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

impl Default for StopStrings {
    fn default() -> Self {
        StopStrings::new(&[])
    }
}

impl StopStrings {
    pub(crate) fn new(stops: &[String]) -> Self {
        let mut automaton = Automaton { states: vec![State::default()], next: HashMap::new() };
        stops.iter().filter(|stop| !stop.is_empty()).for_each(|stop| automaton.add(stop));
        automaton.find_fallbacks();
        StopStrings(Arc::new(automaton))
    }
}

impl Automaton {
    fn add(&mut self, stop: &str) {
        let mut at = 0;
        for (length, byte) in (1..).zip(stop.bytes()) {
            let states = &mut self.states;
            at = *self.next.entry((at, byte)).or_insert_with(|| {
                states.push(State { parent: (at, byte), length, ..State::default() });
                states.len() - 1
            });
        }
        self.states[at].complete = Some(stop.len());
    }

    fn find_fallbacks(&mut self) {
        // Shorter prefixes first, since the fallback of one is a shorter one.
        let mut order: Vec<usize> = (1..self.states.len()).collect();
        order.sort_by_key(|at| self.states[*at].length);
        for at in order {
            let (parent, byte) = self.states[at].parent;
            let fallback = if parent == 0 { 0 } else { self.step(self.states[parent].fallback, byte) };
            let complete = self.states[at].complete.or(self.states[fallback].complete);
            let state = &mut self.states[at];
            (state.fallback, state.complete) = (fallback, complete);
        }
    }

    fn step(&self, mut at: usize, byte: u8) -> usize {
        loop {
            if let Some(&next) = self.next.get(&(at, byte)) {
                return next;
            }
            if at == 0 {
                return 0;
            }
            at = self.states[at].fallback;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes out of a text cut into pieces.
    fn through<'a>(stops: &[String], pieces: impl IntoIterator<Item = &'a str>) -> (String, bool) {
        let mut matcher = StopMatcher::new(&StopStrings::new(stops));
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
        let mut matcher = StopMatcher::new(&StopStrings::new(&stops));
        // Looking for each of them in each of these pieces would take minutes.
        let pieces =
            (0..20_000).map(|n| matcher.push(format!("stop number {n:06} "))).filter(|passed| passed.stopped);
        assert_eq!(pieces.count(), 0);
        assert!(matcher.push("stop number 099999!".into()).stopped);
    }

    #[test]
    fn answers_share_their_stop_strings() {
        let stops = StopStrings::new(&["one".to_owned()]);
        let [mut first, mut second] = [StopMatcher::new(&stops), StopMatcher::new(&stops)];
        assert!(Arc::ptr_eq(&first.stops.0, &second.stops.0));
        assert!(!first.push("on".into()).stopped && !second.push("e".into()).stopped);
        assert!(first.push("e".into()).stopped);
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
