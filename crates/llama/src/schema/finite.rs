//! Whether a schema has a finite value: one that requires itself has none.
//!
//! Each schema is a condition that depends on others: all of some, or one of some. What follows from the conditions that depend on
//! nothing is found in time that grows with the size of the schema.

use std::collections::HashMap;
use std::ptr;

use serde_json::{Map, Value};

use super::references::number_of;

/// Whether the first definition has a finite value.
pub(super) fn is_finite(definitions: &[Value]) -> bool {
    let nodes = definitions.iter().map(|_| Condition { missing: 1, then: Vec::new() }).collect();
    let mut conditions = Conditions { nodes, definitions: definitions.len(), known: HashMap::new() };
    for (at, definition) in definitions.iter().enumerate() {
        let condition = conditions.of(definition);
        conditions.nodes[condition].then.push(at);
    }
    conditions.follow();
    conditions.nodes.first().is_some_and(|first| first.missing == 0)
}

#[derive(Debug)]
struct Condition {
    /// How many other conditions must still be met.
    missing: usize,
    /// Those that depend on it.
    then: Vec<usize>,
}

struct Conditions {
    /// The definitions come first, with their numbers.
    nodes: Vec<Condition>,
    definitions: usize,
    /// By the address of the schema: several fields can have one.
    known: HashMap<*const Value, usize>,
}

impl Conditions {
    fn all(&mut self, parts: Vec<usize>) -> usize {
        self.add(parts.len(), parts)
    }

    fn any(&mut self, parts: Vec<usize>) -> usize {
        self.add(1, parts)
    }

    fn add(&mut self, missing: usize, parts: Vec<usize>) -> usize {
        let at = self.nodes.len();
        self.nodes.push(Condition { missing, then: Vec::new() });
        for part in parts {
            self.nodes[part].then.push(at);
        }
        at
    }

    fn of(&mut self, schema: &Value) -> usize {
        let address = ptr::from_ref(schema);
        if let Some(&known) = self.known.get(&address) {
            return known;
        }
        let condition = match schema {
            Value::Object(fields) => self.of_fields(fields),
            Value::Bool(false) => self.any(Vec::new()),
            _ => self.all(Vec::new()),
        };
        self.known.insert(address, condition);
        condition
    }

    fn of_fields(&mut self, fields: &Map<String, Value>) -> usize {
        let mut needed = Vec::new();
        if let Some(number) = fields.get("$ref").and_then(number_of) {
            let is_known = number < self.definitions;
            needed.push(if is_known { number } else { self.any(Vec::new()) });
        }
        needed.extend(list(fields, "allOf").iter().map(|schema| self.of(schema)));
        for keyword in ["anyOf", "oneOf"] {
            if fields.get(keyword).is_some_and(Value::is_array) {
                let parts = list(fields, keyword).iter().map(|schema| self.of(schema)).collect();
                needed.push(self.any(parts));
            }
        }
        needed.extend(self.of_types(fields));
        self.all(needed)
    }

    /// The condition of the types of values; `None` if there is none.
    fn of_types(&mut self, fields: &Map<String, Value>) -> Option<usize> {
        if fields.contains_key("const") || fields.contains_key("enum") {
            return None;
        }
        let names: Vec<&str> = match fields.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        if names.iter().any(|name| !matches!(*name, "object" | "array")) {
            return None;
        }
        let mut kinds = Vec::new();
        if names.contains(&"object") {
            kinds.push(self.of_object(fields));
        }
        if names.contains(&"array") {
            kinds.push(self.of_array(fields));
        }
        Some(self.any(kinds))
    }

    fn of_object(&mut self, fields: &Map<String, Value>) -> usize {
        let own = fields.get("properties");
        let others = fields.get("additionalProperties");
        let required = list(fields, "required").iter().filter_map(Value::as_str);
        let schemas = required.filter_map(|name| own.and_then(|own| own.get(name)).or(others));
        let parts = schemas.map(|schema| self.of(schema)).collect();
        self.all(parts)
    }

    fn of_array(&mut self, fields: &Map<String, Value>) -> usize {
        let least = fields.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let needed = usize::try_from(least).unwrap_or(usize::MAX);
        let first = list(fields, "prefixItems");
        let rest = fields.get("items").filter(|_| needed > first.len());
        let parts = first.iter().take(needed).chain(rest).map(|schema| self.of(schema)).collect();
        self.all(parts)
    }

    /// Meets all conditions that follow from those that depend on nothing.
    fn follow(&mut self) {
        let mut met: Vec<usize> = (0..self.nodes.len()).filter(|at| self.nodes[*at].missing == 0).collect();
        while let Some(at) = met.pop() {
            for next in std::mem::take(&mut self.nodes[at].then) {
                let missing = &mut self.nodes[next].missing;
                if *missing == 1 {
                    met.push(next);
                }
                *missing = missing.saturating_sub(1);
            }
        }
    }
}

fn list<'a>(fields: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    fields.get(keyword).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reference(number: usize) -> Value {
        json!({ "$ref": format!("#/$defs/{number}") })
    }

    #[test]
    fn a_long_chain_of_definitions_is_followed_once() {
        const LENGTH: usize = 40_000;
        let needs = |number: usize| json!({"type": "object", "required": ["a"], "properties": {"a": reference(number)}});
        // Each pass over all definitions would find one more: that would take many minutes.
        let mut definitions: Vec<Value> = (1..=LENGTH).map(needs).collect();
        definitions.push(json!({ "type": "string" }));
        assert!(is_finite(&definitions));
        definitions[LENGTH] = reference(0);
        assert!(!is_finite(&definitions));
    }

    #[test]
    fn each_schema_is_looked_at_once_although_many_fields_have_it() {
        const FIELDS: usize = 20_000;
        let names: Vec<String> = (0..FIELDS).map(|name| name.to_string()).collect();
        let all: Vec<Value> = (0..FIELDS).map(|_| reference(1)).collect();
        let object =
            json!({"type": vec!["object"; 1000], "required": names, "additionalProperties": {"allOf": all}});
        assert!(is_finite(&[object.clone(), json!(true)]));
        assert!(!is_finite(&[object.clone(), json!(false)]));
        assert!(!is_finite(&[object, reference(0)]));
    }

    #[test]
    fn one_way_to_end_is_enough_where_there_is_a_choice() {
        let endless = json!({"type": "array", "minItems": 1, "items": reference(0)});
        assert!(!is_finite(std::slice::from_ref(&endless)));
        assert!(is_finite(&[json!({"anyOf": [endless, {"type": "null"}]})]));
        assert!(is_finite(&[json!({"type": "array", "items": reference(0)})]));
        assert!(is_finite(&[
            json!({"type": ["object", "null"], "required": ["a"], "properties": {"a": reference(0)}})
        ]));
        assert!(!is_finite(&[json!({"anyOf": []})]));
        assert!(!is_finite(&[]));
    }
}
