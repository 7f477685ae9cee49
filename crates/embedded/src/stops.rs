//! Ends an answer at a stop string, also when it spans several tokens. Knows only text.

/// Lets text through until a stop string is complete, and holds back what may be the beginning of one.
#[derive(Debug, Default)]
pub(crate) struct StopMatcher {
    stops: Vec<String>,
    held: String,
}

/// What became of a piece of text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Text that is certainly part of the answer.
    pub(crate) text: String,
    /// Whether a stop string was completed: nothing may follow.
    pub(crate) stopped: bool,
}

impl StopMatcher {
    pub(crate) fn new(stops: &[String]) -> Self {
        StopMatcher {
            stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(),
            held: String::new(),
        }
    }

    /// Takes the next piece of the answer.
    pub(crate) fn push(&mut self, text: String) -> Passed {
        if self.stops.is_empty() {
            return Passed { text, stopped: false };
        }
        self.held.push_str(&text);
        // The stop string that is complete first wins, so that the outcome does not depend on how the text was cut.
        let first = self
            .stops
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()).map(|start| (start + stop.len(), start)))
            .min();
        if let Some((_, start)) = first {
            self.held.truncate(start);
            return Passed { text: std::mem::take(&mut self.held), stopped: true };
        }
        let open = self.possible_beginning();
        let kept = self.held.split_off(self.held.len() - open);
        Passed { text: std::mem::replace(&mut self.held, kept), stopped: false }
    }

    /// The answer is over: what was held back is part of it after all.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Bytes at the end of the held text that may be the beginning of a stop string.
    fn possible_beginning(&self) -> usize {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest);
        (from..self.held.len())
            .filter(|&start| self.held.is_char_boundary(start))
            .find(|&start| self.stops.iter().any(|stop| stop.starts_with(&self.held[start..])))
            .map_or(0, |start| self.held.len() - start)
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
    fn what_only_looked_like_a_stop_string_is_given_back() {
        let stops = vec!["</end>".to_owned()];
        assert_eq!(through(&stops, ["a </e", "m> b </"]), ("a </em> b </".into(), false));
    }

    #[test]
    fn the_stop_string_that_is_complete_first_wins() {
        let stops = vec!["abc".to_owned(), "b".to_owned()];
        assert_eq!(through(&stops, ["xabc"]), ("xa".into(), true));
        assert_eq!(through(&stops, ["xa", "bc"]), ("xa".into(), true));
    }

    proptest! {
        #[test]
        fn the_outcome_does_not_depend_on_the_cuts(
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
