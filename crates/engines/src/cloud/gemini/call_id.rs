//! The id of a tool call, which also carries Gemini's thought signature.
//!
//! Newer Gemini models sign the reasoning behind a call and reject a history without the signature. Chat clients have
//! no field for the signature, but they send a call's id back unchanged. So the signature is part of the id, in
//! characters that clients accept there: `call_Xy…--thought--EqQBCg…`. Other providers get the id without it.

use std::borrow::Cow;

use hob_core::call_id::SIGNATURE_MARK;

use crate::openai_compat::tool_calls::new_call_id;

/// The value that Google expects in place of a signature when another model made the call.
const FOREIGN: &str = "skip_thought_signature_validator";

/// The id that callers see: Google's own id or a new one, with the signature if there is one.
pub(super) fn join(id: Option<String>, signature: Option<&str>) -> String {
    let mut id = id.filter(|id| !id.is_empty()).unwrap_or_else(new_call_id);
    if let Some(signature) = signature {
        id.push_str(SIGNATURE_MARK);
        id.extend(signature.trim_end_matches('=').chars().map(|letter| match letter {
            '+' => '-',
            '/' => '_',
            other => other,
        }));
    }
    id
}

/// Google's id, and the signature as Google sent it.
pub(super) fn split(id: &str) -> (&str, Option<String>) {
    match id.split_once(SIGNATURE_MARK) {
        Some((id, letters)) => (id, Some(base64(letters))),
        None => (id, None),
    }
}

/// Base64 in the standard alphabet, with padding.
fn base64(letters: &str) -> String {
    let mut signature: String = letters
        .chars()
        .map(|letter| match letter {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    while !signature.len().is_multiple_of(4) {
        signature.push('=');
    }
    signature
}

/// The signature to send with a call of the history. Of several parallel calls only the first has one.
pub(super) fn signature_of(signature: Option<String>, is_first: bool) -> Option<Cow<'static, str>> {
    match signature {
        Some(signature) => Some(Cow::Owned(signature)),
        None => is_first.then_some(Cow::Borrowed(FOREIGN)),
    }
}

#[cfg(test)]
mod tests {
    use hob_core::call_id::plain;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_call_without_an_id_gets_a_fresh_one() {
        let (first, second) = (join(None, None), join(Some(String::new()), None));
        assert!(first.starts_with("call_") && second.starts_with("call_"));
        assert_ne!(first, second);
    }

    #[test]
    fn an_id_without_a_signature_is_unchanged() {
        assert_eq!(split("toolu_1"), ("toolu_1", None));
    }

    proptest! {
        #[test]
        fn a_signature_survives_the_way_there_and_back(
            signature in "([A-Za-z0-9+/]{4}){1,30}([A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?",
        ) {
            let id = join(Some("fc-1".to_owned()), Some(&signature));
            prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
            prop_assert_eq!(split(&id), ("fc-1", Some(signature)));
            prop_assert_eq!(plain(&id), "fc-1");
        }
    }
}
