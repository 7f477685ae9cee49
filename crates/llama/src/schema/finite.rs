//! Whether a schema has a finite value: one that requires itself has none.

use serde_json::Value;

use super::references::number_of;

/// Whether the first definition has a finite value.
pub(super) fn is_finite(definitions: &[Value]) -> bool {
    // Iterates: a definition is finite if it is, given the definitions that are known to be.
    let mut ends = vec![false; definitions.len()];
    loop {
        let mut more = false;
        for (at, definition) in definitions.iter().enumerate() {
            if !ends[at] && ends_with(definition, &ends) {
                ends[at] = true;
                more = true;
            }
        }
        if !more {
            return ends.first().copied().unwrap_or(false);
        }
    }
}

fn ends_with(schema: &Value, known: &[bool]) -> bool {
    let Value::Object(fields) = schema else { return schema != &Value::Bool(false) };
    let list = |keyword: &str| fields.get(keyword).and_then(Value::as_array);
    let reference = fields.get("$ref").and_then(number_of);
    if reference.is_some_and(|at| !known.get(at).copied().unwrap_or(false))
        || list("allOf").is_some_and(|all| !all.iter().all(|schema| ends_with(schema, known)))
        || ["anyOf", "oneOf"]
            .iter()
            .filter_map(|keyword| list(keyword))
            .any(|any| !any.iter().any(|schema| ends_with(schema, known)))
    {
        return false;
    }
    if fields.contains_key("const") || fields.contains_key("enum") {
        return true;
    }
    let names: Vec<&str> = match fields.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return true,
    };
    names.iter().any(|name| match *name {
        "object" => list("required").into_iter().flatten().filter_map(Value::as_str).all(|name| {
            let own = fields.get("properties").and_then(|properties| properties.get(name));
            own.or_else(|| fields.get("additionalProperties")).is_none_or(|schema| ends_with(schema, known))
        }),
        "array" => {
            let least = fields.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let first = list("prefixItems").map_or(&[][..], Vec::as_slice);
            let needed = usize::try_from(least).unwrap_or(usize::MAX);
            first.iter().take(needed).all(|schema| ends_with(schema, known))
                && (needed <= first.len()
                    || fields.get("items").is_none_or(|schema| ends_with(schema, known)))
        }
        _ => true,
    })
}
