//! `encrypted_content` of a reasoning item: what a client that stores everything itself sends back unread.
//!
//! Hob's own form is not secret. It carries what the model thought, or the block that a provider signed or hid, which must come
//! back to that provider unchanged.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hob_core::SealedReasoning;
use hob_core::request_budget::json_values;
use serde_json::Value;

/// Begins reasoning that no provider sealed.
const TEXT: &str = "hob1.";

/// Begins a block that a provider sealed.
const BLOCK: &str = "hob2.";

/// The most values of such a block, which is an object of a few texts.
const MAX_BLOCK_VALUES: usize = 16;

/// What `encrypted_content` carries.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EncryptedContent {
    Text(String),
    Block(SealedReasoning),
}

/// What the model thought.
pub(super) fn sealed_text(reasoning: &str) -> String {
    encoded(TEXT, reasoning.as_bytes())
}

/// The block of a provider.
pub(super) fn sealed_block(block: &SealedReasoning) -> String {
    encoded(BLOCK, block.to_value().to_string().as_bytes())
}

fn encoded(mark: &str, bytes: &[u8]) -> String {
    let mut sealed = mark.to_owned();
    BASE64_STANDARD.encode_string(bytes, &mut sealed);
    sealed
}

impl EncryptedContent {
    /// Reads it; `None` if another service wrote it.
    pub(super) fn read(sealed: &str) -> Option<Self> {
        let decoded = |rest: &str| BASE64_STANDARD.decode(rest).ok();
        if let Some(rest) = sealed.strip_prefix(TEXT) {
            return String::from_utf8(decoded(rest)?).ok().map(EncryptedContent::Text);
        }
        let block = decoded(sealed.strip_prefix(BLOCK)?)?;
        if json_values(&block, MAX_BLOCK_VALUES) > MAX_BLOCK_VALUES {
            return None;
        }
        let block: Value = serde_json::from_slice(&block).ok()?;
        SealedReasoning::from_value(&block).map(EncryptedContent::Block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_can_be_read_again() {
        let signed = SealedReasoning::Signed { text: "hm \"ü\"".into(), signature: "EqQB+/=".into() };
        let redacted = SealedReasoning::Redacted { data: "Emw".into() };
        let text = EncryptedContent::Text("as it was ü".into());
        for (sealed, expected) in [
            (sealed_text("as it was ü"), text),
            (sealed_block(&signed), EncryptedContent::Block(signed)),
            (sealed_block(&redacted), EncryptedContent::Block(redacted)),
        ] {
            assert_eq!(EncryptedContent::read(&sealed), Some(expected));
        }
    }

    #[test]
    fn what_another_service_sealed_cannot() {
        let unsigned = encoded(BLOCK, br#"{"type":"thinking","thinking":"hm"}"#);
        let zeros = "0,".repeat(MAX_BLOCK_VALUES);
        let many = format!(r#"{{"type":"redacted_thinking","data":"Emw","x":[{zeros}0]}}"#);
        let many = encoded(BLOCK, many.as_bytes());
        for foreign in ["", "gAAAA", "hob1.!", "hob1.gICA", "hob2.", "hob2.e30=", &unsigned, &many] {
            assert_eq!(EncryptedContent::read(foreign), None, "{foreign}");
        }
    }
}
