//! Random values of a JSON Schema, and values that hardly any schema expects.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

/// A field that no schema lists.
pub const UNLISTED: &str = "x_future";

/// A value that hardly any field expects.
pub fn odd_value() -> impl Strategy<Value = Value> {
    let mut deep = json!(0);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!(" "),
        json!("x".repeat(2_000)),
        json!("\u{0}\u{1F600}"),
        json!([]),
        json!({}),
        json!([null]),
        json!({ "$ref": "#" }),
        json!({ "type": "function", "role": "function", "name": "f" }),
        json!(vec![0; 3_000]),
        deep,
    ])
}

/// Values of a schema.
pub fn values(document: &Value, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#')) {
        return values(document, document.pointer(name).unwrap(), depth);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let choices = choices.iter().map(|choice| values(document, choice, depth));
        return prop::strategy::Union::new(choices).boxed();
    }
    if let Some(choices) = schema["enum"].as_array() {
        return prop::sample::select(choices.clone()).boxed();
    }
    if let Some(only) = schema.get("const") {
        return Just(only.clone()).boxed();
    }
    match &schema["type"] {
        Value::String(name) => of_type(document, schema, name, depth),
        Value::Array(names) => {
            let types = names.iter().map(|name| of_type(document, schema, name.as_str().unwrap(), depth));
            prop::strategy::Union::new(types).boxed()
        }
        _ => any_value().boxed(),
    }
}

fn of_type(document: &Value, schema: &Value, name: &str, depth: u32) -> BoxedStrategy<Value> {
    match name {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "string" => strings(schema),
        "integer" => integers(schema),
        "number" => {
            let least = schema["minimum"].as_f64().unwrap_or(-1e9);
            let most = schema["maximum"].as_f64().unwrap_or(1e9);
            prop_oneof![Just(least), Just(most), least..=most].prop_map(Value::from).boxed()
        }
        "array" => {
            let least = bound(schema, "minItems", 0);
            let most = bound(schema, "maxItems", usize::MAX).min(least + 3);
            let items = values(document, &schema["items"], depth + 1);
            prop::collection::vec(items, least..=most).prop_map(Value::from).boxed()
        }
        "object" => objects(document, schema, depth),
        other => panic!("the document has the type {other}"),
    }
}

fn bound(schema: &Value, name: &str, usual: usize) -> usize {
    schema[name].as_u64().map_or(usual, |bound| usize::try_from(bound).unwrap())
}

fn strings(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(examples) = schema["examples"].as_array() {
        return prop::sample::select(examples.clone()).boxed();
    }
    let text = match schema["pattern"].as_str() {
        None => any::<String>().boxed(),
        Some("\\S") => "[a-zü]\\PC{0,12}".boxed(),
        Some(other) => panic!("the document has the pattern {other} and no examples"),
    };
    let least = bound(schema, "minLength", 0);
    let most = bound(schema, "maxLength", 200);
    let fitted = move |text: String| {
        let missing = least.saturating_sub(text.chars().count());
        text.chars().chain("x".repeat(missing).chars()).take(most).collect::<String>()
    };
    let longest = most.min(2_000);
    prop_oneof![8 => text.prop_map(fitted), 1 => Just("ü".repeat(longest))].prop_map(Value::from).boxed()
}

/// Whole numbers, some of them written with a fraction of zero.
fn integers(schema: &Value) -> BoxedStrategy<Value> {
    let least = schema["minimum"].as_i64().unwrap_or(-1_000_000);
    let most = schema["maximum"].as_i64().unwrap_or(1_000_000);
    let numbers =
        prop_oneof![Just(least), Just(most), least..=most, least..=least.saturating_add(9).min(most)];
    (numbers, any::<bool>())
        .prop_map(|(number, as_float)| match Number::from_f64(number as f64) {
            Some(float) if as_float && number.unsigned_abs() < 1 << 53 => Value::Number(float),
            _ => Value::from(number),
        })
        .boxed()
}

fn objects(document: &Value, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
    let Some(properties) = schema["properties"].as_object() else {
        let least = bound(schema, "minProperties", 0);
        let inner = match &schema["additionalProperties"] {
            inner @ Value::Object(_) => values(document, inner, depth + 1),
            _ => any_value().boxed(),
        };
        let names = prop::sample::select(vec!["type", "properties", "a", "b", "7", "url", "$ref"]);
        let fields = prop::collection::btree_map(names, inner, least..=least + 3);
        return fields
            .prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
            })
            .boxed();
    };
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    // At depth, most optional fields are omitted.
    let share = if depth == 0 { 0.3 } else { 0.15 };
    let mut fields: Vec<BoxedStrategy<Option<(String, Value)>>> = Vec::new();
    for (name, schema) in properties {
        let (named, value) = (name.clone(), values(document, schema, depth + 1));
        let field = value.prop_map(move |value| (named.clone(), value));
        fields.push(match required.iter().any(|required| required == name.as_str()) {
            true => field.prop_map(Some).boxed(),
            false => prop::option::weighted(share, field).boxed(),
        });
    }
    fields.push(
        prop::option::weighted(0.1, any_value().prop_map(|value| (UNLISTED.to_owned(), value))).boxed(),
    );
    fields.prop_map(|fields| fields.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
}

/// Any small value.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["", "string", "object", "#", "data:,x"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let names = prop::sample::select(vec!["type", "$ref", "properties", "x"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..3).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}
