//! Why a model answers.

use std::fmt;

/// Why this model answers, in one line. Only present if the model is not the requested one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelReason(String);

impl ModelReason {
    /// A reason is shown in a header and on a terminal, so it is one line of limited length.
    const MOST_CHARACTERS: usize = 400;

    pub fn new(sentence: impl AsRef<str>) -> Self {
        let blank = |c: char| c.is_whitespace() || c.is_control();
        let words: Vec<&str> = sentence.as_ref().split(blank).filter(|word| !word.is_empty()).collect();
        ModelReason(words.join(" ").chars().take(Self::MOST_CHARACTERS).collect())
    }

    /// The reason after an earlier one: first one model was chosen, then another had to answer.
    pub fn after(self, earlier: Option<ModelReason>) -> Self {
        match earlier {
            Some(earlier) => ModelReason::new(format!("{earlier}; {self}")),
            None => self,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_that_ends_somewhere() {
        assert_eq!(ModelReason::new("two\r\nlines \u{7}\t and a bell").as_str(), "two lines and a bell");
        assert_eq!(ModelReason::new("é".repeat(10_000)).as_str().chars().count(), 400);
    }

    #[test]
    fn what_was_decided_first_is_told_first() {
        let chosen = ModelReason::new("a: short and plain");
        let fallback = ModelReason::new("b instead: a did not answer");
        assert_eq!(fallback.clone().after(None), fallback);
        assert_eq!(fallback.after(Some(chosen)).as_str(), "a: short and plain; b instead: a did not answer");
    }
}
