//! A client that disconnects cancels the work of the embedded engine, on every path. The test counts tokens that went
//! through a real model, not time.

use std::sync::Arc;
use std::time::Duration;

use hob_core::Engine;
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_testkit::part;
use serde_json::{Value, json};

use crate::client::asking;
use crate::fixtures::{loopback_config, parts};
use crate::support::TestServer;

/// What the engine may still compute until it notices the disconnect: a few steps. An engine that did not notice
/// would compute at least twice as much during the next answer.
const FEW_STEPS: u64 = 512;

/// A question that takes far longer to process than a disconnect, with a unique beginning.
fn long_question(number: usize, fields: Value) -> Value {
    let content = format!("{number} {}", "word ".repeat(6_000));
    let mut body = asking(fields);
    body["messages"] = json!([{ "role": "user", "content": content }]);
    body["max_tokens"] = 16.into();
    body
}

/// Tokens that the model processes for other requests while it generates an answer of sixteen tokens.
async fn computed_beside(server: &TestServer, engine: &LlamaEngine) -> u64 {
    let before = engine.computed_tokens();
    let body = asking(json!({ "agent": "none", "max_tokens": 16, "ignore_eos": true }));
    let answer: Value = server.chat(&body).await.error_for_status().unwrap().json().await.unwrap();
    let usage = |path: &str| answer["usage"].pointer(path).and_then(Value::as_u64).unwrap();
    let read = usage("/prompt_tokens") - usage("/prompt_tokens_details/cached_tokens");
    // The last token is returned, and nothing is computed from it.
    engine.computed_tokens() - before - (read + usage("/completion_tokens") - 1)
}

#[tokio::test]
async fn a_disconnect_cancels_the_embedded_engine_on_every_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = part("HOB_TEST_MODEL");
    std::fs::hard_link(&file, dir.path().join("m.gguf"))
        .or_else(|_| std::fs::copy(&file, dir.path().join("m.gguf")).map(drop))
        .unwrap();
    let engine = Arc::new(LlamaEngine::new(LlamaOptions { threads: 1, ..LlamaOptions::new(dir.path()) }));
    let served = Arc::clone(&engine) as Arc<dyn Engine>;
    let server = TestServer::start_system(parts(served), loopback_config()).await;
    let ways = [
        json!({ "agent": "none" }),
        json!({ "agent": "none", "stream": true }),
        json!({ "agent": "simple" }),
        json!({ "agent": "orchestrator" }),
        json!({ "agent": "orchestrator", "stream": true }),
        json!({ "agent": "orchestrator", "stream": true, "tool_choice": "required" }),
        json!({ "agent": "react" }),
        json!({ "agent": "react", "stream": true }),
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let before = engine.computed_tokens();
        let at_work = async {
            while engine.computed_tokens() == before {
                // The model needs the processor more than this loop.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let body = long_question(number, way.clone());
        tokio::select! {
            response = server.chat(&body) => panic!("{way}: {:?}", response.text().await),
            () = at_work => {}
        }
        let beside = computed_beside(&server, &engine).await;
        assert!(beside <= FEW_STEPS, "{way}: {beside} tokens after the disconnect");
    }
}
