//! Counts tokens with a real tokenizer, whose vocabulary is in the program.
//!
//! The vocabulary is `cl100k`. Those of local models differ by some percent, which is precise enough for chunks and limits.

use tiktoken_rs::cl100k_base_singleton;

/// The longest text for the tokenizer, because its patterns look ahead.
const MAX_PIECE: usize = 64 << 10;

pub fn count(text: &str) -> usize {
    count_up_to(text, usize::MAX).unwrap_or(usize::MAX)
}

/// The number of tokens, unless it is more than `limit`.
pub fn count_up_to(text: &str, limit: usize) -> Option<usize> {
    let tokenizer = cl100k_base_singleton();
    let (mut rest, mut tokens) = (text, 0);
    // The first piece is small, so that a small limit is cheap.
    let mut piece = limit.saturating_mul(8).clamp(1_024, MAX_PIECE);
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(rest.floor_char_boundary(piece));
        tokens += tokenizer.count_ordinary(head);
        if tokens > limit {
            return None;
        }
        rest = tail;
        piece = MAX_PIECE;
    }
    Some(tokens)
}

/// The tokens that `gap` adds after a text, possibly negative. The gap must begin with a line break: the text after it is
/// tokenised independently, so the counts add up.
pub fn count_break(text: &str, gap: &str) -> isize {
    // A line break may join the punctuation before it, but not a letter or digit before that.
    let end = text.trim_end_matches(|character| !is_known_letter_or_digit(character));
    let punctuation = &text[end.len()..];
    count(&format!("{punctuation}{gap}")).cast_signed() - count(punctuation).cast_signed()
}

/// Not all scripts: others are only counted more slowly.
fn is_known_letter_or_digit(character: char) -> bool {
    matches!(
        character,
        'a'..='z' | 'A'..='Z' | '0'..='9' | 'α'..='ω' | 'А'..='я' | 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '一'..='鿿' | '가'..='힣'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_of_texts_with_a_line_break_between_them_add_up(
            one in "(\\PC|[a-z .,;:'\"!?()\\-é文и\u{301}\u{e31}]){0,40}[^\\s]",
            gap in "\n\n?",
            other in "([ \t]{0,8}[^\\s](\\PC|[a-z .,'()\t]){0,40})?",
        ) {
            let sum = (count(&one) + count(&other)).checked_add_signed(count_break(&one, &gap));
            prop_assert_eq!(Some(count(&format!("{one}{gap}{other}"))), sum);
        }
    }

    #[test]
    fn a_line_break_may_make_one_token_of_two() {
        assert_eq!((count("/;"), count("/;\n"), count_break("/;", "\n")), (2, 1, -1));
    }

    #[test]
    fn tokens_are_those_of_the_published_vocabulary() {
        assert_eq!(count(""), 0);
        assert_eq!(count("tiktoken is great!"), 6);
        assert_eq!(count("antidisestablishmentarianism"), 6);
        assert_eq!(count("お誕生日おめでとう"), 9);
    }

    #[test]
    fn counting_stops_at_the_limit_however_long_the_text_is() {
        assert_eq!(count_up_to("one two three", 3), Some(3));
        assert_eq!(count_up_to("one two three", 2), None);
        let long = "x1 ".repeat(10 << 20);
        let began = std::time::Instant::now();
        assert_eq!(count_up_to(&long, 512), None);
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    }

    #[test]
    fn runs_without_any_border_are_counted_too() {
        for run in [" ", "a", "\n", "é", "=", "0", "文"] {
            assert!(count(&run.repeat(300_000)) > 0, "{run:?}");
        }
    }
}
