//! Grammars: what a model may write, as llama.cpp's grammar text, and the check of tokens against it.

use llama_cpp_2::json_schema_to_grammar;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use serde_json::{Value, json};
use thiserror::Error;

use crate::sampler::Candidate;

/// The converter works recursively: deeper schemas could exhaust its stack.
const MAX_DEPTH: usize = 64;
const MAX_BYTES: usize = 256 * 1024;

/// Why a schema cannot be enforced.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum SchemaError {
    #[error("the schema is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("the schema is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("the schema uses something that cannot be turned into a grammar")]
    Unsupported,
}

/// The grammar of JSON texts that follow a schema.
pub(crate) fn of_schema(schema: &Value) -> Result<String, SchemaError> {
    if depth(schema) > MAX_DEPTH {
        return Err(SchemaError::TooDeep);
    }
    let text = schema.to_string();
    if text.len() > MAX_BYTES {
        return Err(SchemaError::TooLarge);
    }
    json_schema_to_grammar(&text).map_err(|_| SchemaError::Unsupported)
}

/// The grammar of any JSON object.
pub(crate) fn of_json_object() -> Result<String, SchemaError> {
    of_schema(&json!({ "type": "object" }))
}

fn depth(value: &Value) -> usize {
    // An explicit stack, since the depth is exactly what is not known yet.
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, level + 1))),
            _ => {}
        }
    }
    deepest
}

/// The same grammar with `prefix` before the name of every rule, so that it can stand beside others.
pub(crate) fn prefixed(grammar: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(grammar.len() * 2);
    let mut chars = grammar.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            // Literals and character classes are text, not names.
            '"' | '[' => {
                let end = if char == '"' { '"' } else { ']' };
                out.push(char);
                while let Some(inside) = chars.next() {
                    out.push(inside);
                    if inside == '\\' {
                        out.extend(chars.next());
                    } else if inside == end {
                        break;
                    }
                }
            }
            // Counts such as {2,5}.
            '{' => {
                out.push(char);
                for inside in chars.by_ref() {
                    out.push(inside);
                    if inside == '}' {
                        break;
                    }
                }
            }
            '#' => while chars.next_if(|&char| char != '\n').is_some() {},
            _ if char.is_ascii_alphanumeric() => {
                out.push_str(prefix);
                out.push(char);
                while let Some(more) = chars.next_if(|&char| char.is_ascii_alphanumeric() || char == '-') {
                    out.push(more);
                }
            }
            _ => out.push(char),
        }
    }
    out
}

/// A literal of the grammar language.
pub(crate) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}

/// A grammar on its way through an answer.
#[derive(Debug, Clone)]
pub(crate) struct Grammar {
    rules: LlamaSampler,
}

impl Grammar {
    /// Starts at the rule `root`; `None` when llama.cpp cannot read the grammar.
    pub(crate) fn start(model: &LlamaModel, text: &str) -> Option<Self> {
        LlamaSampler::grammar(model, text, "root").ok().map(|rules| Grammar { rules })
    }

    /// Whether a token may come next.
    pub(crate) fn allows(&mut self, token: i32) -> bool {
        let one = LlamaTokenData::new(LlamaToken(token), 0.0, 0.0);
        let mut array = LlamaTokenDataArray::new(vec![one], false);
        self.rules.apply(&mut array);
        array.data.first().is_some_and(|data| data.logit().is_finite())
    }

    /// Sets the score of every token that may not come next to minus infinity.
    pub(crate) fn forbid(&mut self, candidates: &mut Vec<Candidate>) {
        let mut array = LlamaTokenDataArray::from_iter(
            candidates
                .iter()
                .map(|candidate| LlamaTokenData::new(LlamaToken(candidate.token), candidate.score, 0.0)),
            false,
        );
        self.rules.apply(&mut array);
        candidates.clear();
        candidates
            .extend(array.data.iter().map(|data| Candidate { token: data.id().0, score: data.logit() }));
    }

    /// Moves past a token. It must be allowed and must not be an end of text; `false` when llama.cpp objects nevertheless.
    pub(crate) fn accept(&mut self, token: i32) -> bool {
        self.rules.try_accept(LlamaToken(token)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_prefix_and_texts_do_not() {
        let grammar = "root ::= \"a \\\" root\" [^\\]a-z]{2,5} item-1? # note\nitem-1 ::= root | \"x\"\n";
        assert_eq!(
            prefixed(grammar, "t0-"),
            "t0-root ::= \"a \\\" root\" [^\\]a-z]{2,5} t0-item-1? \nt0-item-1 ::= t0-root | \"x\"\n"
        );
    }

    #[test]
    fn a_schema_that_is_too_deep_is_refused_before_it_is_converted() {
        let mut schema = json!({"type": "string"});
        for _ in 0..200 {
            schema = json!({"type": "array", "items": schema});
        }
        assert_eq!(of_schema(&schema), Err(SchemaError::TooDeep));
    }

    #[test]
    fn a_schema_that_points_nowhere_is_refused() {
        assert_eq!(of_schema(&json!({"$ref": "#/$defs/missing"})), Err(SchemaError::Unsupported));
    }

    #[test]
    fn a_schema_becomes_a_grammar() {
        let grammar = of_schema(
            &json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
        );
        assert!(grammar.is_ok_and(|text| text.contains("root ::=")));
    }
}
