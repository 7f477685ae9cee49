//! The path of a request for an answer, the same for every API: read the body, take a slot, ask, and send the answer whole or as a
//! stream. An API adds how a request is read and how an answer is written. Knows no wire format.

mod headers;
mod keep_alive;
pub(crate) mod stream;
pub(crate) mod vectors;

pub(crate) use hob_core::random_id as new_id;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_app::AnswerStream;
use hob_core::{AnswerWarning, Answered, Caller, GenerateRequest, Generation, RequestSource};
use serde_json::{Map, Value};

use crate::connection::ConnectionState;
use crate::error::ApiResult;
use crate::limits::body_limit::BodyPermit;
use crate::limits::rate_headers::LIMITED_ANSWER_HEADERS;
use crate::limits::read_body::{JsonBody, process, read_form, read_json};
use crate::pages::changes::CallEndNotice;
use crate::request_context::RequestContext;
use crate::state::ServerState;
use crate::traceparent::trace_parent;
use crate::warning_header::with_warnings;
use headers::{ACCEL_BUFFERING, AnswerHeaders};
pub(crate) use keep_alive::MAX_SILENCE;
use stream::{AnswerBody, StreamClient, StreamEncoder};

/// A request that was read, and admitted.
pub(crate) struct Received<T> {
    pub(crate) parsed: T,
    pub(crate) caller: Caller,
    /// Keep it until the answer is sent: it holds the slot of the request and the memory of its body.
    pub(crate) client: StreamClient,
}

/// Reads a request and waits for a slot. `run` is the id of the answer.
pub(crate) async fn receive<T: Send + 'static>(
    state: &ServerState,
    request: Request,
    run: String,
    parse: impl FnOnce(&[u8]) -> ApiResult<T> + Send + 'static,
) -> ApiResult<Received<T>> {
    let arrived = Arrived::read(&request, run);
    let body = read_json(request, &state.body_reader).await?;
    arrived.admit(state, body, parse).await
}

/// The same for a form with a file in it. `parse` also gets its content type.
pub(crate) async fn receive_form<T: Send + 'static>(
    state: &ServerState,
    request: Request,
    run: String,
    parse: impl FnOnce(&str, &[u8]) -> ApiResult<T> + Send + 'static,
) -> ApiResult<Received<T>> {
    let arrived = Arrived::read(&request, run);
    let (content_type, body) = read_form(request, &state.body_reader).await?;
    arrived.admit(state, body, move |bytes| parse(&content_type, bytes)).await
}

/// The paths that answer with a model, as the records of calls name them.
const ANSWER_ROUTES: [&str; 17] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/audio/speech",
    "/v1/images/generations",
    "/v1/images/edits",
    "/v1/rerank",
    "/v2/rerank",
    "/rerank",
    "/v1/responses",
    "/v1/messages",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/api/embeddings",
];

/// What the head of a request says.
struct Arrived {
    caller: Caller,
    connection: Arc<ConnectionState>,
}

impl Arrived {
    fn read(request: &Request, run: String) -> Self {
        let role = RequestContext::role(request.extensions());
        let caller = Caller {
            role,
            permit: RequestContext::permit(request.extensions()),
            tally: RequestContext::of(request.extensions()).and_then(|context| context.tally.clone()),
            trace_parent: trace_parent(request.headers()),
            request_id: RequestContext::request_id(request.extensions()),
            route: ANSWER_ROUTES.iter().find(|route| **route == request.uri().path()).copied(),
            ..Caller::trusted(RequestSource::Server, run)
        };
        let caller = match RequestContext::key(request.extensions()) {
            Some(key) => caller.under_key(Arc::clone(&key.grant)),
            None => caller,
        };
        Arrived { caller, connection: RequestContext::connection(request.extensions()) }
    }

    async fn admit<T: Send + 'static>(
        self,
        state: &ServerState,
        body: JsonBody,
        parse: impl FnOnce(&[u8]) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<Received<T>> {
        let Arrived { mut caller, connection } = self;
        let JsonBody { bytes, permit: body_permit } = body;
        let parsed = process(bytes, &state.blocking, parse).await?;
        let (admitted, queued) = match state.concurrency_limit.try_acquire() {
            Some(admitted) => (admitted, Duration::ZERO),
            None => {
                let arrived = Instant::now();
                (state.concurrency_limit.acquire().await?, arrived.elapsed())
            }
        };
        caller.queued = Some(queued);
        let end = CallEndNotice::of_member(&state.changes, &caller);
        let held = (admitted, body_permit, end);
        let client = StreamClient { role: caller.role, connection, held, stored: BodyPermit::default() };
        Ok(Received { parsed, caller, client })
    }
}

/// The user whom the client names: `user`, `safety_identifier`, or Anthropic's `metadata.user_id`.
pub(crate) fn user_of(request: &GenerateRequest) -> Option<Arc<str>> {
    let of_anthropic = || request.anthropic.get("metadata")?.get("user_id")?.as_str();
    user_in(&request.extra).or_else(|| of_anthropic().map(Arc::from))
}

/// The same for the fields of an API of OpenAI.
pub(crate) fn user_in(fields: &Map<String, Value>) -> Option<Arc<str>> {
    let named = ["user", "safety_identifier"].iter().find_map(|field| fields.get(*field)?.as_str());
    named.map(Arc::from)
}

/// Asks for a whole answer.
pub(crate) async fn complete(
    state: &ServerState,
    request: GenerateRequest,
    caller: &Caller,
) -> ApiResult<Answered> {
    Ok(match user_of(&request) {
        None => state.system.complete(request, caller).await?,
        end_user => state.system.complete(request, &Caller { end_user, ..caller.clone() }).await?,
    })
}

/// Asks for a whole answer and sends it. `render` writes the body; `warnings` are about the request.
pub(crate) async fn whole(
    state: &ServerState,
    request: GenerateRequest,
    caller: &Caller,
    warnings: &[AnswerWarning],
    render: impl FnOnce(&Generation, &mut Vec<u8>),
) -> ApiResult<Response> {
    let answered = complete(state, request, caller).await?;
    Ok(send_whole(&answered, caller, warnings, render))
}

/// Sends a whole answer.
pub(crate) fn send_whole(
    answered: &Answered,
    caller: &Caller,
    warnings: &[AnswerWarning],
    render: impl FnOnce(&Generation, &mut Vec<u8>),
) -> Response {
    // Allocated once; a growing buffer is copied several times.
    let mut body = Vec::with_capacity(512 + answered.generation.answer.content.len());
    render(&answered.generation, &mut body);
    whole_response(body, answered, caller, warnings)
}

/// The response with the body of a whole answer.
pub(crate) fn whole_response(
    body: Vec<u8>,
    answered: &Answered,
    caller: &Caller,
    warnings: &[AnswerWarning],
) -> Response {
    let Answered { engine, generation, reason, .. } = answered;
    let mut response = Response::new(Body::from(body));
    if caller.has_limits() {
        // Once for all headers: a map that grows is copied.
        response.headers_mut().reserve(LIMITED_ANSWER_HEADERS);
    }
    let response = of_json(response);
    let headers = AnswerHeaders { engine, reason: reason.as_ref(), role: caller.role };
    headers.add_to(response, warnings.iter().chain(&generation.warnings))
}

/// A response whose body is JSON already.
pub(crate) fn json_response(body: impl Into<Body>) -> Response {
    of_json(Response::new(body.into()))
}

fn of_json(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Asks for a streamed answer.
pub(crate) async fn streamed<E: StreamEncoder>(
    state: &ServerState,
    request: GenerateRequest,
    caller: Caller,
    warnings: &[AnswerWarning],
    client: StreamClient,
    encoder: E,
) -> ApiResult<Response> {
    let caller = Caller { end_user: user_of(&request), ..caller };
    let system = Arc::clone(&state.system);
    let answer = async move { Ok(system.stream(request, &caller).await?) };
    send_stream(answer, warnings, client, encoder, Body::new).await
}

/// Sends a streamed answer, in the body that `wrap` makes.
///
/// The head of the response waits for the first piece, so that a failure before it has its HTTP status. If that takes too long, the head
/// is sent without it: then a failure is an error in the stream, and what headers would say is a comment.
pub(crate) async fn send_stream<E: StreamEncoder>(
    answer: impl Future<Output = ApiResult<AnswerStream>> + Send + 'static,
    warnings: &[AnswerWarning],
    client: StreamClient,
    mut encoder: E,
    wrap: impl FnOnce(AnswerBody<E>) -> Body,
) -> ApiResult<Response> {
    let role = client.role;
    let mut answer = Box::pin(answer);
    let Ok(begun) = tokio::time::timeout(MAX_SILENCE, &mut answer).await else {
        let body = wrap(AnswerBody::pending(answer, encoder, client));
        return Ok(with_warnings(streaming::<E>(body), warnings.iter()));
    };
    let AnswerStream { engine, model, reason, warnings: of_answer, sources, deltas, .. } = match begun {
        Err(error) if encoder.sends_in_stream(&error) => {
            let body = wrap(AnswerBody::failed(error, encoder, client));
            return Ok(with_warnings(streaming::<E>(body), warnings.iter()));
        }
        begun => begun?,
    };
    encoder.answered_by(&model);
    encoder.take_sources(sources);
    let response = streaming::<E>(wrap(AnswerBody::new(deltas, encoder, client)));
    let headers = AnswerHeaders { engine: &engine, reason: reason.as_ref(), role };
    Ok(headers.add_to(response, warnings.iter().chain(&of_answer)))
}

/// A response whose body comes in pieces, in the wire format of `E`.
pub(crate) fn streaming<E: StreamEncoder>(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(E::CONTENT_TYPE)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONNECTION, HeaderValue::from_static("keep-alive")),
        // Otherwise nginx buffers the events.
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    (headers, body).into_response()
}

/// A response with the name of the engine that gave it, and warnings.
pub(crate) fn with_engine(
    response: Response,
    engine: &str,
    caller: &Caller,
    warnings: &[AnswerWarning],
) -> Response {
    AnswerHeaders { engine, reason: None, role: caller.role }.add_to(response, warnings.iter())
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
