//! Truncates the output of a tool to a length that a model can read.

pub(super) const MAX_CHARACTERS: usize = 10_000;

/// The first `most` characters, with a note of how many were cut.
pub(super) fn truncate(mut text: String, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text };
    let rest = text[end..].chars().count();
    text.truncate(end);
    text.push_str(&format!("\n[cut here: {rest} more characters]"));
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_text_says_how_much_of_it_is_missing() {
        assert_eq!(truncate("abcdef".into(), 4), "abcd\n[cut here: 2 more characters]");
        assert_eq!(truncate("äöüßäöüß".into(), 5), "äöüßä\n[cut here: 3 more characters]");
    }

    #[test]
    fn a_text_that_fits_stays_as_it_is() {
        assert_eq!(truncate("abcd".into(), 4), "abcd");
        assert_eq!(truncate(String::new(), 0), "");
    }

    proptest! {
        #[test]
        fn kept_and_missing_parts_make_the_whole(text in ".{0,60}", most in 0_usize..40) {
            let whole = text.chars().count();
            let kept = truncate(text.clone(), most);
            let start: String = text.chars().take(most).collect();
            let mark = format!("\n[cut here: {} more characters]", whole.saturating_sub(most));
            let expected = if whole <= most { text } else { start + &mark };
            prop_assert_eq!(kept, expected);
        }
    }
}
