//! Whether the branches of a `oneOf` are disjoint. Then "exactly one" is the same as "any", which a grammar can enforce.

use serde_json::Value;

/// References that are followed in a branch.
const MAX_REFERENCES: usize = 8;

/// More branches are checked on the finished answer, because all pairs are compared.
const MAX_BRANCHES: usize = 64;

/// Whether no value matches two branches. `false` if unknown.
pub(super) fn are_disjoint(branches: &[Value], root: &Value) -> bool {
    if branches.len() > MAX_BRANCHES {
        return false;
    }
    let resolved: Vec<&Value> = branches.iter().map(|branch| resolved(branch, root)).collect();
    resolved
        .iter()
        .enumerate()
        .all(|(at, one)| resolved[at + 1..].iter().all(|other| differ(one, other, root)))
}

fn resolved<'a>(mut schema: &'a Value, root: &'a Value) -> &'a Value {
    for _ in 0..MAX_REFERENCES {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        match target.and_then(|pointer| root.pointer(pointer)) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

fn differ(one: &Value, other: &Value, root: &Value) -> bool {
    if let (Some(one), Some(other)) = (kinds(one), kinds(other))
        && !one.iter().any(|kind| other.contains(kind))
    {
        return true;
    }
    if let (Some(one), Some(other)) = (values(one), values(other)) {
        return !one.iter().any(|value| other.iter().any(|other| same(value, other)));
    }
    // Objects with a required property whose values are disjoint.
    let only_objects = |schema: &Value| kinds(schema).is_some_and(|kinds| kinds == ["object"]);
    let required = |schema: &'_ Value, name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|n| n == name))
    };
    if !only_objects(one) || !only_objects(other) {
        return false;
    }
    let (Some(mine), Some(theirs)) = (
        one.get("properties").and_then(Value::as_object),
        other.get("properties").and_then(Value::as_object),
    ) else {
        return false;
    };
    mine.iter().any(|(name, schema)| {
        let Some(their) = theirs.get(name) else { return false };
        if !required(one, name) || !required(other, name) {
            return false;
        }
        match (values(resolved(schema, root)), values(resolved(their, root))) {
            (Some(one), Some(other)) => !one.iter().any(|value| other.iter().any(|other| same(value, other))),
            _ => false,
        }
    })
}

/// The types that a schema allows, if stated.
fn kinds(schema: &Value) -> Option<Vec<&str>> {
    let plain = |name: &'_ str| if name == "integer" { "number" } else { name }.to_owned();
    let names: Vec<String> = match schema.get("type") {
        Some(Value::String(name)) => vec![plain(name)],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(plain).collect(),
        _ => values(schema)?.iter().map(|value| kind_of(value).to_owned()).collect(),
    };
    const KINDS: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];
    Some(KINDS.into_iter().filter(|kind| names.iter().any(|name| name == kind)).collect())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The values that a schema allows, if listed.
fn values(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

/// Equality of JSON Schema: `1` is `1.0`. Lists and objects count as equal, to be safe.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => true,
        _ => one == other,
    }
}
