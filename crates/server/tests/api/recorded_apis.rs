//! Hob's answers beside those of engines that have the same API themselves: a client finds the same fields in both.

use std::sync::Arc;

use hob_testkit::{ScriptedEngine, Transcript};
use serde_json::Value;

use crate::support::TestServer;

/// What engines have beyond the documented fields, or what is optional and empty.
const OWN: [&str; 10] = [
    "ec_transfer_params",
    "frequency_penalty",
    "input_messages",
    "kv_transfer_params",
    "max_tool_calls",
    "output_messages",
    "phase",
    "presence_penalty",
    "prompt",
    "tool_output_tokens",
];

/// The places where `ours` lacks something, or has another kind of value.
fn differences(theirs: &Value, ours: &Value, path: &str, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, value) in theirs.iter().filter(|(name, _)| !OWN.contains(&name.as_str())) {
                let path = format!("{path}.{name}");
                match ours.get(name) {
                    Some(ours) => differences(value, ours, &path, found),
                    None if name.ends_with("_per_turn") => {}
                    None => found.push(path),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            for (theirs, ours) in theirs.iter().zip(ours) {
                differences(theirs, ours, &format!("{path}[]"), found);
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (theirs, ours) if std::mem::discriminant(theirs) == std::mem::discriminant(ours) => {}
        _ => found.push(path.to_owned()),
    }
}

#[tokio::test]
async fn an_answer_has_the_fields_that_engines_with_the_same_api_send() {
    let engine = ScriptedEngine::saying(&["The capital of France is Paris."]).with_models(&["smollm2"]);
    let server = TestServer::start(Arc::new(engine)).await;
    for engine in ["llama-server", "vllm", "sglang"] {
        for api in ["responses", "anthropic_messages"] {
            let recorded = Transcript::load(&format!("{engine}/{api}"));
            let request: Value = serde_json::from_str(&recorded.request_body).unwrap();
            let theirs: Value = serde_json::from_str(&recorded.body).unwrap();
            let answer = server.client.post(server.url(&recorded.path)).json(&request).send().await.unwrap();
            assert_eq!(answer.status(), 200);
            let mut found = Vec::new();
            differences(&theirs, &answer.json().await.unwrap(), "", &mut found);
            assert_eq!(found, Vec::<String>::new(), "{engine} {api}");
        }
    }
}
