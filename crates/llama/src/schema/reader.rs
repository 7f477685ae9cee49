//! Reads a schema: sorts its keywords into those for the grammar, those for the final check, and those that are refused.

use std::collections::{BTreeSet, HashMap, HashSet};

use hob_core::percent_decoded;
use serde_json::{Map, Value};

use super::error::{MAX_DEPTH, MAX_LEAST, MAX_NODES, MAX_PROPERTIES, SchemaError, malformed};
use super::exact::{
    BOUNDS, bound, counts, is_exact, is_exact_in_quotes, is_exact_multiple, is_regular,
    names_control_characters, whole, with_plain_blanks,
};
use super::references::reference;
use super::{disjoint, formats};

/// Keywords that a grammar cannot enforce.
const ONLY_CHECKED: [&str; 11] = [
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "not",
    "if",
    "then",
    "else",
];

/// Checked for an object whose named properties stand beside others, if the grammar cannot give each name one spelling: it tells names
/// apart by their spelling.
pub(super) const NAMES: &str = "additionalProperties";

/// Reads the schemas of one document.
pub(super) struct Reader<'a> {
    root: &'a Value,
    /// Whether objects are closed by default. A model that may add properties often does not stop; and without merged schemas,
    /// nothing is lost.
    closes: bool,
    /// The targets of references, in order of discovery.
    pub(super) targets: Vec<&'a Value>,
    numbers: HashMap<String, usize>,
    nodes: usize,
    pub(super) checked: BTreeSet<&'static str>,
    /// Whether a name of an object, spelled otherwise, can get the schema of other names.
    pub(super) has_confusable_names: bool,
    /// Whether one spelling of each text is not possible or not enough: a pattern may need `\u`, or is one of names.
    pub(super) needs_free_spelling: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(schema: &'a Value) -> Self {
        Reader {
            root: schema,
            closes: !merges(schema),
            targets: vec![schema],
            numbers: HashMap::from([(String::new(), 0)]),
            nodes: 0,
            checked: BTreeSet::new(),
            has_confusable_names: false,
            needs_free_spelling: false,
        }
    }

    pub(super) fn read(&mut self, schema: &'a Value, depth: usize) -> Result<Value, SchemaError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(SchemaError::TooLarge);
        }
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let fields = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(fields) => fields,
            _ => return Err(malformed("schema", "an object, true or false")),
        };
        let mut out = Map::new();
        // Further schemas for the value.
        let mut also = Vec::new();
        for (keyword, value) in fields {
            self.keyword(keyword, value, fields, depth, &mut out, &mut also)?;
        }
        if self.closes && is_open(&out) {
            out.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        self.has_confusable_names |= has_confusable_names(&out);
        if counts(&out)
            && BOUNDS.iter().all(|keyword| fields.contains_key(*keyword) == out.contains_key(*keyword))
        {
            bound(&mut out);
        }
        if !also.is_empty() {
            let all = out.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(all) = all {
                all.append(&mut also);
            }
        }
        Ok(Value::Object(out))
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &'a Value,
        fields: &'a Map<String, Value>,
        depth: usize,
        out: &mut Map<String, Value>,
        also: &mut Vec<Value>,
    ) -> Result<(), SchemaError> {
        let mut keep = |value: Value| {
            out.insert(keyword.to_owned(), value);
        };
        match keyword {
            "type" => keep(types(value)?),
            "properties" | "patternProperties" => {
                let named = value.as_object().ok_or_else(|| malformed(keyword, "an object"))?;
                if named.len() > MAX_PROPERTIES {
                    return Err(SchemaError::TooManyProperties);
                }
                let mut read = Map::new();
                for (name, schema) in named {
                    let name = match keyword {
                        "properties" => name.clone(),
                        _ => self.pattern_of_names(name)?,
                    };
                    read.insert(name, self.read(schema, depth + 1)?);
                }
                keep(Value::Object(read));
            }
            // The older form of `prefixItems`.
            "items" if value.is_array() => {
                let list = self.list(keyword, value, depth)?;
                out.insert("prefixItems".to_owned(), list);
            }
            "additionalItems" if fields.get("items").is_some_and(Value::is_array) => {
                let rest = self.read(value, depth + 1)?;
                out.insert("items".to_owned(), rest);
            }
            "items" | "additionalProperties" => keep(self.read(value, depth + 1)?),
            "anyOf" | "allOf" | "prefixItems" => keep(self.list(keyword, value, depth)?),
            "oneOf" => {
                let branches = value.as_array().ok_or_else(|| malformed(keyword, "a list of schemas"))?;
                if !disjoint::are_disjoint(branches, self.root) {
                    self.checked.insert("oneOf");
                }
                keep(self.list(keyword, value, depth)?);
            }
            "$ref" => keep(self.reference(value)?.into()),
            "const" => {
                self.values(std::slice::from_ref(value));
                keep(value.clone());
            }
            "enum" => {
                let values = value
                    .as_array()
                    .filter(|values| !values.is_empty())
                    .ok_or_else(|| malformed(keyword, "a list that is not empty"))?;
                self.values(values);
                keep(value.clone());
            }
            "required" => {
                let named = value.as_array().ok_or_else(|| malformed(keyword, "a list of names"))?;
                if !named.iter().all(Value::is_string) {
                    return Err(malformed(keyword, "a list of names"));
                }
                if named.len() > MAX_PROPERTIES {
                    return Err(SchemaError::TooManyProperties);
                }
                keep(value.clone());
            }
            "minLength" | "minItems" | "minProperties" | "maxLength" | "maxItems" | "maxProperties" => {
                let count = whole(value).ok_or_else(|| malformed(keyword, "a whole number"))?;
                let least = keyword.starts_with("min");
                if least && count > MAX_LEAST {
                    return Err(SchemaError::Unsatisfiable(format!("'{keyword}' is more than {MAX_LEAST}")));
                }
                let is_kept = !keyword.ends_with("Properties") || !has_optional(fields);
                // The grammar counts members, of which several can have one name.
                let is_exact = is_kept && (keyword != "minProperties" || count <= 1);
                let is_implied = keyword == "minProperties" && count <= required(fields).len() as u64;
                if is_kept {
                    keep(count.min(u64::from(u32::MAX / 2)).into());
                }
                if !is_exact && !is_implied {
                    self.checked.insert(if keyword == "minProperties" {
                        "minProperties"
                    } else {
                        "maxProperties"
                    });
                }
            }
            // The older form with a flag.
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => keep(value.clone()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                let number = value.as_f64().ok_or_else(|| malformed(keyword, "a number"))?;
                if is_exact(number) {
                    keep(value.clone());
                } else {
                    self.checked.extend(BOUNDS.iter().find(|known| **known == keyword));
                }
            }
            "multipleOf" => {
                let number = value
                    .as_f64()
                    .filter(|number| *number > 0.0)
                    .ok_or_else(|| malformed(keyword, "a number above 0"))?;
                if is_exact_multiple(number) {
                    keep(value.clone());
                } else {
                    self.checked.insert("multipleOf");
                }
            }
            "pattern" => {
                let written = value.as_str().ok_or_else(|| malformed(keyword, "a regular expression"))?;
                self.needs_free_spelling |= names_control_characters(written);
                let pattern = with_plain_blanks(written);
                let is_kept = is_regular(&pattern);
                if !is_kept || !is_exact_in_quotes(written) {
                    self.checked.insert("pattern");
                }
                if is_kept {
                    keep(pattern.into());
                }
            }
            "format" => {
                let format = value.as_str().ok_or_else(|| malformed(keyword, "a name"))?;
                match formats::of(format) {
                    formats::Format::Held(pattern) => {
                        also.push(serde_json::json!({ "pattern": pattern }));
                    }
                    formats::Format::Checked => {
                        self.checked.insert("format");
                    }
                    formats::Format::Unknown => {}
                }
            }
            "uniqueItems" if value == &Value::Bool(true) => {
                self.checked.insert("uniqueItems");
            }
            "unevaluatedProperties" | "unevaluatedItems" | "$dynamicRef" | "$recursiveRef" => {
                return Err(SchemaError::Unsupported(keyword.to_owned()));
            }
            // A schema with its own base address for references.
            "$id" if !std::ptr::eq(fields, self.root_fields()) => {
                return Err(SchemaError::Unsupported("$id".to_owned()));
            }
            other => self.checked.extend(ONLY_CHECKED.iter().find(|known| **known == other)),
        }
        Ok(())
    }

    /// A pattern of `patternProperties`, for the grammar.
    fn pattern_of_names(&mut self, written: &str) -> Result<String, SchemaError> {
        let pattern = with_plain_blanks(written);
        if !is_regular(&pattern) {
            return Err(SchemaError::Unsupported(format!("patternProperties: {pattern}")));
        }
        self.needs_free_spelling = true;
        if !is_exact_in_quotes(written) {
            self.checked.insert(NAMES);
        }
        Ok(pattern)
    }

    fn root_fields(&self) -> &'a Map<String, Value> {
        static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        self.root.as_object().unwrap_or(&NONE)
    }

    fn list(&mut self, keyword: &str, value: &'a Value, depth: usize) -> Result<Value, SchemaError> {
        let schemas = value.as_array().ok_or_else(|| malformed(keyword, "a list of schemas"))?;
        schemas.iter().map(|schema| self.read(schema, depth + 1)).collect()
    }

    /// Numbers that the grammar does not write exactly are also checked.
    fn values(&mut self, values: &[Value]) {
        let mut open: Vec<&Value> = values.iter().collect();
        while let Some(value) = open.pop() {
            match value {
                Value::Number(number) if !number.as_f64().is_some_and(is_exact) => {
                    self.checked.insert("enum");
                }
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => open.extend(fields.values()),
                _ => {}
            }
        }
    }

    /// The reference in the grammar for a reference of the caller.
    fn reference(&mut self, value: &Value) -> Result<String, SchemaError> {
        let target = value.as_str().ok_or_else(|| malformed("$ref", "a reference"))?;
        let Some(pointer) = target.strip_prefix('#') else {
            return Err(SchemaError::Unsupported(format!("$ref: {target}")));
        };
        let pointer = percent_decoded(pointer).ok_or_else(|| SchemaError::Reference(target.to_owned()))?;
        if let Some(&number) = self.numbers.get(&pointer) {
            return Ok(reference("", number));
        }
        let found = self.root.pointer(&pointer).ok_or_else(|| SchemaError::Reference(target.to_owned()))?;
        // Compared by address, because a name may have several spellings.
        let known = self.targets.iter().position(|target| std::ptr::eq(*target, found));
        let number = known.unwrap_or(self.targets.len());
        if known.is_none() {
            self.targets.push(found);
        }
        self.numbers.insert(pointer, number);
        Ok(reference("", number))
    }
}

fn types(value: &Value) -> Result<Value, SchemaError> {
    const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let right = match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        name => known(name),
    };
    if right { Ok(value.clone()) } else { Err(malformed("type", "the name of a type, or a list of them")) }
}

/// The names of required properties.
fn required(fields: &Map<String, Value>) -> HashSet<&str> {
    let names = fields.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether an object has optional properties. The grammar counts properties only without any.
fn has_optional(fields: &Map<String, Value>) -> bool {
    let required = required(fields);
    let named = fields.get("properties").and_then(Value::as_object);
    let elsewhere = ["allOf", "anyOf", "oneOf", "$ref"].iter().any(|keyword| fields.contains_key(*keyword));
    elsewhere || named.is_some_and(|named| named.keys().any(|name| !required.contains(name.as_str())))
}

/// Whether a name of an object, spelled otherwise, can get the schema of other names.
fn has_confusable_names(schema: &Map<String, Value>) -> bool {
    let has = |keyword: &str| {
        schema.get(keyword).and_then(Value::as_object).is_some_and(|schemas| !schemas.is_empty())
    };
    let is_open = schema.get("additionalProperties") != Some(&Value::Bool(false));
    let kinds = [has("properties"), has("patternProperties"), is_open];
    kinds.into_iter().filter(|kind| *kind).count() > 1
}

/// Whether an object may have to match two schemas at once. False positives do no harm.
fn merges(schema: &Value) -> bool {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                let has = |keyword: &&str| fields.contains_key(*keyword);
                let of_objects = ["properties", "required", "additionalProperties", "patternProperties"];
                let elsewhere = ["anyOf", "oneOf", "$ref"].iter().filter(|keyword| has(keyword)).count();
                if fields.contains_key("allOf")
                    || elsewhere > 1
                    || (elsewhere == 1 && of_objects.iter().any(&has))
                {
                    return true;
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

/// Whether an object may have other properties although it needs none.
fn is_open(schema: &Map<String, Value>) -> bool {
    let Some(named) = schema.get("properties").and_then(Value::as_object) else { return false };
    let says = ["additionalProperties", "patternProperties", "minProperties", "const", "enum"];
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    !named.is_empty()
        && !says.iter().any(|keyword| schema.contains_key(*keyword))
        && required.filter_map(Value::as_str).all(|name| named.contains_key(name))
}
