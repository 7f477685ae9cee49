//! Which messages are for the assistant. An assistant that shares its owner's number answers only messages that begin with its
//! name, and begins its answers with it.

/// The name of the assistant, and when it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MentionRule {
    pub name: String,
    /// Whether the number is the assistant's own, rather than its owner's.
    pub has_own_number: bool,
}

impl MentionRule {
    /// The question to the assistant, if there is one.
    pub fn question<'a>(&self, text: &'a str, is_group: bool, from_me: bool) -> Option<&'a str> {
        if self.has_own_number {
            // Messages of the assistant's own account are its own answers.
            if from_me {
                return None;
            }
            // In a group, a message must begin with the name.
            if !is_group {
                return Some(self.called(text).unwrap_or(text));
            }
        }
        self.called(text)
    }

    /// The text to send for an answer.
    pub fn answer(&self, content: &str) -> String {
        if self.has_own_number { content.to_owned() } else { format!("{}: {content}", self.name) }
    }

    /// The text after the name: `Hob, what is …`, `@hob what is …`.
    fn called<'a>(&self, text: &'a str) -> Option<&'a str> {
        let text = text.trim_start();
        let text = text.strip_prefix('@').unwrap_or(text);
        let rest = strip_prefix_ignoring_case(text, self.name.trim())?;
        let name_ends = rest.chars().next().is_none_or(|next| !next.is_alphanumeric());
        let asked = rest.trim_start_matches(|next: char| next.is_whitespace() || ",:;!.-–—".contains(next));
        (name_ends && !asked.trim().is_empty()).then_some(asked)
    }
}

/// Compares character by character, because the other case of a character may be longer.
fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut rest = text.chars();
    for wanted in prefix.chars() {
        let found = rest.next()?;
        if !found.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    (!prefix.is_empty()).then_some(rest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(has_own_number: bool) -> MentionRule {
        MentionRule { name: "Hob".into(), has_own_number }
    }

    #[test]
    fn on_a_shared_number_only_messages_with_the_name_are_answered() {
        let shared = rule(false);
        for text in [
            "Hob, what time is it?",
            "hob what time is it?",
            " @HOB: what time is it?",
            "Hob - what time is it?",
        ] {
            assert_eq!(shared.question(text, false, false), Some("what time is it?"), "{text}");
            assert_eq!(
                shared.question(text, true, true),
                Some("what time is it?"),
                "{text} by the owner, in a group"
            );
        }
        for text in ["what time is it?", "Hobby horses", "I like Hob", "Hob", "Hob, ", "", "Hobé?"] {
            assert_eq!(shared.question(text, false, false), None, "{text}");
        }
        assert_eq!(shared.answer("noon"), "Hob: noon");
    }

    #[test]
    fn on_its_own_number_all_messages_are_answered_and_in_groups_those_with_the_name() {
        let own = rule(true);
        assert_eq!(own.question("what time is it?", false, false), Some("what time is it?"));
        assert_eq!(own.question("Hob, what time is it?", false, false), Some("what time is it?"));
        assert_eq!(own.question("what time is it?", true, false), None);
        assert_eq!(own.question("@Hob what time is it?", true, false), Some("what time is it?"));
        assert_eq!(own.question("what time is it?", false, true), None, "its own words");
        assert_eq!(own.answer("noon"), "noon");
    }

    #[test]
    fn a_name_in_any_script_is_recognised() {
        let rule = MentionRule { name: "Ömer".into(), has_own_number: false };
        assert_eq!(rule.question("ömer: hi", false, false), Some("hi"));
        assert_eq!(
            MentionRule { name: String::new(), has_own_number: false }.question("hi", false, false),
            None
        );
    }
}
