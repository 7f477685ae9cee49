//! Ids of tool calls. Every provider makes its own and accepts only some of the others, and a conversation can go from one to another.

use std::borrow::Cow;

use crate::fnv::{self, fnv1a};
use crate::random_id::ALPHABET;

/// What stands between the id of a call and the signature that a provider expects back with it.
pub const SIGNATURE_MARK: &str = "--thought--";

/// The length of a short id. Mistral's templates accept no other.
const SHORT: usize = 9;

/// The id without a signature, which only the provider that made it understands. It has hundreds of characters.
pub fn plain(id: &str) -> &str {
    id.split_once(SIGNATURE_MARK).map_or(id, |(id, _)| id)
}

/// The id without a signature if it is accepted; otherwise a short one, which is the same for a call and its result.
pub fn accepted(id: &str, is_accepted: impl FnOnce(&str) -> bool) -> Cow<'_, str> {
    let plain = plain(id);
    match is_accepted(plain) {
        true => Cow::Borrowed(plain),
        false => Cow::Owned(short(plain)),
    }
}

/// Whether an id is as the short ones are.
pub fn is_short(id: &str) -> bool {
    id.len() == SHORT && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Nine letters and digits that depend on the whole id. They are the same in every turn, so that prompts begin alike.
fn short(id: &str) -> String {
    let mut hash = id.bytes().fold(fnv::START, |hash, byte| fnv1a(hash, byte.into()));
    let mut letters = String::with_capacity(SHORT);
    for _ in 0..SHORT {
        letters.push(char::from(ALPHABET[(hash % ALPHABET.len() as u64) as usize]));
        hash /= ALPHABET.len() as u64;
    }
    letters
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_that_is_accepted_only_loses_its_signature() {
        assert_eq!(plain("toolu_1"), "toolu_1");
        assert_eq!(accepted("toolu_1", |_| true), "toolu_1");
        assert_eq!(accepted("fc-1--thought--Ab-_zQ", |id| id == "fc-1"), "fc-1");
    }

    #[test]
    fn other_ids_become_short_ones_that_differ() {
        let ids = (0..10_000).flat_map(|n| {
            [format!("call_{n}"), format!("functions.get_weather:{n}"), format!("chatcmpl-tool-{n:032}")]
        });
        let short: HashSet<String> = ids.map(|id| accepted(&id, |_| false).into_owned()).collect();
        assert_eq!(short.len(), 30_000);
        assert!(short.iter().all(|id| is_short(id)));
        let signed =
            |signature: &str| accepted(&format!("fc:1--thought--{signature}"), is_short).into_owned();
        assert_eq!(signed("a"), signed("b"), "a result may have the id without the signature");
        assert_eq!(signed("a"), accepted("fc:1", is_short));
    }
}
