//! Spans in the JSON form of OTLP. Pure.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::span::{AttributeValue, FinishedSpan};

const ERROR: u8 = 2;

pub(super) fn body(spans: &[FinishedSpan]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [("service.name", "hob"), ("service.version", version)]
        .map(|(key, text)| attribute(key, &AttributeValue::from(text)));
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": { "name": "hob", "version": version }, "spans": spans }],
        }],
    })
    .to_string()
    .into_bytes()
}

/// Ids are hexadecimal and large numbers are text, as OTLP requires.
fn span(finished: &FinishedSpan) -> Value {
    let began = finished.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let attributes: Vec<Value> = finished.attributes.iter().map(|(key, fact)| attribute(key, fact)).collect();
    let mut span = json!({
        "traceId": format!("{:032x}", finished.trace_parent.trace),
        "spanId": format!("{:016x}", finished.trace_parent.span),
        "name": finished.name,
        "kind": finished.kind as u8,
        "startTimeUnixNano": began.as_nanos().to_string(),
        "endTimeUnixNano": (began + finished.took).as_nanos().to_string(),
        "attributes": attributes,
        "status": {},
    });
    if let Some(parent) = finished.parent {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    if finished.failed {
        span["status"] = json!({ "code": ERROR });
    }
    span
}

fn attribute(key: &str, fact: &AttributeValue) -> Value {
    json!({ "key": key, "value": value(fact) })
}

fn value(fact: &AttributeValue) -> Value {
    match fact {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        AttributeValue::Number(number) => json!({ "intValue": number.to_string() }),
        AttributeValue::Texts(texts) => {
            let values: Vec<Value> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}
