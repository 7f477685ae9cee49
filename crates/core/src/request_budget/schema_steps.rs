//! How many steps it takes to collect the errors of a value against a JSON Schema. A schema can refer to itself several times for one part of
//! a value. Validators remember whether that part is valid, but collect its errors each time, so that these grow exponentially with the depth
//! of the value.

use serde_json::{Map, Value};

/// A model needs no more errors than are found in this many steps.
const MAX_STEPS: usize = 100_000;

/// What a property name is checked as: only a part below it could need many steps, and it has none.
static NAME: Value = Value::Null;

/// Whether the errors of `value` can be collected in few steps. `false` also for references that are not read here.
pub fn can_collect_errors(schema: &Value, value: &Value) -> bool {
    let mut steps = Steps { root: schema, waiting: Vec::new(), left: MAX_STEPS };
    let mut next = Some((schema, value));
    while let Some((schema, value)) = next {
        let keywords = schema.as_object().into_iter().flatten();
        for (keyword, part) in keywords {
            if steps.follow(keyword, part, value).is_none() {
                return false;
            }
        }
        next = steps.waiting.pop();
    }
    true
}

/// Schemas that are still to be applied, each with its part of the value.
struct Steps<'a> {
    root: &'a Value,
    waiting: Vec<(&'a Value, &'a Value)>,
    left: usize,
}

impl<'a> Steps<'a> {
    /// `None` when there are too many.
    fn add(&mut self, schema: &'a Value, value: &'a Value) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        self.waiting.push((schema, value));
        Some(())
    }

    /// Adds what a keyword applies to `value` and its parts, or more. `None` when there is too much.
    fn follow(&mut self, keyword: &str, part: &'a Value, value: &'a Value) -> Option<()> {
        let mut fields = value.as_object().into_iter().flat_map(Map::values);
        let mut items = value.as_array().into_iter().flatten();
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let target = self.root.pointer(part.as_str()?.strip_prefix('#')?)?;
                self.add(target, value)
            }
            "not" | "if" | "then" | "else" => self.add(part, value),
            "allOf" | "anyOf" | "oneOf" => {
                part.as_array()?.iter().try_for_each(|schema| self.add(schema, value))
            }
            "dependentSchemas" | "dependencies" => {
                part.as_object()?.values().try_for_each(|schema| self.add(schema, value))
            }
            "properties" => part.as_object()?.iter().try_for_each(|(name, schema)| match value.get(name) {
                Some(field) => self.add(schema, field),
                None => Some(()),
            }),
            "patternProperties" => part
                .as_object()?
                .values()
                .try_for_each(|schema| fields.clone().try_for_each(|field| self.add(schema, field))),
            "additionalProperties" | "unevaluatedProperties" => {
                fields.try_for_each(|field| self.add(part, field))
            }
            "propertyNames" => fields.try_for_each(|_| self.add(part, &NAME)),
            "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains" => match part {
                Value::Array(schemas) => {
                    schemas.iter().zip(items).try_for_each(|(schema, item)| self.add(schema, item))
                }
                schema => items.try_for_each(|item| self.add(schema, item)),
            },
            _ => Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Objects within each other, each in the field `a` of the next.
    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({}), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn a_schema_that_names_itself_twice_for_one_value_takes_too_many_steps() {
        let itself = json!({ "$ref": "#" });
        for schema in [
            json!({ "properties": { "a": { "anyOf": [itself, itself] } } }),
            json!({ "properties": { "a": itself }, "patternProperties": { "": itself } }),
            json!({ "additionalProperties": itself, "allOf": [{ "properties": { "a": itself } }] }),
        ] {
            assert!(can_collect_errors(&schema, &nested(5)), "{schema}");
            assert!(!can_collect_errors(&schema, &nested(100)), "{schema}");
        }
    }

    #[test]
    fn schemas_of_trees_and_lists_take_few_steps() {
        let itself = json!({ "$ref": "#" });
        let tree = json!({ "type": "object", "properties": { "a": itself, "b": itself }, "additionalProperties": false });
        assert!(can_collect_errors(&tree, &nested(100)));
        let list =
            json!({ "items": { "$ref": "#/$defs/number" }, "$defs": { "number": { "type": "number" } } });
        assert!(can_collect_errors(&list, &json!(vec![1; 10_000])));
        assert!(!can_collect_errors(&list, &json!(vec![1; 100_000])));
    }

    #[test]
    fn a_reference_that_is_not_read_here_counts_as_too_much() {
        for reference in ["other", "#name", "#/$defs/nothing"] {
            assert!(!can_collect_errors(&json!({ "$ref": reference }), &json!({})), "{reference}");
        }
    }
}
