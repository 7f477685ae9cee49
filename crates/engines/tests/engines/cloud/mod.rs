//! The cloud engine over real sockets, against servers that answer as the providers document it.

mod anthropic;
mod gemini;
mod openai;
mod providers;

use std::time::Duration;

use futures::StreamExt;
use hob_core::{Delta, Engine, EngineError, GenerateRequest, Message, Role, ToolCall, ToolCallDelta};
use hob_engines::{Cloud, CloudOptions, Provider};
use hob_testkit::{FakeServer, Reply};
use serde_json::Value;

/// All three providers at one address, each with its own key.
fn options(url: &str) -> CloudOptions {
    let provider = |host: String, key: &str| Provider { host, key: Some(key.to_owned().into()) };
    CloudOptions {
        openai: provider(format!("{url}/v1"), "openai-key"),
        anthropic: provider(url.to_owned(), "anthropic-key"),
        gemini: provider(url.to_owned(), "gemini-key"),
        timeout: Duration::from_secs(20),
    }
}

fn cloud(server: &FakeServer) -> Cloud {
    Cloud::new(options(&server.url())).unwrap()
}

fn hi(model: &str) -> GenerateRequest {
    GenerateRequest {
        model: model.to_owned(),
        messages: vec![Message::new(Role::User, "hi")],
        ..GenerateRequest::default()
    }
}

/// The deltas of an answer until it ends or breaks.
async fn pieces(cloud: &Cloud, request: &GenerateRequest) -> (Vec<Delta>, Option<EngineError>) {
    let mut stream = cloud.stream(request).await.unwrap().deltas;
    let mut deltas = Vec::new();
    while let Some(delta) = stream.next().await {
        match delta {
            Ok(delta) => deltas.push(delta),
            Err(error) => return (deltas, Some(error)),
        }
    }
    (deltas, None)
}

/// The error when a provider answers `reply`, and the seconds to wait before a retry.
async fn failure(model: &str, reply: Reply) -> (String, Option<u64>) {
    let server = FakeServer::replying(reply).await;
    let error = cloud(&server).generate(&hi(model)).await.unwrap_err();
    let wait = match &error {
        EngineError::Refused { retry_after, .. } => *retry_after,
        _ => None,
    };
    (error.to_string(), wait)
}

fn sent(server: &FakeServer) -> Value {
    let requests = server.requests();
    serde_json::from_slice(&requests.last().expect("a request").body).unwrap()
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn call_piece(index: u32, id: Option<&str>, name: Option<&str>, arguments: &str) -> Delta {
    Delta::ToolCall(ToolCallDelta {
        choice: 0,
        index,
        id: id.map(str::to_owned),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    })
}
