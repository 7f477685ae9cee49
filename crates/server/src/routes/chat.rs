//! `POST /v1/chat/completions`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hob_core::{GenerateRequest, ModelReason, Source, Warning};
use hob_system::{Answered, Caller, Permit, Streaming};

use crate::admission::Admitted;
use crate::body::{JsonBody, read_json};
use crate::error::ApiError;
use crate::room::{Place, SMALL};
use crate::router::App;
use crate::sse::{ChatChunks, ChatStream, push_json};
use crate::trace::trace_parent;
use crate::wire::request::{ChatRequest, Reply};
use crate::wire::response::Completion;

/// What an answer that is not quite what was asked for says of itself.
pub(super) const WARNING: HeaderName = HeaderName::from_static("x-hob-warning");
/// Why another model answers than one that the caller named.
const MODEL_REASON: HeaderName = HeaderName::from_static("x-hob-model-reason");
/// The key of the engine that answers.
const ENGINE: HeaderName = HeaderName::from_static("x-hob-engine");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let role = app.trust.role(request.extensions());
    let permit = Permit::up_to(role.reach());
    let trace_parent = trace_parent(request.headers());
    let JsonBody { bytes, place } = read_json(request, &app.bodies).await?;
    let ChatRequest { request, reply, agent } = parse(bytes).await?;
    let caller = Caller { role, permit, agent, trace_parent, ..Caller::trusted(Source::Server, completion_id()) };
    let admitted = app.admission.enter().await?;
    match reply {
        Reply::Whole => whole(&app, request, &caller).await,
        Reply::Streamed { include_usage } => {
            streamed(&app, request, &caller, include_usage, (admitted, place)).await
        }
    }
}

/// Reads a request; a large one, such as one with pictures in it, where it holds nobody else up.
async fn parse(body: Bytes) -> Result<ChatRequest, ApiError> {
    if body.len() <= SMALL {
        return ChatRequest::parse(&body);
    }
    match tokio::task::spawn_blocking(move || ChatRequest::parse(&body)).await {
        Ok(parsed) => parsed,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

async fn whole(app: &App, request: GenerateRequest, caller: &Caller) -> Result<Response, ApiError> {
    let Answered { engine, generation, reason, .. } = app.system.complete(request, caller).await?;
    // Room for all of it at once, which a body that grows by itself takes step by step.
    let mut body = Vec::with_capacity(512 + generation.answer.content.len());
    push_json(&mut body, &Completion::new(&caller.run, unix_now(), &generation));
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let response = (headers, body).into_response();
    Ok(with_engine(with_reason(with_warnings(response, &generation.warnings), reason.as_ref()), &engine))
}

async fn streamed(
    app: &App,
    request: GenerateRequest,
    caller: &Caller,
    include_usage: bool,
    held: (Admitted, Place),
) -> Result<Response, ApiError> {
    let Streaming { engine, model, reason, warnings, deltas } = app.system.stream(request, caller).await?;
    let chunks = ChatChunks::new(&caller.run, unix_now(), &model, include_usage);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONNECTION, HeaderValue::from_static("keep-alive")),
        // nginx would otherwise collect the events and deliver them in batches.
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    let response = (headers, Body::new(ChatStream::new(deltas, chunks, held))).into_response();
    Ok(with_engine(with_reason(with_warnings(response, &warnings), reason.as_ref()), &engine))
}

fn with_warnings(mut response: Response, warnings: &[Warning]) -> Response {
    for warning in warnings {
        if let Ok(value) = HeaderValue::try_from(warning.text().into_owned()) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

fn with_reason(mut response: Response, reason: Option<&ModelReason>) -> Response {
    // Names of models may have any character, a header may not.
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    if let Some(reason) = reason
        && let Ok(value) = HeaderValue::try_from(reason.as_str().chars().map(plain).collect::<String>())
    {
        response.headers_mut().insert(MODEL_REASON, value);
    }
    response
}

fn with_engine(mut response: Response, engine: &str) -> Response {
    if let Ok(key) = HeaderValue::try_from(engine) {
        response.headers_mut().insert(ENGINE, key);
    }
    response
}

fn completion_id() -> String {
    let mut id = String::with_capacity(33);
    id.push_str("chatcmpl-");
    let mut random = fastrand::Rng::new();
    id.extend(std::iter::repeat_with(|| random.alphanumeric()).take(24));
    id
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
