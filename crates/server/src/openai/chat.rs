//! `POST /v1/chat/completions`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_app::AnswerStream;
use hob_core::{
    AnswerWarning, Answered, Caller, CallerRole, GenerateRequest, ModelReason, Permit, RequestSource,
};

use super::chat_request::{ChatRequest, ResponseMode};
use super::chat_response::{CallForm, Completion};
use super::sse::{ChatChunks, ChatStream, StreamClient};
use crate::error::ApiError;
use crate::json::push_json;
use crate::limits::body::{JsonBody, process, read_json};
use crate::request_context::RequestContext;
use crate::state::ServerState;
use crate::traceparent::trace_parent;
use crate::warning_header::{header_char, with_warnings};

/// Why a model was chosen that the caller did not name.
const MODEL_REASON: HeaderName = HeaderName::from_static("x-hob-model-reason");
/// The name of the engine that answers.
const ENGINE: HeaderName = HeaderName::from_static("x-hob-engine");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) async fn create(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<Response, ApiError> {
    let role = RequestContext::role(request.extensions());
    answer(&state, request, role).await.map_err(|error| error.for_caller(role))
}

async fn answer(state: &ServerState, request: Request, role: CallerRole) -> Result<Response, ApiError> {
    let permit = Permit::up_to(role.reach());
    let trace_parent = trace_parent(request.headers());
    let request_id = RequestContext::request_id(request.extensions());
    let connection = RequestContext::connection(request.extensions());
    let JsonBody { bytes, permit: body_permit } = read_json(request, &state.body_reader).await?;
    let ChatRequest { request, mode, agent, calls, warnings } =
        process(bytes, &state.blocking, ChatRequest::parse).await?;
    let run = completion_id();
    let caller = Caller {
        role,
        permit,
        agent,
        trace_parent,
        request_id,
        ..Caller::trusted(RequestSource::Server, run)
    };
    let admitted = state.concurrency_limit.acquire().await?;
    match mode {
        ResponseMode::Whole => {
            whole(state, request, &caller, AnswerOptions { calls, warnings, include_usage: true }).await
        }
        ResponseMode::Streamed { include_usage } => {
            let client = StreamClient { role, connection, held: (admitted, body_permit) };
            streamed(state, request, &caller, AnswerOptions { calls, warnings, include_usage }, client).await
        }
    }
}

/// What the request asks of its answer.
struct AnswerOptions {
    calls: CallForm,
    /// Fields of the request that have no effect.
    warnings: Vec<AnswerWarning>,
    include_usage: bool,
}

async fn whole(
    state: &ServerState,
    request: GenerateRequest,
    caller: &Caller,
    options: AnswerOptions,
) -> Result<Response, ApiError> {
    let Answered { engine, generation, reason, .. } = state.system.complete(request, caller).await?;
    // The reason can contain words of an engine.
    let reason = reason.filter(|_| caller.role.may_see_engine_details());
    // Allocated once; a growing buffer is copied several times.
    let mut body = Vec::with_capacity(512 + generation.answer.content.len());
    push_json(&mut body, &Completion::new(&caller.run, unix_now(), &generation, options.calls));
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let response = (headers, body).into_response();
    let response = with_warnings(response, options.warnings.iter().chain(&generation.warnings));
    Ok(with_engine(with_reason(response, reason.as_ref()), &engine))
}

async fn streamed(
    state: &ServerState,
    request: GenerateRequest,
    caller: &Caller,
    options: AnswerOptions,
    client: StreamClient,
) -> Result<Response, ApiError> {
    let AnswerStream { engine, model, reason, warnings, deltas } =
        state.system.stream(request, caller).await?;
    let reason = reason.filter(|_| caller.role.may_see_engine_details());
    let chunks =
        ChatChunks::new(&caller.run, unix_now(), &model, options.include_usage).with_calls(options.calls);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONNECTION, HeaderValue::from_static("keep-alive")),
        // Otherwise nginx buffers the events.
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    let response = (headers, Body::new(ChatStream::new(deltas, chunks, client))).into_response();
    let response = with_warnings(response, options.warnings.iter().chain(&warnings));
    Ok(with_engine(with_reason(response, reason.as_ref()), &engine))
}

fn with_reason(mut response: Response, reason: Option<&ModelReason>) -> Response {
    if let Some(reason) = reason
        && let Ok(value) = HeaderValue::try_from(reason.as_str().chars().map(header_char).collect::<String>())
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
