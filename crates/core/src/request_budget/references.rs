//! What a `$ref` of a JSON Schema names, as validators and makers of grammars read it. A reference that they could read in another way than
//! this is refused.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::percent_encoding::percent_decoded;

/// How a JSON value within a schema is to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// A schema, or an array of them.
    Schema,
    /// Schemas by name. A name is not a keyword, even if it reads `$ref` or `enum`.
    Named,
    /// A value that answers may have; what looks like a keyword in it is none.
    Data,
}

impl Reading {
    /// How the value of a field is to be read in an object that is read like this.
    pub(super) fn of_field(self, name: &str, value: &Value) -> Reading {
        match self {
            Reading::Schema => match name {
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies"
                    if value.is_object() =>
                {
                    Reading::Named
                }
                "enum" | "const" | "default" | "example" | "examples" => Reading::Data,
                _ => Reading::Schema,
            },
            Reading::Named => Reading::Schema,
            Reading::Data => Reading::Data,
        }
    }
}

/// The `$ref` of a schema.
pub(super) fn reference(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

/// The address that a schema gives itself, under its name in older drafts too. Those had anchors in the same place.
pub(super) fn identity(schema: &Map<String, Value>) -> Option<&str> {
    let named = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    named("$id").or_else(|| named("id")).filter(|id| !id.is_empty() && !id.starts_with('#'))
}

/// Whether this reference depends on the nearest `$id` around it.
pub(super) fn is_local(reference: &str) -> bool {
    reference.is_empty() || reference.starts_with('#')
}

/// The parts of a schema that have an `$id`.
#[derive(Default)]
pub(super) struct Identities<'a> {
    /// In lower case; `None` for one that occurs twice.
    parts: HashMap<String, Option<&'a Value>>,
    /// How those below the root are written.
    kinds: Vec<IdentityKind>,
}

/// Addresses of one kind do not depend on each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IdentityKind {
    /// A single word, which is a neighbour of every other word.
    Word,
    /// `urn:a:b`.
    Urn,
    Other,
}

impl IdentityKind {
    fn of(id: &str) -> Self {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match id.strip_prefix("urn:") {
            Some(rest) if rest.bytes().all(|byte| is_word(byte) || matches!(byte, b':' | b'.')) => {
                IdentityKind::Urn
            }
            None if id.bytes().all(is_word) => IdentityKind::Word,
            _ => IdentityKind::Other,
        }
    }
}

impl<'a> Identities<'a> {
    pub(super) fn add(&mut self, id: &str, schema: &'a Value, is_root: bool) {
        let kind = IdentityKind::of(id);
        if !is_root && !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        self.parts.entry(id.to_ascii_lowercase()).and_modify(|part| *part = None).or_insert(Some(schema));
    }

    /// What a reference that is not local names. `None` if that lies elsewhere: it is not followed, here or by any engine that we run.
    fn find(&self, reference: &str) -> Result<Option<&'a Value>, &'static str> {
        if self.parts.is_empty() {
            return match is_elsewhere(reference) {
                true => Ok(None),
                false => Err("has a '$ref' that does not begin with '#/'"),
            };
        }
        let is_clear = matches!(self.kinds[..], [] | [IdentityKind::Word] | [IdentityKind::Urn]);
        match self.parts.get(&reference.to_ascii_lowercase()) {
            Some(Some(part)) if is_clear => Ok(Some(*part)),
            _ => Err("has a '$ref' that depends on an '$id'; begin it with '#/'"),
        }
    }
}

/// Whether a reference names another document than a schema that has no address. Such a schema is `json-schema:///` to some.
fn is_elsewhere(reference: &str) -> bool {
    let document = reference.split('#').next().unwrap_or_default();
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    };
    if let Some((scheme, _)) = document.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) {
        return !scheme.eq_ignore_ascii_case("json-schema");
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    document.split('/').all(|segment| {
        segment.bytes().all(is_plain) && segment.bytes().any(|byte| byte.is_ascii_alphanumeric())
    })
}

/// What a reference names: `None` for nothing, which is the engine's to refuse. The error says what is wrong.
pub(super) fn target<'a>(
    schema: &'a Value,
    reference: &str,
    identities: &Identities<'a>,
) -> Result<Option<&'a Value>, &'static str> {
    if !is_local(reference) {
        return identities.find(reference);
    }
    let pointer = reference.strip_prefix('#').unwrap_or_default();
    if pointer.is_empty() {
        return Ok(Some(schema));
    }
    if !pointer.starts_with('/') {
        return Err("has a '$ref' to an '$anchor', which is not supported");
    }
    let decoded = percent_decoded(pointer).ok_or("has a '$ref' that is not valid percent-encoding")?;
    if !has_valid_escapes(&decoded) {
        return Err("has a '$ref' with a '~' that is neither '~0' nor '~1'");
    }
    let found = place(schema, &decoded);
    // Some engines do not decode.
    let undecoded = if decoded == pointer { found } else { place(schema, pointer) };
    match (found, undecoded) {
        (Some((found, _)), Some((other, _))) if !std::ptr::eq(found, other) => {
            Err("has a '$ref' that names two places")
        }
        (Some((found, Reading::Schema)), _) | (None, Some((found, Reading::Schema))) => Ok(Some(found)),
        (None, None) => Ok(None),
        _ => Err("has a '$ref' to something that is not a schema"),
    }
}

fn has_valid_escapes(pointer: &str) -> bool {
    pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}

/// The value at a JSON pointer, and how it is read there.
fn place<'a>(schema: &'a Value, pointer: &str) -> Option<(&'a Value, Reading)> {
    let mut at = (schema, Reading::Schema);
    for segment in pointer.split('/').skip(1) {
        at = match at {
            (Value::Object(fields), reading) => {
                let name = segment.replace("~1", "/").replace("~0", "~");
                let value = fields.get(&name)?;
                (value, reading.of_field(&name, value))
            }
            (Value::Array(items), reading) => (items.get(segment.parse::<usize>().ok()?)?, reading),
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => return None,
        };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_is_read_in_one_way_or_refused() {
        let schema = json!({
            "$defs": {
                "a": { "type": "string" },
                "~/": { "type": "null" },
                "b%25": { "type": "number" },
                "b%": { "type": "array" },
            },
            "anyOf": [{ "const": { "x": {} } }],
            "default": {},
        });
        let read = |reference: &str| target(&schema, reference, &Identities::default());
        let at = |pointer: &str| Ok(schema.pointer(pointer));
        assert!(read("").is_ok_and(|found| found == Some(&schema)));
        for (reference, expected) in [
            ("#", at("")),
            ("#/$defs/a", at("/$defs/a")),
            ("#/%24defs/%61", at("/$defs/a")),
            ("#/$defs/~0~1", at("/$defs/~0~1")),
            ("#/anyOf/00", at("/anyOf/0")),
            ("#/$defs/nothing", Ok(None)),
            ("https://example.org/schema", Ok(None)),
            ("other.json#/a", Ok(None)),
            ("/", Err("has a '$ref' that does not begin with '#/'")),
            ("./a:b/..", Err("has a '$ref' that does not begin with '#/'")),
            ("a/..", Err("has a '$ref' that does not begin with '#/'")),
            ("JSON-schema:///", Err("has a '$ref' that does not begin with '#/'")),
            ("#a", Err("has a '$ref' to an '$anchor', which is not supported")),
            ("##/$defs/a", Err("has a '$ref' to an '$anchor', which is not supported")),
            ("#/%zz", Err("has a '$ref' that is not valid percent-encoding")),
            ("#/$defs/~", Err("has a '$ref' with a '~' that is neither '~0' nor '~1'")),
            ("#/$defs/b%25", Err("has a '$ref' that names two places")),
            ("#/default", Err("has a '$ref' to something that is not a schema")),
            ("#/anyOf/0/const/x", Err("has a '$ref' to something that is not a schema")),
            ("#/$defs", Err("has a '$ref' to something that is not a schema")),
        ] {
            assert_eq!(read(reference), expected, "{reference}");
        }
    }

    #[test]
    fn a_part_is_found_by_an_address_that_depends_on_no_other() {
        let (first, second) = (json!({ "type": "string" }), json!({ "type": "null" }));
        let read = |ids: &[(&str, bool)], reference: &str| {
            let mut identities = Identities::default();
            for ((id, is_root), schema) in ids.iter().zip([&first, &second]) {
                identities.add(id, schema, *is_root);
            }
            target(&first, reference, &identities).ok().flatten().cloned()
        };
        assert_eq!(read(&[("Node", false)], "Node"), Some(first.clone()));
        assert_eq!(read(&[("https://a/b", true), ("Node", false)], "Node"), Some(second.clone()));
        assert_eq!(read(&[("urn:a:b", false)], "urn:a:b"), Some(first.clone()));
        for (ids, reference) in [
            (&[("Node", false), ("node", false)][..], "Node"),
            (&[("https://a/b", true), ("Node", false)], "b"),
            (&[("https://a/b", false), ("Node", false)], "Node"),
            (&[("urn:a", false), ("Node", false)], "Node"),
        ] {
            assert_eq!(read(ids, reference), None, "{reference}");
        }
    }
}
