//! Whether two models have the same tokens, so that one can guess for the other. Pure.

/// The first tokens, which models of one family may call by other names: those that begin and end a text, and unused ones.
const NAMED_FREELY: usize = 5;

/// The tokens that the larger vocabulary may have more: some models of a family have a few at the end that nothing uses.
pub(super) const MOST_MORE: usize = 128;

/// The vocabulary of a model: the kind of its tokenizer, and the texts of its tokens.
pub(super) struct TokenTexts<K, T> {
    pub(super) kind: K,
    pub(super) texts: T,
}

/// Compares the vocabulary of a model with that of its draft model; says what differs.
pub(super) fn compare<K: PartialEq, T: ExactSizeIterator<Item = Vec<u8>>>(
    target: TokenTexts<K, T>,
    draft: TokenTexts<K, T>,
) -> Result<(), String> {
    if target.kind != draft.kind {
        return Err("they divide text in different ways".to_owned());
    }
    let (ours, theirs) = (target.texts.len(), draft.texts.len());
    if ours.abs_diff(theirs) > MOST_MORE {
        return Err(format!("they have {ours} and {theirs} tokens"));
    }
    let mut both = target.texts.zip(draft.texts).enumerate().skip(NAMED_FREELY);
    match both.find(|(_, (ours, theirs))| ours != theirs) {
        Some((token, (ours, theirs))) => Err(format!(
            "token {token} is {:?} and {:?}",
            String::from_utf8_lossy(&ours),
            String::from_utf8_lossy(&theirs)
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differ(kinds: (u32, u32), ours: &[&str], theirs: &[&str]) -> Option<String> {
        let texts = |words: &[&str]| -> Vec<Vec<u8>> {
            let common = (0..1000).map(|token| format!("t{token}").into_bytes());
            common.chain(words.iter().map(|word| word.as_bytes().to_vec())).collect()
        };
        let (ours, theirs) = (texts(ours), texts(theirs));
        compare(
            TokenTexts { kind: kinds.0, texts: ours.into_iter() },
            TokenTexts { kind: kinds.1, texts: theirs.into_iter() },
        )
        .err()
    }

    #[test]
    fn models_of_a_family_have_the_same_tokens() {
        assert_eq!(differ((2, 2), &["a", "b"], &["a", "b"]), None);
        assert_eq!(differ((2, 2), &["a", "b"], &["a", "b", "<unused>"]), None);
        let many = vec!["x"; MOST_MORE + 1];
        assert_eq!(differ((2, 2), &[], &many[1..]), None);
        assert_eq!(differ((2, 2), &[], &many), Some("they have 1000 and 1129 tokens".to_owned()));
    }

    #[test]
    fn another_vocabulary_is_refused_with_the_difference() {
        let other = differ((2, 2), &["a", "b"], &["a", "c"]);
        assert_eq!(other.as_deref(), Some("token 1001 is \"b\" and \"c\""));
        assert_eq!(differ((2, 1), &[], &[]).as_deref(), Some("they divide text in different ways"));
    }

    #[test]
    fn the_first_tokens_may_have_other_names() {
        let texts = |first: &str| -> Vec<Vec<u8>> {
            (0..9).map(|token| if token < NAMED_FREELY { first } else { "x" }.as_bytes().to_vec()).collect()
        };
        let vocabulary = |first| TokenTexts { kind: 1, texts: texts(first).into_iter() };
        assert_eq!(compare(vocabulary("<s>"), vocabulary("<bos>")), Ok(()));
    }
}
