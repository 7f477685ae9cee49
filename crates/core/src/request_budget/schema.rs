//! The part of the request budget for JSON Schemas: size, nesting, and what every `$ref` in it adds up to.

use std::collections::HashMap;

use serde_json::Value;

use super::references::{Identities, Reading, identity, is_local, reference, target};
use super::{
    ENUM_BYTES, ENUM_VALUES, OverBudget, SCHEMA_DEPTH, SCHEMA_EXPANDED_VALUES, SCHEMA_FOLLOWED_DEPTH,
    SCHEMA_NAME_CHARS, SCHEMA_PATTERN_CHARS, SCHEMA_PROPERTIES, SCHEMA_VALUES, count, thousands, too_long,
};

/// Checks the size and shape of a JSON Schema that a caller sent in `field`. It says nothing about whether an engine can follow the
/// schema.
pub fn check_schema(schema: &Value, field: &str) -> Result<(), OverBudget> {
    let written = check_written(schema, field)?;
    if written.references.is_empty() {
        return Ok(());
    }
    References::find(schema, &written).map_err(|what| refused(field, what.to_owned()))?.check(field)
}

/// The error for a schema that no limit would make acceptable.
fn refused(field: &str, what: String) -> OverBudget {
    OverBudget { field: field.to_owned(), what, limit: None }
}

/// Whether a schema under this keyword describes the same value as the schema around it, so that nothing of an answer lies between them.
fn same_value(keyword: &str) -> bool {
    matches!(
        keyword,
        "anyOf" | "oneOf" | "allOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies"
    )
}

/// What a schema says about references.
#[derive(Default)]
struct Written<'a> {
    /// Its `$ref`s in order, each of them once.
    references: Vec<&'a str>,
    identities: Identities<'a>,
}

/// Checks a schema as it is written.
fn check_written<'a>(schema: &'a Value, field: &str) -> Result<Written<'a>, OverBudget> {
    let mut written = Written::default();
    let mut seen = std::collections::HashSet::new();
    let mut values = 0;
    let mut enum_bytes = 0;
    // With whether a part around the value has an `$id` of its own.
    let mut waiting = vec![(schema, 1, Reading::Schema, false)];
    while let Some((value, depth, reading, mut is_apart)) = waiting.pop() {
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
                waiting.extend(enough.map(|item| (item, depth + 1, reading, is_apart)));
            }
            Value::Object(object) => {
                count(field, object.len(), "properties in one object", SCHEMA_PROPERTIES)?;
                if reading == Reading::Schema
                    && let Some(id) = identity(object)
                {
                    let is_root = depth == 1;
                    is_apart |= !is_root;
                    written.identities.add(id, value, is_root);
                }
                for (name, value) in object {
                    if let Some(found) = too_long(name, SCHEMA_NAME_CHARS) {
                        let what = format!("has a name of {} characters", thousands(found));
                        return Err(OverBudget::new(field, what, SCHEMA_NAME_CHARS));
                    }
                    if reading == Reading::Schema {
                        check_keyword(name, value, field)?;
                    }
                    if reading == Reading::Schema && matches!(name.as_str(), "enum" | "const") {
                        enum_bytes += text_bytes(value, ENUM_BYTES);
                        if enum_bytes > ENUM_BYTES {
                            let what = "has too many bytes of 'enum' and 'const' values".to_owned();
                            return Err(OverBudget::new(field, what, ENUM_BYTES));
                        }
                    }
                    waiting.push((value, depth + 1, reading.of_field(name, value), is_apart));
                }
                if reading == Reading::Schema
                    && let Some(reference) = reference(object)
                {
                    if is_apart && is_local(reference) {
                        let what = "has a '$ref' within a part that has an '$id' of its own";
                        return Err(refused(field, what.to_owned()));
                    }
                    if seen.insert(reference) {
                        written.references.push(reference);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(written)
}

fn check_keyword(keyword: &str, value: &Value, field: &str) -> Result<(), OverBudget> {
    let limit = match (keyword, value) {
        ("enum", Value::Array(values)) => {
            return count(field, values.len(), "values in one 'enum'", ENUM_VALUES);
        }
        ("pattern", Value::String(_)) => SCHEMA_PATTERN_CHARS,
        ("$ref", Value::String(_)) => SCHEMA_NAME_CHARS,
        ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
            return Err(refused(field, format!("has a '{keyword}', which is not supported")));
        }
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
    fn find<'a>(schema: &'a Value, written: &Written<'a>) -> Result<References, &'static str> {
        let mut places = HashMap::new();
        let mut roots = vec![schema];
        // By what they name and not by how it is spelled: a name with a tilde has many spellings.
        let mut known = HashMap::from([(std::ptr::from_ref(schema), 0)]);
        for reference in &written.references {
            if let Some(target) = target(schema, reference, &written.identities)? {
                let at = *known.entry(std::ptr::from_ref(target)).or_insert(roots.len());
                if at == roots.len() {
                    roots.push(target);
                }
                places.insert(*reference, at);
            }
        }
        Ok(References { parts: roots.into_iter().map(|root| Part::read(root, &places)).collect() })
    }

    fn check(&self, field: &str) -> Result<(), OverBudget> {
        let itself = self.follow(|link| link.same_value);
        if itself.circular {
            let what = "has a '$ref' that leads to itself with no property or item in between".to_owned();
            return Err(refused(field, what));
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
                        let same = match reading {
                            // Definitions count where they are used.
                            Reading::Schema if matches!(name.as_str(), "$defs" | "definitions") => continue,
                            Reading::Schema => same && same_value(name),
                            // Of schemas by name only dependent ones describe the same value, which `same` still says.
                            Reading::Named => same,
                            Reading::Data => false,
                        };
                        waiting.push((value, depth + 1, reading.of_field(name, value), same));
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
        let schema = json!({ "$defs": { "~a": { "type": "string" } }, "properties": {} });
        let references = vec!["#/$defs/~0a", "#/%24defs/~0%61", "#/$defs/%7E0a"];
        let written = Written { references, ..Written::default() };
        let found = References::find(&schema, &written).map(|references| references.parts.len());
        assert_eq!(found, Ok(2), "the schema itself, and the name");
    }
}
