//! Signed reasoning. Anthropic signs the reasoning of its models and encrypts some of it. Both must be sent back unchanged with
//! the next question, or the provider refuses it.

use serde_json::{Map, Value, json};

/// The field of a message with what the model thought, and the field of a request with how much it should, as chat completions call them.
pub const REASONING_CONTENT: &str = "reasoning_content";
pub const REASONING_EFFORT: &str = "reasoning_effort";

/// The field of a message that carries such reasoning, under the name that LiteLLM gave it.
pub const THINKING_BLOCKS: &str = "thinking_blocks";

/// Whether a field of a message has what a model thought, under any of the names that engines give it.
pub fn is_reasoning_field(name: &str) -> bool {
    matches!(name, REASONING_CONTENT | THINKING_BLOCKS | "reasoning" | "reasoning_details" | "thinking")
}

/// What ends a block of reasoning in a stream, or replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasoningSeal {
    /// The provider's signature of the reasoning before it.
    Signature(String),
    /// A whole block that only the provider can read.
    Redacted(String),
}

/// A block of reasoning in the form that its provider requires back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealedReasoning {
    /// The reasoning, which may be empty, and the provider's signature.
    Signed { text: String, signature: String },
    /// What only the provider can read.
    Redacted { data: String },
}

impl SealedReasoning {
    /// In the form of the field [`THINKING_BLOCKS`].
    pub fn to_value(&self) -> Value {
        match self {
            SealedReasoning::Signed { text, signature } => {
                json!({ "type": "thinking", "thinking": text, "signature": signature })
            }
            SealedReasoning::Redacted { data } => json!({ "type": "redacted_thinking", "data": data }),
        }
    }

    /// Reads that form. `None` for a block that no provider sealed.
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        match value.get("type")?.as_str()? {
            "thinking" => Some(SealedReasoning::Signed {
                text: text("thinking").unwrap_or_default(),
                signature: text("signature").filter(|signature| !signature.is_empty())?,
            }),
            "redacted_thinking" => Some(SealedReasoning::Redacted { data: text("data")? }),
            _ => None,
        }
    }

    /// Adds blocks to the fields of a message.
    pub fn add_to(fields: &mut Map<String, Value>, blocks: &[Self]) {
        if blocks.is_empty() {
            return;
        }
        if let Value::Array(all) =
            fields.entry(THINKING_BLOCKS).or_insert_with(|| Value::Array(Vec::with_capacity(blocks.len())))
        {
            all.extend(blocks.iter().map(Self::to_value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_written_as_their_provider_wants_them_back() {
        let blocks = [
            SealedReasoning::Signed { text: "hm".into(), signature: "s1".into() },
            SealedReasoning::Redacted { data: "d".into() },
        ];
        let mut fields = Map::new();
        for block in &blocks {
            SealedReasoning::add_to(&mut fields, std::slice::from_ref(block));
            assert_eq!(SealedReasoning::from_value(&block.to_value()).as_ref(), Some(block));
        }
        assert_eq!(
            Value::Object(fields),
            json!({ "thinking_blocks": [
                { "type": "thinking", "thinking": "hm", "signature": "s1" },
                { "type": "redacted_thinking", "data": "d" },
            ] })
        );
    }

    #[test]
    fn what_no_provider_sealed_is_no_block() {
        for value in [
            json!({ "type": "thinking", "thinking": "hm" }),
            json!({ "type": "thinking", "thinking": "hm", "signature": "" }),
            json!({ "type": "redacted_thinking" }),
            json!({ "type": "text", "text": "hm" }),
            json!("hm"),
        ] {
            assert_eq!(SealedReasoning::from_value(&value), None, "{value}");
        }
    }

    #[test]
    fn a_message_without_them_has_no_field_for_them() {
        let mut fields = Map::new();
        SealedReasoning::add_to(&mut fields, &[]);
        assert_eq!(fields, Map::new());
    }
}
