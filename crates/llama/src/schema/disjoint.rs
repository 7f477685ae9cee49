//! Whether the branches of a `oneOf` are disjoint. Then "exactly one" is the same as "any", which a grammar can enforce.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

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
    let mut lists = ValueLists { root, sets: HashMap::new() };
    resolved
        .iter()
        .enumerate()
        .all(|(at, one)| resolved[at + 1..].iter().all(|other| lists.differ(one, other)))
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

/// The values that schemas list, each list read once: several branches can refer to one.
struct ValueLists<'a> {
    root: &'a Value,
    sets: HashMap<*const Value, Option<Rc<HashSet<ListedValue<'a>>>>>,
}

impl<'a> ValueLists<'a> {
    fn differ(&mut self, one: &'a Value, other: &'a Value) -> bool {
        if let (Some(one), Some(other)) = (kinds(one), kinds(other))
            && !one.iter().any(|kind| other.contains(kind))
        {
            return true;
        }
        if let Some(shares) = self.share_a_value(one, other) {
            return !shares;
        }
        // Objects with a required property whose values are disjoint.
        let only_objects = |schema: &Value| kinds(schema).is_some_and(|kinds| kinds == ["object"]);
        if !only_objects(one) || !only_objects(other) {
            return false;
        }
        let (Some(mine), Some(theirs)) = (
            one.get("properties").and_then(Value::as_object),
            other.get("properties").and_then(Value::as_object),
        ) else {
            return false;
        };
        let (i_require, they_require) = (required(one), required(other));
        let root = self.root;
        mine.iter().any(|(name, schema)| {
            let Some(their) = theirs.get(name) else { return false };
            i_require.contains(name.as_str())
                && they_require.contains(name.as_str())
                && self.share_a_value(resolved(schema, root), resolved(their, root)) == Some(false)
        })
    }

    /// Whether a value is in the lists of both schemas; `None` if one of them has no list.
    fn share_a_value(&mut self, one: &'a Value, other: &'a Value) -> Option<bool> {
        let (one, other) = (self.set(one)?, self.set(other)?);
        Some(!one.is_disjoint(&other))
    }

    fn set(&mut self, schema: &'a Value) -> Option<Rc<HashSet<ListedValue<'a>>>> {
        let read = || Some(Rc::new(values(schema)?.into_iter().map(ListedValue::of).collect()));
        self.sets.entry(std::ptr::from_ref(schema)).or_insert_with(read).clone()
    }
}

fn required(schema: &Value) -> HashSet<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
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

/// A value with the equality of JSON Schema: `1` is `1.0`. Lists and objects count as equal, to be safe.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ListedValue<'a> {
    Null,
    Bool(bool),
    /// The bits of the number, in which `-0.0` is `0.0`.
    Number(Option<u64>),
    String(&'a str),
    Array,
    Object,
}

impl<'a> ListedValue<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => ListedValue::Null,
            Value::Bool(value) => ListedValue::Bool(*value),
            Value::Number(number) => {
                ListedValue::Number(number.as_f64().map(|number| (number + 0.0).to_bits()))
            }
            Value::String(text) => ListedValue::String(text),
            Value::Array(_) => ListedValue::Array,
            Value::Object(_) => ListedValue::Object,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_equal_as_json_schema_compares_them() {
        let groups = [
            vec![json!(null)],
            vec![json!(true)],
            vec![json!(false)],
            vec![json!(0), json!(0.0), json!(-0.0)],
            vec![json!(1), json!(1.0)],
            vec![json!(u64::MAX), json!(18_446_744_073_709_551_616.0)],
            vec![json!("1")],
            vec![json!("")],
            vec![json!([]), json!([1])],
            vec![json!({}), json!({"a": 1})],
        ];
        for (at, one) in groups.iter().enumerate() {
            for (their, other) in groups.iter().enumerate() {
                for (a, b) in one.iter().flat_map(|a| other.iter().map(move |b| (a, b))) {
                    assert_eq!(ListedValue::of(a) == ListedValue::of(b), at == their, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn branches_are_disjoint_if_no_listed_value_is_in_two() {
        let numbers = |from: usize, to: usize| json!({ "enum": (from..to).collect::<Vec<_>>() });
        let parts = [numbers(0, 100), numbers(100, 200), numbers(200, 300)];
        assert!(are_disjoint(&parts, &Value::Null));
        let parts = [numbers(0, 100), numbers(100, 200), numbers(199, 300)];
        assert!(!are_disjoint(&parts, &Value::Null));
    }

    #[test]
    fn objects_are_disjoint_by_a_required_property_of_both() {
        let root = json!({ "$defs": { "all": { "enum": ["a", "b", "c"] }, "b": { "const": "b" } } });
        let object = |kind: Value, required: Value| {
            let properties = json!({ "shared": { "$ref": "#/$defs/all" }, "kind": kind });
            json!({ "type": "object", "properties": properties, "required": required })
        };
        let of_a = object(json!({ "const": "a" }), json!(["kind", "shared"]));
        let of_b = object(json!({ "$ref": "#/$defs/b" }), json!(["kind", "shared"]));
        let of_all = object(json!({ "$ref": "#/$defs/all" }), json!(["kind", "shared"]));
        let optional = object(json!({ "$ref": "#/$defs/b" }), json!(["shared"]));
        assert!(are_disjoint(&[of_a.clone(), of_b.clone()], &root));
        assert!(!are_disjoint(&[of_a.clone(), of_b, of_all], &root));
        assert!(!are_disjoint(&[of_a, optional], &root));
    }
}
