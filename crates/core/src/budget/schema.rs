//! The part of the request budget for JSON Schemas: size, nesting, and what every `$ref` in it adds up to.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    ENUM_BYTES, ENUM_VALUES, OverBudget, SCHEMA_DEPTH, SCHEMA_EXPANDED_VALUES, SCHEMA_FOLLOWED_DEPTH,
    SCHEMA_NAME_CHARS, SCHEMA_PATTERN_CHARS, SCHEMA_PROPERTIES, SCHEMA_VALUES, count, thousands, too_long,
};

/// Checks the size and shape of a JSON Schema that a caller sent in `field`. It says nothing about whether an engine can follow the
/// schema.
pub fn check_schema(schema: &Value, field: &str) -> Result<(), OverBudget> {
    let references = check_written(schema, field)?;
    if references.is_empty() {
        return Ok(());
    }
    References::find(schema, &references).check(field)
}

/// Checks a schema that a validator follows. A validator also follows references to names and to other resources within the schema.
/// [`check_schema`] does not count them, so they are refused here.
pub fn check_validated_schema(schema: &Value, field: &str) -> Result<(), OverBudget> {
    check_schema(schema, field)?;
    let refused = |what: &str| {
        let what = format!("has {what}; only '$ref' with a path such as '#/$defs/name' is supported");
        Err(OverBudget { field: field.to_owned(), what, limit: None })
    };
    // In older schemas the keyword has no dollar sign.
    let id = match schema.get("$schema").and_then(Value::as_str) {
        Some(version) if version.contains("draft-04") => "id",
        _ => "$id",
    };
    let (mut has_reference, mut has_resource) = (false, false);
    let mut waiting = vec![(schema, Reading::Schema)];
    while let Some((value, reading)) = waiting.pop() {
        let object = match value {
            Value::Array(items) => {
                waiting.extend(items.iter().map(|item| (item, reading)));
                continue;
            }
            Value::Object(object) => object,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        };
        for (name, inner) in object {
            match (reading, inner) {
                // Within data too: a reference may lead there.
                (Reading::Schema | Reading::Data, Value::String(text)) => match name.as_str() {
                    "$dynamicRef" | "$recursiveRef" => return refused(&format!("'{name}'")),
                    "$ref" if text != "#" && !text.starts_with("#/") => {
                        return refused("a '$ref' to a name or to another schema");
                    }
                    "$ref" => has_reference = true,
                    // A resource within the schema, where a path begins at the resource. A fragment is only a name.
                    _ if name == id && !text.starts_with('#') && !std::ptr::eq(value, schema) => {
                        has_resource = true;
                    }
                    _ => {}
                },
                (Reading::Schema, _) => waiting.push((inner, reading_of(name, inner))),
                (Reading::Named, _) => waiting.push((inner, Reading::Schema)),
                (Reading::Data, _) => waiting.push((inner, Reading::Data)),
            }
        }
    }
    if has_reference && has_resource { refused("an inner '$id'") } else { Ok(()) }
}

/// How a JSON value within a schema is to be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// A schema, or an array of them.
    Schema,
    /// Schemas by name. A name is not a keyword, even if it reads `$ref` or `enum`.
    Named,
    /// A value that answers may have; what looks like a keyword in it is none.
    Data,
}

/// How the value of a schema's keyword is to be read.
fn reading_of(keyword: &str, value: &Value) -> Reading {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies"
            if value.is_object() =>
        {
            Reading::Named
        }
        "enum" | "const" | "default" | "example" | "examples" => Reading::Data,
        _ => Reading::Schema,
    }
}

/// Whether a schema under this keyword describes the same value as the schema around it, so that nothing of an answer lies between them.
fn same_value(keyword: &str) -> bool {
    matches!(keyword, "anyOf" | "oneOf" | "allOf" | "not" | "if" | "then" | "else" | "dependentSchemas")
}

/// The `$ref` of a schema.
fn reference(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

/// Checks a schema as it is written, and returns its `$ref`s in order, each of them once.
fn check_written<'a>(schema: &'a Value, field: &str) -> Result<Vec<&'a str>, OverBudget> {
    let mut references = Vec::new();
    let mut seen = HashSet::new();
    let mut values = 0;
    let mut enum_bytes = 0;
    let mut waiting = vec![(schema, 1, Reading::Schema)];
    while let Some((value, depth, reading)) = waiting.pop() {
        values += 1;
        if values > SCHEMA_VALUES {
            return Err(OverBudget::new(field, "has too many values".to_owned(), SCHEMA_VALUES));
        }
        if depth > SCHEMA_DEPTH {
            return Err(OverBudget::new(field, "is nested too deep".to_owned(), SCHEMA_DEPTH));
        }
        match value {
            Value::Array(items) => {
                // Whatever waits will be counted, so that more than the limit need not wait.
                let enough = items.iter().take(SCHEMA_VALUES + 1);
                waiting.extend(enough.map(|item| (item, depth + 1, reading)));
            }
            Value::Object(object) => {
                count(field, object.len(), "properties in one object", SCHEMA_PROPERTIES)?;
                for (name, value) in object {
                    if let Some(found) = too_long(name, SCHEMA_NAME_CHARS) {
                        let what = format!("has a name of {} characters", thousands(found));
                        return Err(OverBudget::new(field, what, SCHEMA_NAME_CHARS));
                    }
                    let inner = match reading {
                        Reading::Schema => {
                            check_keyword(name, value, field)?;
                            reading_of(name, value)
                        }
                        Reading::Named => Reading::Schema,
                        Reading::Data => Reading::Data,
                    };
                    if reading == Reading::Schema && matches!(name.as_str(), "enum" | "const") {
                        enum_bytes += text_bytes(value, ENUM_BYTES);
                        if enum_bytes > ENUM_BYTES {
                            let what = "has too many bytes of 'enum' and 'const' values".to_owned();
                            return Err(OverBudget::new(field, what, ENUM_BYTES));
                        }
                    }
                    waiting.push((value, depth + 1, inner));
                }
                if reading == Reading::Schema
                    && let Some(reference) = reference(object)
                    && seen.insert(reference)
                {
                    references.push(reference);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(references)
}

fn check_keyword(keyword: &str, value: &Value, field: &str) -> Result<(), OverBudget> {
    let limit = match (keyword, value) {
        ("enum", Value::Array(values)) => {
            return count(field, values.len(), "values in one 'enum'", ENUM_VALUES);
        }
        ("pattern", Value::String(_)) => SCHEMA_PATTERN_CHARS,
        ("$ref", Value::String(_)) => SCHEMA_NAME_CHARS,
        _ => return Ok(()),
    };
    match too_long(value.as_str().unwrap_or_default(), limit) {
        None => Ok(()),
        Some(found) => {
            let what = format!("has a '{keyword}' of {} characters", thousands(found));
            Err(OverBudget::new(field, what, limit))
        }
    }
}

/// The length of all texts within `value`; stops soon after `enough`.
fn text_bytes(value: &Value, enough: usize) -> usize {
    let mut bytes = 0;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => waiting.extend(items),
            Value::Object(fields) => {
                bytes += fields.keys().map(String::len).sum::<usize>();
                waiting.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if bytes > enough {
            break;
        }
    }
    bytes
}

/// Every `$ref` below the target of another one, which is read as a schema even if it lies within data.
fn references_below(target: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut waiting = vec![(target, Reading::Schema)];
    while let Some((value, reading)) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, reading))),
            Value::Object(object) => {
                if reading == Reading::Schema {
                    found.extend(reference(object));
                }
                waiting.extend(object.iter().map(|(name, value)| match reading {
                    Reading::Schema => (value, reading_of(name, value)),
                    Reading::Named => (value, Reading::Schema),
                    Reading::Data => (value, Reading::Data),
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

/// Decodes percent-encoding, which a `$ref` may have; `None` if it is invalid.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Which part of a schema refers to which: the whole schema first, then whatever a `$ref` names.
struct References {
    parts: Vec<Part>,
}

/// A part of a schema that a `$ref` names.
struct Part {
    /// Values and levels of the part itself, without definitions and with no `$ref` followed.
    values: usize,
    depth: usize,
    links: Vec<Link>,
}

/// A `$ref` within a part.
struct Link {
    to: usize,
    /// The level within the part at which it stands.
    depth: usize,
    /// It describes the same value as the part does: nothing of an answer lies between them.
    same_value: bool,
}

impl References {
    fn find<'a>(schema: &'a Value, references: &[&'a str]) -> References {
        let mut references = references.to_vec();
        let mut seen: HashSet<&str> = references.iter().copied().collect();
        let mut places = HashMap::from([("#", 0)]);
        let mut roots = vec![schema];
        // By what they name and not by how it is spelled: a name with a tilde has many spellings.
        let mut known = HashMap::from([(std::ptr::from_ref(schema), 0)]);
        let mut next = 0;
        while let Some(&reference) = references.get(next) {
            next += 1;
            // What lies elsewhere is not followed, here or by any engine that we run; a name of nothing is the engine's to refuse.
            let target = match reference.strip_prefix('#') {
                Some("") => continue,
                Some(pointer) => percent_decoded(pointer).and_then(|pointer| schema.pointer(&pointer)),
                None => None,
            };
            if let Some(target) = target {
                let at = *known.entry(std::ptr::from_ref(target)).or_insert(roots.len());
                if at == roots.len() {
                    roots.push(target);
                    references
                        .extend(references_below(target).into_iter().filter(|found| seen.insert(*found)));
                }
                places.insert(reference, at);
            }
        }
        References { parts: roots.into_iter().map(|root| Part::read(root, &places)).collect() }
    }

    fn check(&self, field: &str) -> Result<(), OverBudget> {
        let itself = self.follow(|link| link.same_value);
        if itself.circular {
            let what = "has a '$ref' that leads to itself with no property or item in between".to_owned();
            return Err(OverBudget { field: field.to_owned(), what, limit: None });
        }
        let followed = self.follow(|_| true);
        if followed.depth > SCHEMA_FOLLOWED_DEPTH {
            let what =
                format!("is nested {} levels deep when its '$ref's are followed", thousands(followed.depth));
            return Err(OverBudget::new(field, what, SCHEMA_FOLLOWED_DEPTH));
        }
        if followed.values > SCHEMA_EXPANDED_VALUES {
            let what = "has too many values when its '$ref's are replaced by what they name".to_owned();
            return Err(OverBudget::new(field, what, SCHEMA_EXPANDED_VALUES));
        }
        Ok(())
    }

    /// Follows the links that `counts` names from every part, each part once, and returns the most of each measure. A link back to a part that is
    /// being followed ends there, as it does when a grammar is made.
    fn follow(&self, counts: impl Fn(&Link) -> bool) -> Measure {
        let mut known: Vec<Option<Measure>> = vec![None; self.parts.len()];
        let mut open = vec![false; self.parts.len()];
        let mut most = Measure::default();
        for start in 0..self.parts.len() {
            // The path from `start`: the part, and how many of its links have been followed.
            let mut path = vec![(start, 0)];
            while let Some((part, next)) = path.last_mut() {
                let part = *part;
                if known[part].is_some() {
                    path.pop();
                    continue;
                }
                open[part] = true;
                let Some(link) = self.parts[part].links.get(*next) else {
                    let measure = self.measure(part, &known, &counts);
                    most = most.and(measure);
                    known[part] = Some(measure);
                    open[part] = false;
                    path.pop();
                    continue;
                };
                *next += 1;
                if !counts(link) {
                    continue;
                }
                if open[link.to] {
                    most.circular = true;
                } else if known[link.to].is_none() {
                    path.push((link.to, 0));
                }
            }
        }
        most
    }

    /// The measure of a part whose links have all been followed.
    fn measure(&self, part: usize, known: &[Option<Measure>], counts: &impl Fn(&Link) -> bool) -> Measure {
        let part = &self.parts[part];
        let mut measure = Measure { values: part.values, depth: part.depth, circular: false };
        for link in part.links.iter().filter(|link| counts(link)) {
            // A link back to what is being followed adds nothing.
            if let Some(beyond) = known[link.to] {
                measure.values = measure.values.saturating_add(beyond.values);
                measure.depth = measure.depth.max(link.depth.saturating_add(beyond.depth));
            }
        }
        measure
    }
}

/// How large a schema is.
#[derive(Debug, Clone, Copy, Default)]
struct Measure {
    values: usize,
    depth: usize,
    circular: bool,
}

impl Measure {
    fn and(self, other: Measure) -> Measure {
        Measure {
            values: self.values.max(other.values),
            depth: self.depth.max(other.depth),
            circular: self.circular || other.circular,
        }
    }
}

impl Part {
    /// Reads the part below `root`. Parts may lie within each other, but never deeper than [`SCHEMA_DEPTH`], so that each value is read that often at most.
    fn read(root: &Value, places: &HashMap<&str, usize>) -> Part {
        let mut part = Part { values: 0, depth: 0, links: Vec::new() };
        let mut waiting = vec![(root, 1, Reading::Schema, true)];
        while let Some((value, depth, reading, same)) = waiting.pop() {
            part.values += 1;
            part.depth = part.depth.max(depth);
            match value {
                Value::Array(items) => {
                    waiting.extend(items.iter().map(|item| (item, depth + 1, reading, same)));
                }
                Value::Object(object) => {
                    if reading == Reading::Schema
                        && let Some(to) = reference(object).and_then(|reference| places.get(reference))
                    {
                        part.links.push(Link { to: *to, depth, same_value: same });
                    }
                    for (name, value) in object {
                        let entry = match reading {
                            // Definitions count where they are used.
                            Reading::Schema if matches!(name.as_str(), "$defs" | "definitions") => continue,
                            Reading::Schema => (reading_of(name, value), same && same_value(name)),
                            // Of schemas by name only dependent ones describe the same value, which `same` still says.
                            Reading::Named => (Reading::Schema, same),
                            Reading::Data => (Reading::Data, false),
                        };
                        waiting.push((value, depth + 1, entry.0, entry.1));
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_spellings_of_one_name_are_one_place() {
        let schema = json!({ "$defs": { "~~": { "type": "string" } }, "properties": {} });
        let references = ["#/$defs/~~", "#/$defs/~0~", "#/$defs/~~0", "#/$defs/~0~0"];
        assert!(references.iter().all(|reference| schema.pointer(&reference[1..]).is_some()));
        assert_eq!(References::find(&schema, &references).parts.len(), 2, "the schema itself, and the name");
        let encoded = ["#/%24defs/~~", "#/$defs/%7E%7e", "#/%24%64efs/~0%7E"];
        assert_eq!(References::find(&schema, &encoded).parts.len(), 2, "also with percent-encoding");
    }
}
