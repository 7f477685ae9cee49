//! The order of reasoning and text in an answer, for models that think again after they have begun to answer.

use crate::reasoning::SealedReasoning;

/// A place where reasoning follows text: what the answer has before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaterThought {
    /// Bytes of text.
    text: usize,
    /// Bytes of reasoning.
    reasoning: usize,
    /// Sealed blocks of reasoning.
    sealed: usize,
}

/// A part of an answer: what the model thought, and what it wrote then. Either can be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch<'a> {
    pub reasoning: &'a str,
    /// The blocks of the reasoning that the provider requires back.
    pub sealed: &'a [SealedReasoning],
    pub text: &'a str,
}

impl Stretch<'_> {
    /// Reasoning follows this answer: notes the place, unless the reasoning begins the answer or continues other reasoning.
    pub(crate) fn note_thought(self, places: &mut Vec<LaterThought>) {
        let before = places.last().map_or(0, |last| last.text);
        if self.text.len() > before {
            let place = LaterThought {
                text: self.text.len(),
                reasoning: self.reasoning.len(),
                sealed: self.sealed.len(),
            };
            places.push(place);
        }
    }
}

impl<'a> Stretch<'a> {
    /// The parts of an answer with these places; `None` if it does not have them, because it was changed.
    pub(crate) fn divided(self, places: &[LaterThought]) -> Option<Vec<Stretch<'a>>> {
        let mut parts = Vec::with_capacity(1 + places.len());
        let (mut rest, mut before) = (self, LaterThought::default());
        for place in places {
            let (reasoning, later_reasoning) =
                rest.reasoning.split_at_checked(place.reasoning.checked_sub(before.reasoning)?)?;
            let (sealed, later_sealed) =
                rest.sealed.split_at_checked(place.sealed.checked_sub(before.sealed)?)?;
            let (text, later_text) = rest.text.split_at_checked(place.text.checked_sub(before.text)?)?;
            parts.push(Stretch { reasoning, sealed, text });
            rest = Stretch { reasoning: later_reasoning, sealed: later_sealed, text: later_text };
            before = *place;
        }
        parts.push(rest);
        Some(parts)
    }
}
