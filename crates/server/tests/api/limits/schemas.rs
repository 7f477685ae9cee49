//! JSON Schemas that would exhaust an engine's stack, memory or time. The server refuses them by their field.

use hob_config::ServerConfig;
use serde_json::{Map, Value, json};

use crate::client::asking;
use crate::fixtures::scripted;
use crate::support::TestServer;

/// Definitions that each refer to the next, and a schema that refers to the first.
fn chain(count: usize, link: impl Fn(Value) -> Value) -> Value {
    let next = |at: usize| json!({ "$ref": format!("#/$defs/d{}", at + 1) });
    let mut definitions: Map<String, Value> =
        (0..count).map(|at| (format!("d{at}"), link(next(at)))).collect();
    definitions.insert(format!("d{count}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/d0", "$defs": definitions })
}

fn hostile() -> Vec<(Value, &'static str)> {
    let optional: Map<String, Value> =
        (0..6_000).map(|at| (format!("p{at}"), json!({ "type": "string" }))).collect();
    let words: Vec<String> = (0..50_000).map(|at| at.to_string()).collect();
    let mut nested = json!({ "type": "string" });
    for _ in 0..50 {
        nested = json!({ "type": "array", "items": nested });
    }
    let mut deep = nested;
    for _ in 0..30 {
        deep = json!({ "type": "array", "items": deep });
    }
    vec![
        (json!({ "$ref": "#" }), "has a '$ref' that leads to itself"),
        (
            json!({ "anyOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "allOf": [{ "$ref": "#" }] } } }),
            "has a '$ref' that leads to itself",
        ),
        (
            json!({ "type": "object", "properties": optional }),
            "has 6,000 properties in one object; the limit is 1,000",
        ),
        (
            chain(900, |next| json!({ "type": "array", "items": next })),
            "levels deep when its '$ref's are followed",
        ),
        (
            chain(48, |next| json!({ "anyOf": [next.clone(), next] })),
            "has too many values when its '$ref's are",
        ),
        (json!({ "enum": words }), "has 50,000 values in one 'enum'; the limit is 2,000"),
        (deep, "is nested too deep; the limit is 64"),
        (
            json!({ "pattern": "(a?){".repeat(1_000) }),
            "has a 'pattern' of 5,000 characters; the limit is 4,096",
        ),
    ]
}

async fn refusal(server: &TestServer, body: &Value) -> (u16, String, String) {
    let response = server.chat(body).await;
    let (status, answer): (u16, Value) = (response.status().as_u16(), response.json().await.unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (status, text(&answer["error"]["param"]), text(&answer["detail"]))
}

#[tokio::test]
async fn a_schema_that_would_exhaust_an_engine_is_refused_by_its_field() {
    let server = scripted(ServerConfig::default()).await;
    for (schema, expected) in hostile() {
        let shown = schema.to_string().chars().take(80).collect::<String>();
        let good = json!({ "function": { "name": "f" } });
        for (fields, field) in [
            (
                json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": schema } } }),
                "response_format.json_schema.schema",
            ),
            (
                json!({ "tools": [good, { "function": { "name": "g", "parameters": schema } }] }),
                "tools[1].function.parameters",
            ),
            (json!({ "functions": [{ "name": "g", "parameters": schema }] }), "functions[0].parameters"),
        ] {
            let (status, param, detail) = refusal(&server, &asking(fields)).await;
            assert_eq!((status, param.as_str()), (400, field), "{shown}: {detail}");
            assert!(detail.starts_with(field) && detail.contains(expected), "{shown}: {detail}");
        }
    }
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);
}

#[tokio::test]
async fn excessive_values_are_refused_by_field() {
    let server = scripted(ServerConfig::default()).await;
    let biases: Map<String, Value> = (0..20_000).map(|token| (token.to_string(), json!(-100))).collect();
    let tools = vec![json!({ "function": { "name": "f" } }); 5_000];
    for (fields, field, limit) in [
        (json!({ "stop": vec!["x"; 90_000] }), "stop", "64"),
        (json!({ "stop": "x".repeat(100_000) }), "stop[0]", "1,024"),
        (json!({ "logit_bias": biases }), "logit_bias", ""),
        (json!({ "tools": tools }), "tools", "1,024"),
        (json!({ "top_k": 4_611_686_018_427_387_904_u64 }), "top_k", "2,147,483,647"),
        (json!({ "top_k": 1e300 }), "top_k", "2,147,483,647"),
        (json!({ "n": 1_000_000 }), "n", "128"),
        (json!({ "future_field": vec![0; 50_000] }), "future_field", "20,000"),
        (json!({ "model": "m".repeat(10_000) }), "model", "512"),
    ] {
        let (status, param, detail) = refusal(&server, &asking(fields)).await;
        assert_eq!((status, param.as_str()), (400, field), "{detail}");
        assert!(detail.contains(limit), "{detail}");
    }
}
