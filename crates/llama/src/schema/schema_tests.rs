use serde_json::json;

use super::*;

fn read(schema: &Value) -> Result<Enforceable, SchemaError> {
    Enforceable::read(schema)
}

fn checked(schema: &Value) -> Vec<&'static str> {
    read(schema).expect("a schema that can be enforced").checked.into_iter().collect()
}

#[test]
fn keywords_of_a_grammar_need_no_check() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Order", "description": "…", "default": {}, "x-vendor": true,
        "$defs": {"id": {"type": "string", "format": "uuid"}},
        "type": "object",
        "properties": {
            "id": {"$ref": "#/$defs/id"},
            "amount": {"type": "number", "minimum": 0, "exclusiveMaximum": 1000.5, "multipleOf": 0.25},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3},
            "code": {"type": "string", "pattern": "\\d{2}-\\w+", "maxLength": 10},
            "line": {"type": "string", "pattern": "^[^,;\\s\\[a-z]+[^\\]]\\p{L}[\\u00C0-\\u017F]$"},
            "when": {"type": ["string", "null"], "format": "date-time"},
            "pair": {"prefixItems": [{"type": "integer"}, {"const": 1}], "items": false, "type": "array"},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 3},
            "named": {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"], "minProperties": 1},
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    assert_eq!(checked(&schema), [""; 0]);
}

#[test]
fn other_keywords_are_named_for_the_check() {
    for (schema, keyword) in [
        (json!({"type": "array", "uniqueItems": true}), "uniqueItems"),
        (json!({"not": {"type": "null"}}), "not"),
        (json!({"type": "array", "contains": {"const": 1}}), "contains"),
        (json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}), "oneOf"),
        (json!({"type": "string", "pattern": "^(?=.*a).{3}$"}), "pattern"),
        (json!({"type": "integer", "minimum": 9_007_199_254_740_993_i64}), "minimum"),
        (json!({"type": "number", "multipleOf": 1e-9}), "multipleOf"),
        (json!({"const": 12_345_678_901_234_567_890_u64}), "enum"),
        (json!({"type": "string", "format": "regex"}), "format"),
        (json!({"type": "object", "properties": {"a": {}, "b": {}}, "maxProperties": 1}), "maxProperties"),
        (json!({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1}), "minProperties"),
        (json!({"type": "object", "minProperties": 2}), "minProperties"),
        (json!({"type": "object", "required": ["a"], "minProperties": 2}), "minProperties"),
        (json!({"patternProperties": {"^a": {"type": "null"}}}), "additionalProperties"),
        (json!({"type": "string", "pattern": "^[^\"]+$"}), "pattern"),
        (json!({"type": "string", "pattern": "^[^a-c\\\\]+$"}), "pattern"),
        (json!({"type": "string", "pattern": "^[^ -~]+$"}), "pattern"),
        (json!({"type": "string", "pattern": "^[^\\.-z]+$"}), "pattern"),
        (json!({"type": "string", "pattern": "^[\\x00-!]+$"}), "pattern"),
        (json!({"type": "string", "pattern": "^\\p{C}+$"}), "pattern"),
        (
            json!({"patternProperties": {"^[^\"]$": {}}, "additionalProperties": false}),
            "additionalProperties",
        ),
        (
            json!({"properties": {"a": {}}, "patternProperties": {"^b": {}}, "additionalProperties": false}),
            "additionalProperties",
        ),
        (
            json!({"properties": {"a": {"const": "\u{1}"}}, "additionalProperties": true}),
            "additionalProperties",
        ),
        (
            json!({"properties": {"a": {"pattern": "^\\x01$"}}, "additionalProperties": true}),
            "additionalProperties",
        ),
    ] {
        assert_eq!(checked(&schema), [keyword], "{schema}");
    }
}

#[test]
fn named_properties_beside_others_are_enforced_by_the_spelling_of_their_names() {
    for schema in [
        json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
        json!({"properties": {"a": {}}, "additionalProperties": true}),
        json!({"properties": {"a\t": {"enum": ["x\ny"]}}, "additionalProperties": true}),
        json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
    ] {
        let read = read(&schema).expect("a schema that can be enforced");
        assert_eq!((read.checked, read.spelling), (BTreeSet::new(), TextSpelling::Unique), "{schema}");
    }
    let both = json!({"properties": {"a": {"uniqueItems": true}}, "additionalProperties": true});
    let read = read(&both).expect("a schema that can be enforced");
    assert_eq!(
        (read.checked, read.spelling),
        (BTreeSet::from(["additionalProperties", "uniqueItems"]), TextSpelling::Any)
    );
}

#[test]
fn keywords_that_cannot_be_enforced_are_refused_by_name() {
    for (schema, reason) in [
        (json!({"type": "object", "unevaluatedProperties": false}), "'unevaluatedProperties'"),
        (json!({"$ref": "https://example.com/schema.json"}), "https://example.com/schema.json"),
        (json!({"$dynamicRef": "#node"}), "'$dynamicRef'"),
        (json!({"$ref": "#/$defs/missing"}), "'#/$defs/missing', which is not in it"),
        (json!({"type": "decimal"}), "'type' of the schema must be"),
        (json!({"properties": {"a": {"minLength": -1}}}), "'minLength' of the schema must be"),
        (json!({"enum": []}), "'enum' of the schema must be"),
        (json!({"items": 5}), "'schema' of the schema must be"),
    ] {
        let error = read(&schema).expect_err("refused").to_string();
        assert!(error.contains(reason), "{error} for {schema}");
    }
}

#[test]
fn a_schema_may_refer_to_itself_if_it_has_a_finite_value() {
    let tree = json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
                      "required": ["children"]});
    let list = json!({"$defs": {"node": {"anyOf": [{"type": "null"},
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}]}},
        "$ref": "#/$defs/node"});
    for schema in [tree, list] {
        assert!(read(&schema).is_ok(), "{schema}");
    }
    for endless in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
        json!({"type": "array", "items": {"$ref": "#"}, "minItems": 1}),
    ] {
        assert_eq!(read(&endless), Err(SchemaError::Endless), "{endless}");
    }
}

#[test]
fn a_schema_that_is_too_large_is_refused_before_it_is_compiled() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    assert_eq!(read(&deep), Err(SchemaError::TooDeep));
    let many: Map<String, Value> = (0..6000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    assert_eq!(read(&json!({"type": "object", "properties": many})), Err(SchemaError::TooManyProperties));
    let chain: Map<String, Value> =
        (0..5000).map(|n| (n.to_string(), json!({"$ref": format!("#/$defs/{}", n + 1)}))).collect();
    let mut chain = json!({"$defs": chain, "$ref": "#/$defs/0"});
    chain["$defs"]["5000"] = json!({"type": "null"});
    assert_eq!(read(&chain), Err(SchemaError::ReferenceChain));
    let wide: Vec<Value> = (0..20_000).map(|_| json!({})).collect();
    assert_eq!(read(&json!({"anyOf": wide})), Err(SchemaError::TooLarge));
    assert_eq!(read(&json!({"const": "x".repeat(300_000)})), Err(SchemaError::TooLarge));
}

#[test]
fn a_reference_is_read_as_its_standard_says() {
    let schema = json!({"$defs": {"a/b c": {"type": "null"}}, "$ref": "#/$defs/a~1b%20c"});
    let read = read(&schema).expect("found");
    assert_eq!(read.definitions, [json!({"$ref": "#/$defs/1"}), json!({"type": "null"})]);
}
