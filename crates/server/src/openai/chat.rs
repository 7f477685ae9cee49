//! `POST /v1/chat/completions`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_core::{Answered, Caller, CallerRole, GenerateRequest, ModelReason, Permit, RequestSource, Warning};
use hob_system::Streaming;

use crate::error::ApiError;
use crate::limits::body::{JsonBody, read_json, work_on};
use crate::openai::chat_request::{ChatRequest, Reply};
use crate::openai::chat_response::{CallForm, Completion};
use crate::openai::sse::{ChatChunks, ChatStream, Reader, push_json};
use crate::request_context::RequestContext;
use crate::router::App;
use crate::traceparent::trace_parent;

/// What an answer that is not quite what was asked for says of itself.
pub(crate) const WARNING: HeaderName = HeaderName::from_static("x-hob-warning");
/// Why another model answers than one that the caller named.
const MODEL_REASON: HeaderName = HeaderName::from_static("x-hob-model-reason");
/// The key of the engine that answers.
const ENGINE: HeaderName = HeaderName::from_static("x-hob-engine");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let role = app.trust.role(request.extensions());
    answer(&app, request, role).await.map_err(|error| error.for_caller(role))
}

async fn answer(app: &App, request: Request, role: CallerRole) -> Result<Response, ApiError> {
    let permit = Permit::up_to(role.reach());
    let trace_parent = trace_parent(request.headers());
    let request_id = RequestContext::request_id(request.extensions());
    let connection = RequestContext::connection(request.extensions());
    let JsonBody { bytes, place } = read_json(request, &app.bodies).await?;
    let ChatRequest { request, reply, agent, calls, warnings } =
        work_on(bytes, &app.blocking, ChatRequest::parse).await?;
    let run = completion_id();
    let caller = Caller {
        role,
        permit,
        agent,
        trace_parent,
        request_id,
        ..Caller::trusted(RequestSource::Server, run)
    };
    let admitted = app.admission.enter().await?;
    match reply {
        Reply::Whole => whole(app, request, &caller, Shape { calls, warnings, include_usage: true }).await,
        Reply::Streamed { include_usage } => {
            let reader = Reader { role, connection, held: (admitted, place) };
            streamed(app, request, &caller, Shape { calls, warnings, include_usage }, reader).await
        }
    }
}

/// What the request says of its answer.
struct Shape {
    calls: CallForm,
    /// What of the request has no effect.
    warnings: Vec<Warning>,
    include_usage: bool,
}

async fn whole(
    app: &App,
    request: GenerateRequest,
    caller: &Caller,
    shape: Shape,
) -> Result<Response, ApiError> {
    let Answered { engine, generation, reason, .. } = app.system.complete(request, caller).await?;
    // It may repeat an engine's own words.
    let reason = reason.filter(|_| caller.role.may_see_engine_details());
    // Room for all of it at once, which a body that grows by itself takes step by step.
    let mut body = Vec::with_capacity(512 + generation.answer.content.len());
    push_json(&mut body, &Completion::new(&caller.run, unix_now(), &generation, shape.calls));
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let response = (headers, body).into_response();
    let response = with_warnings(response, shape.warnings.iter().chain(&generation.warnings));
    Ok(with_engine(with_reason(response, reason.as_ref()), &engine))
}

async fn streamed(
    app: &App,
    request: GenerateRequest,
    caller: &Caller,
    shape: Shape,
    reader: Reader,
) -> Result<Response, ApiError> {
    let Streaming { engine, model, reason, warnings, deltas } = app.system.stream(request, caller).await?;
    let reason = reason.filter(|_| caller.role.may_see_engine_details());
    let chunks =
        ChatChunks::new(&caller.run, unix_now(), &model, shape.include_usage).with_calls(shape.calls);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONNECTION, HeaderValue::from_static("keep-alive")),
        // nginx would otherwise collect the events and deliver them in batches.
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    let response = (headers, Body::new(ChatStream::new(deltas, chunks, reader))).into_response();
    let response = with_warnings(response, shape.warnings.iter().chain(&warnings));
    Ok(with_engine(with_reason(response, reason.as_ref()), &engine))
}

/// So many warnings go with an answer, each with so many characters: some of them repeat names that the caller chose.
const MOST_WARNINGS: usize = 32;
const LONGEST_WARNING: usize = 128;

pub(super) fn with_warnings<'a>(
    mut response: Response,
    warnings: impl Iterator<Item = &'a Warning>,
) -> Response {
    for warning in warnings.take(MOST_WARNINGS) {
        let text: String = warning.text().chars().take(LONGEST_WARNING).map(plain).collect();
        if let Ok(value) = HeaderValue::try_from(text) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

/// Names may have any character, a header may not.
fn plain(c: char) -> char {
    if c.is_ascii_graphic() || c == ' ' { c } else { '?' }
}

fn with_reason(mut response: Response, reason: Option<&ModelReason>) -> Response {
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
