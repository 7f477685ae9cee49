//! Ends an answer at a stop string, also when it spans several tokens. Knows only text.
//!
//! The stop strings are one automaton (Aho and Corasick), so the work for a byte of the answer does not grow with their number.

use std::collections::HashMap;
use std::sync::Arc;

/// Passes text until a stop string is complete, and holds back what may begin one. Clones share the automaton, which is many times larger
/// than the stop strings.
#[derive(Debug, Clone)]
pub(crate) struct StopMatcher {
    automaton: Arc<Automaton>,
    /// The current state.
    at: u32,
    held: String,
    /// The stop string that ended the answer.
    matched: Option<String>,
}

#[derive(Debug)]
struct Automaton {
    /// State 0 is the empty prefix.
    states: Vec<State>,
    /// The longer prefixes, by a state and the byte that follows.
    next: HashMap<(u32, u8), u32>,
}

/// A prefix of stop strings. The budget of a request keeps all lengths far below the limit of the numbers.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The longest suffix that is also a prefix.
    fallback: u32,
    length: u32,
    /// The length of the longest stop string that ends here; 0 for none.
    complete: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Text of the answer.
    pub(crate) text: String,
    /// Whether a stop string was completed.
    pub(crate) stopped: bool,
}

impl Default for StopMatcher {
    fn default() -> Self {
        StopMatcher::new(&[])
    }
}

impl StopMatcher {
    pub(crate) fn new(stops: &[String]) -> Self {
        let automaton = Arc::new(Automaton::new(stops));
        StopMatcher { automaton, at: 0, held: String::new(), matched: None }
    }

    pub(crate) fn push(&mut self, text: String) -> Passed {
        if self.automaton.states.len() == 1 {
            return Passed { text, stopped: false };
        }
        let before = self.held.len();
        self.held.push_str(&text);
        // The first complete stop string wins, so that the result does not depend on how the text is split.
        for (offset, byte) in text.bytes().enumerate() {
            self.at = self.automaton.step(self.at, byte);
            let length = self.automaton.states[self.at as usize].complete as usize;
            if length > 0 {
                let end = before + offset + 1;
                self.matched = self.held.get(end - length..end).map(str::to_owned);
                self.held.truncate(end - length);
                return Passed { text: std::mem::take(&mut self.held), stopped: true };
            }
        }
        // A prefix of a stop string begins with a whole character.
        let open = self.held.len() - self.automaton.states[self.at as usize].length as usize;
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

impl Automaton {
    fn new(stops: &[String]) -> Self {
        let mut automaton = Automaton { states: vec![State::default()], next: HashMap::new() };
        // The state before the last byte of each state, and this byte.
        let mut beginnings = vec![(0, 0)];
        for stop in stops.iter().filter(|stop| !stop.is_empty()) {
            let mut at = 0;
            for (length, byte) in (1..).zip(stop.bytes()) {
                let new = automaton.states.len() as u32;
                let next = *automaton.next.entry((at, byte)).or_insert(new);
                if next == new {
                    automaton.states.push(State { length, ..State::default() });
                    beginnings.push((at, byte));
                }
                at = next;
            }
            automaton.states[at as usize].complete = stop.len() as u32;
        }
        // Shorter beginnings first, since the fallback of one is a shorter one.
        let mut order: Vec<usize> = (1..automaton.states.len()).collect();
        order.sort_by_key(|at| automaton.states[*at].length);
        for at in order {
            let (before, byte) = beginnings[at];
            let shorter = automaton.states[before as usize].fallback;
            let fallback = if before == 0 { 0 } else { automaton.step(shorter, byte) };
            let inherited = automaton.states[fallback as usize].complete;
            let state = &mut automaton.states[at];
            state.fallback = fallback;
            if state.complete == 0 {
                state.complete = inherited;
            }
        }
        automaton
    }

    fn step(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            if let Some(&next) = self.next.get(&(at, byte)) {
                return next;
            }
            if at == 0 {
                return 0;
            }
            at = self.states[at as usize].fallback;
        }
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

    #[test]
    fn answers_to_one_request_share_the_automaton_and_nothing_else() {
        let mut first = StopMatcher::new(&["end".to_owned()]);
        let mut second = first.clone();
        assert!(Arc::ptr_eq(&first.automaton, &second.automaton));
        assert_eq!(first.push("the en".into()).text, "the ");
        assert_eq!(second.push("d".into()).text, "d");
        assert!(first.push("d".into()).stopped);
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
