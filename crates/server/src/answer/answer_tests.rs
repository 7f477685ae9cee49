use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use axum::extract::State;
use axum::http::StatusCode;
use futures::future::BoxFuture;
use hob_app::{AskService, AskServiceParts};
use hob_config::ServerConfig;
use hob_core::EventBus;
use hob_telemetry::NoInferenceLog;
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::*;
use crate::blocking_pool::MAX_THREADS;
use crate::limits::body_limit::SMALL_BODY;
use crate::openai::{chat, completions, embeddings};
use crate::responses::BackgroundRuns;
use crate::shutdown::ServerStop;
use crate::state::ServerParts;

type Handler = fn(Arc<ServerState>, Request) -> BoxFuture<'static, ApiResult<Response>>;

/// A request with a text of any length.
type RequestBody = fn(&str) -> Value;

fn state() -> Arc<ServerState> {
    let system = AskService::new(AskServiceParts {
        engine: Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["m"])),
        default_model: None,
        agent: None,
        tools: hob_agents::ToolSet::default(),
        max_turns: 1,
        bus: EventBus::new(),
        log: Arc::new(NoInferenceLog),
    });
    let background = Arc::new(BackgroundRuns::new());
    let parts = ServerParts::from(Arc::new(system));
    Arc::new(ServerState::new(parts, &ServerConfig::default(), None, ServerStop::default(), background))
}

fn request(body: &Value) -> Request {
    let request = Request::post("/").header(header::CONTENT_TYPE, "application/json");
    request.body(Body::from(body.to_string())).unwrap()
}

/// Occupies every thread of the pool until the returned senders are dropped.
async fn occupied(state: &Arc<ServerState>) -> Vec<mpsc::Sender<()>> {
    let started = Arc::new(AtomicUsize::new(0));
    let mut holds = Vec::new();
    for _ in 0..MAX_THREADS {
        let (hold, released) = mpsc::channel::<()>();
        let (state, started) = (Arc::clone(state), Arc::clone(&started));
        tokio::spawn(async move {
            let job = move || {
                started.fetch_add(1, Ordering::SeqCst);
                let _ = released.recv();
            };
            state.blocking.run(job).await;
        });
        holds.push(hold);
    }
    while started.load(Ordering::SeqCst) < MAX_THREADS {
        tokio::task::yield_now().await;
    }
    holds
}

#[tokio::test]
async fn a_large_body_is_parsed_in_the_pool_and_delays_no_other_request_of_the_thread() {
    let handlers: [(&str, Handler, RequestBody); 3] = [
        (
            "chat",
            |state, request| Box::pin(chat::create(State(state), request)),
            |text| json!({ "model": "m", "messages": [{ "role": "user", "content": text }] }),
        ),
        (
            "completions",
            |state, request| Box::pin(completions::create(State(state), request)),
            |text| json!({ "model": "m", "prompt": text }),
        ),
        (
            "embeddings",
            |state, request| Box::pin(embeddings::create(State(state), request)),
            |text| json!({ "model": "m", "input": text }),
        ),
    ];
    for (api, handle, body) in handlers {
        let state = state();
        let holds = occupied(&state).await;
        let mut large = pin!(handle(Arc::clone(&state), request(&body(&"x ".repeat(SMALL_BODY)))));
        assert!(futures::poll!(&mut large).is_pending(), "{api}: the body is parsed on this thread");
        let small = handle(Arc::clone(&state), request(&body("x"))).await.unwrap();
        assert_eq!(small.status(), StatusCode::OK, "{api}");
        assert!(futures::poll!(&mut large).is_pending(), "{api}: the body is parsed on this thread");
        drop(holds);
        assert_eq!(large.await.unwrap().status(), StatusCode::OK, "{api}");
    }
}
