use std::num::NonZeroU32;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::generate::{JsonSchema, Sampling, ToolDefinition};
use crate::message::{Message, Role, ToolCall};

fn refusal(schema: &Value) -> String {
    check_schema(schema, "schema").expect_err("over budget").to_string()
}

/// An object whose properties are named `p0`, `p1`, and so on.
fn object_of(count: usize, property: &Value) -> Value {
    let properties: Map<String, Value> = (0..count).map(|at| (format!("p{at}"), property.clone())).collect();
    json!({ "type": "object", "properties": properties })
}

/// Definitions `d0` to `d{count}`, each made of the name of the next; the last is a string.
fn chain(count: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut definitions: Map<String, Value> = (0..count)
        .map(|at| (format!("d{at}"), link(json!({ "$ref": format!("#/$defs/d{}", at + 1) }))))
        .collect();
    definitions.insert(format!("d{count}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/d0", "$defs": definitions })
}

#[test]
fn numbers_are_grouped_by_thousands() {
    let numbers = [0, 999, 1_000, 65_536, 1_000_000].map(thousands);
    assert_eq!(numbers, ["0", "999", "1,000", "65,536", "1,000,000"]);
}

#[test]
fn what_real_clients_send_is_within_the_budget() {
    let person = json!({
        "$defs": {
            "Person": {
                "type": "object",
                "properties": {
                    "name": { "type": "string", "pattern": "^[A-Z]" },
                    "friends": { "type": "array", "items": { "$ref": "#/$defs/Person" } },
                    "kind": { "enum": ["a", "b"] },
                    "$ref": { "type": "string" },
                },
                "required": ["name"],
                "additionalProperties": false,
            },
        },
        "$ref": "#/$defs/Person",
    });
    assert_eq!(check_schema(&person, "schema"), Ok(()));
    let tree = json!({
        "type": "object",
        "properties": { "value": { "type": "number" }, "children": { "type": "array", "items": { "$ref": "#" } } },
    });
    assert_eq!(check_schema(&tree, "schema"), Ok(()));
    assert_eq!(check_schema(&object_of(SCHEMA_PROPERTIES, &json!({ "type": "string" })), "schema"), Ok(()));
    assert_eq!(check_schema(&json!({ "enum": vec!["x"; ENUM_VALUES] }), "schema"), Ok(()));
    // An example of an answer is no schema, whatever it looks like.
    assert_eq!(check_schema(&json!({ "const": { "$ref": "#" } }), "schema"), Ok(()));
    assert_eq!(check_schema(&json!({ "$ref": "#/$defs/nothing" }), "schema"), Ok(()));
    assert_eq!(check_schema(&json!({ "$ref": "https://example.org/schema" }), "schema"), Ok(()));
    assert_eq!(check_schema(&json!(true), "schema"), Ok(()));
}

#[test]
fn too_many_properties_are_named_with_the_limit() {
    let error = check_schema(&object_of(6_000, &json!({})), "tools[3].function.parameters");
    assert_eq!(
        error.expect_err("over budget").to_string(),
        "tools[3].function.parameters has 6,000 properties in one object; the limit is 1,000"
    );
}

#[test]
fn a_reference_that_leads_to_itself_is_refused() {
    let expected = "schema has a '$ref' that leads to itself with no property or item in between";
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "anyOf": [{ "$ref": "#" }, { "type": "string" }] }),
        json!({ "allOf": [{ "oneOf": [{ "if": { "$ref": "#" } }] }] }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/properties/a" } } }),
        json!({ "$ref": "" }),
        json!({ "$ref": "#/%24defs/a", "$defs": { "a": { "anyOf": [{ "$ref": "#/%24defs/a" }] } } }),
        json!({ "dependencies": { "a": { "$ref": "#" } } }),
        json!({ "$id": "https://example.org/a", "not": { "$ref": "https://example.org/a" } }),
        json!({ "properties": { "a": { "$id": "Node", "not": { "$ref": "Node" } } } }),
        // Nothing leads to these definitions, but an engine may read them all the same.
        json!({ "type": "string", "$defs": { "a": { "$ref": "#/$defs/a" } } }),
    ] {
        assert_eq!(refusal(&schema), expected, "{schema}");
    }
}

#[test]
fn a_reference_that_cannot_be_followed_is_refused() {
    let in_data = json!({ "anyOf": [{ "$ref": "#/default/b" }] });
    for (schema, expected) in [
        (
            json!({ "$anchor": "a", "not": { "$ref": "#a" } }),
            "schema has a '$ref' to an '$anchor', which is not supported",
        ),
        (json!({ "not": { "$dynamicRef": "#" } }), "schema has a '$dynamicRef', which is not supported"),
        (json!({ "not": { "$recursiveRef": "#" } }), "schema has a '$recursiveRef', which is not supported"),
        (
            json!({ "not": { "$ref": "#/default/a" }, "default": { "a": in_data } }),
            "schema has a '$ref' to something that is not a schema",
        ),
        (
            json!({ "$defs": { "a": { "$id": "a", "items": { "$ref": "#" } } } }),
            "schema has a '$ref' within a part that has an '$id' of its own",
        ),
        (
            json!({ "$id": "https://example.org/a", "not": { "$ref": "a" } }),
            "schema has a '$ref' that depends on an '$id'; begin it with '#/'",
        ),
    ] {
        assert_eq!(refusal(&schema), expected);
    }
    // A schema of another name, and properties that are named like keywords.
    for schema in [
        json!({
            "properties": {
                "tree": { "$id": "T0", "properties": { "children": { "items": { "$ref": "T0" } } } },
            },
        }),
        json!({ "properties": { "$dynamicRef": { "type": "string" }, "$id": { "$ref": "#/$defs/a" } }, "$defs": { "a": {} } }),
        json!({ "$id": "https://example.org/a", "items": { "$ref": "#" } }),
        json!({ "default": { "$ref": "#nowhere", "$dynamicRef": "#" } }),
    ] {
        assert_eq!(check_schema(&schema, "schema"), Ok(()), "{schema}");
    }
}

#[test]
fn a_long_chain_of_references_is_refused() {
    for schema in [
        chain(900, |next| next),
        chain(900, |next| json!({ "type": "object", "properties": { "next": next } })),
        chain(900, |next| json!({ "type": "array", "items": next })),
    ] {
        let message = refusal(&schema);
        assert!(message.contains("levels deep when its '$ref's are followed; the limit is 512"), "{message}");
    }
    assert_eq!(check_schema(&chain(100, |next| json!({ "items": next })), "schema"), Ok(()));
}

#[test]
fn references_that_double_at_every_step_are_refused() {
    let message = refusal(&chain(48, |next| json!({ "anyOf": [next.clone(), next] })));
    assert!(message.contains("values when its '$ref's are replaced by what they name"), "{message}");
    let encoded = chain(48, |next| json!({ "anyOf": [next.clone(), next] })).to_string();
    let encoded: Value = serde_json::from_str(&encoded.replace("#/$defs/", "#/%24defs/")).expect("JSON");
    assert_eq!(refusal(&encoded), message, "with percent-encoding");
}

#[test]
fn a_schema_that_is_too_large_is_refused_by_what_is_too_large() {
    let mut nested = json!({ "type": "string" });
    for _ in 0..40 {
        nested = json!({ "type": "object", "properties": { "inner": nested } });
    }
    let many = object_of(900, &json!({ "anyOf": vec![json!({ "type": "string" }); 12] }));
    let long_name = Map::from_iter([("x".repeat(600), json!({}))]);
    for (schema, expected) in [
        (many, "schema has too many values; the limit is 20,000"),
        (nested, "schema is nested too deep; the limit is 64"),
        (json!({ "enum": vec![1; 3_000] }), "schema has 3,000 values in one 'enum'; the limit is 2,000"),
        (
            json!({ "enum": vec!["x".repeat(1_000); 300] }),
            "schema has too many bytes of 'enum' and 'const' values; the limit is 262,144",
        ),
        (json!({ "properties": long_name }), "schema has a name of 600 characters; the limit is 512"),
        (
            json!({ "pattern": "x".repeat(5_000) }),
            "schema has a 'pattern' of 5,000 characters; the limit is 4,096",
        ),
        (
            json!({ "$ref": format!("#/{}", "x".repeat(600)) }),
            "schema has a '$ref' of 602 characters; the limit is 512",
        ),
    ] {
        assert_eq!(refusal(&schema), expected);
    }
}

#[test]
fn a_schema_deeper_than_any_stack_is_refused_and_not_followed() {
    let mut schema = json!({});
    for _ in 0..100_000 {
        schema = Value::Array(vec![schema]);
    }
    assert_eq!(refusal(&schema), "schema is nested too deep; the limit is 64");
    // Dropping it would recurse as deep.
    std::mem::forget(schema);
}

#[test]
fn parts_within_parts_cost_time_in_proportion() {
    // Every level is named by a reference, and each contains all that lie below it.
    let mut inner = json!({ "enum": vec![1; 1_900] });
    let mut pointer = String::from("#");
    let mut references = Vec::new();
    for _ in 0..60 {
        inner = json!({ "items": inner });
        pointer.push_str("/items");
        references.push(json!({ "items": { "$ref": pointer } }));
    }
    let schema = json!({ "items": inner["items"], "prefixItems": references });
    assert_eq!(check_schema(&schema, "schema"), Ok(()));
}

fn asking() -> GenerateRequest {
    GenerateRequest { messages: vec![Message::new(Role::User, "hi")], ..GenerateRequest::default() }
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition { name: name.to_owned(), description: None, parameters: None, strict: None }
}

fn with_extra(extra: &Value) -> GenerateRequest {
    GenerateRequest { extra: extra.as_object().cloned().unwrap_or_default(), ..asking() }
}

#[test]
fn each_field_of_a_request_has_its_limit() {
    let sampling = |sampling: Sampling| GenerateRequest { sampling, ..asking() };
    let call = ToolCall { id: "c".into(), name: "f".into(), arguments: "{}".into() };
    let calling = |arguments: &str| Message {
        tool_calls: vec![ToolCall { id: "c".into(), name: "f".into(), arguments: arguments.into() }],
        ..Message::new(Role::Assistant, "")
    };
    let zeros = format!("[{}0]", "0,".repeat(60_000));
    let biases: Map<String, Value> = (0..5_000).map(|token| (token.to_string(), json!(1))).collect();
    let format =
        JsonSchema { name: "answer".into(), description: None, schema: json!({ "$ref": "#" }), strict: None };
    for (request, expected) in [
        (
            GenerateRequest { model: "m".repeat(600), ..asking() },
            "model has 600 characters; the limit is 512",
        ),
        (
            GenerateRequest { messages: vec![Message::new(Role::User, "hi"); 20_001], ..asking() },
            "messages has 20,001 messages; the limit is 20,000",
        ),
        (
            GenerateRequest {
                messages: vec![Message {
                    tool_calls: vec![call; 2_000],
                    ..Message::new(Role::Assistant, "")
                }],
                ..asking()
            },
            "messages[0].tool_calls has 2,000 calls; the limit is 1,024",
        ),
        (
            GenerateRequest { messages: vec![calling("[]"), calling(&zeros), calling(&zeros)], ..asking() },
            "messages[2].tool_calls[0].function.arguments has too many JSON values, together with the other calls; the limit is 100,000",
        ),
        (
            GenerateRequest { tools: vec![tool("f"); 1_025], ..asking() },
            "tools has 1,025 tools; the limit is 1,024",
        ),
        (
            GenerateRequest { tools: vec![tool("f"), tool(&"f".repeat(300))], ..asking() },
            "tools[1].function.name has 300 characters; the limit is 256",
        ),
        (
            GenerateRequest {
                tools: vec![ToolDefinition { parameters: Some(object_of(1_001, &json!({}))), ..tool("f") }],
                ..asking()
            },
            "tools[0].function.parameters has 1,001 properties in one object; the limit is 1,000",
        ),
        (
            GenerateRequest { response_format: ResponseFormat::JsonSchema(format), ..asking() },
            "response_format.json_schema.schema has a '$ref' that leads to itself with no property or item in between",
        ),
        (
            sampling(Sampling { stop: vec!["x".into(); 65], ..Sampling::default() }),
            "stop has 65 sequences; the limit is 64",
        ),
        (
            sampling(Sampling { stop: vec!["x".into(), "x".repeat(2_000)], ..Sampling::default() }),
            "stop[1] has 2,000 characters; the limit is 1,024",
        ),
        (
            sampling(Sampling { n: NonZeroU32::new(129), ..Sampling::default() }),
            "n asks for 129 answers; the limit is 128",
        ),
        (with_extra(&json!({ "logit_bias": biases })), "logit_bias has 5,000 entries; the limit is 4,096"),
        (
            with_extra(&json!({ "top_k": 4_611_686_018_427_387_904_u64 })),
            "top_k is 4611686018427387904; the limit is 2,147,483,647",
        ),
        (
            with_extra(&json!({ "small": [1], "future_field": vec![0; 20_000] })),
            "future_field has too many values, together with the other fields that Hob does not know; the limit is 20,000",
        ),
        (
            GenerateRequest {
                hints: Map::from_iter([("options".to_owned(), json!(vec![0; 12_000]))]),
                ..with_extra(&json!({ "future_field": vec![0; 12_000] }))
            },
            "future_field has too many values, together with the other fields that Hob does not know; the limit is 20,000",
        ),
    ] {
        assert_eq!(check_request(&request).expect_err("over budget").to_string(), expected);
    }
    assert_eq!(check_request(&asking()), Ok(()));
    let long = GenerateRequest { messages: vec![calling(&format!("[\"{zeros}\"]")); 5], ..asking() };
    assert_eq!(check_request(&long), Ok(()), "a long text is one value");
    let umlauts = GenerateRequest { model: "ü".repeat(MODEL_NAME_CHARS), ..asking() };
    assert_eq!(check_request(&umlauts), Ok(()), "characters count, not bytes");
    assert_eq!(check_request(&with_extra(&json!({ "top_k": -1, "logit_bias": {} }))), Ok(()));
}

fn any_schema() -> impl Strategy<Value = Value> {
    let reference = prop_oneof![
        Just("#".to_owned()),
        (0..4usize).prop_map(|at| format!("#/$defs/d{at}")),
        Just("#/properties/a/items".to_owned()),
        Just("#nothing".to_owned()),
    ];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        Just(json!({ "type": "string" })),
        reference.prop_map(|reference| json!({ "$ref": reference })),
    ];
    let schema = leaf.prop_recursive(5, 48, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| json!({ "type": "array", "items": inner })),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|inner| json!({ "anyOf": inner })),
            proptest::collection::vec(inner, 1..4).prop_map(|inner| {
                let properties: Map<String, Value> =
                    ["a", "b", "$ref", "enum"].map(str::to_owned).into_iter().zip(inner).collect();
                json!({ "type": "object", "properties": properties })
            }),
        ]
    });
    (schema.clone(), proptest::collection::vec(schema, 4)).prop_map(|(mut root, definitions)| {
        if let Some(root) = root.as_object_mut() {
            let named = definitions.into_iter().enumerate().map(|(at, schema)| (format!("d{at}"), schema));
            root.insert("$defs".to_owned(), named.collect::<Map<_, _>>().into());
        }
        root
    })
}

proptest! {
    /// Whatever refers to whatever, the check ends; and in a schema that it lets pass, following one `$ref` after another ends too.
    #[test]
    fn a_schema_within_the_budget_never_leads_to_itself(schema in any_schema()) {
        if check_schema(&schema, "schema").is_ok() {
            let mut at = &schema;
            for _ in 0..SCHEMA_FOLLOWED_DEPTH {
                let Some(next) = at.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#')) else { break };
                let Some(next) = schema.pointer(next) else { break };
                prop_assert!(!std::ptr::eq(next, at));
                at = next;
            }
            prop_assert!(at.get("$ref").is_none_or(|name| name == "#nothing" || schema.pointer(&name.as_str().unwrap_or("x")[1..]).is_none()));
        }
    }
}
