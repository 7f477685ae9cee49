//! Serves one connection: its requests one after the other, with limits for a client that sends or reads too slowly.

mod half_close;

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Version, header};
use axum::response::{IntoResponse, Response};
use hob_core::LogScope;
use hob_net::ServerCertificate;
use hob_net::tcp::{TcpStream, UnregisteredStream};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio_io_timeout::TimeoutStream;

use self::half_close::{ClientSocket, LastBody};
use crate::caller_role::{Proof, RequestOrigin};
use crate::error::{ApiError, ErrorFormat};
use crate::pipeline::Pipeline;
use crate::poll_gate::PollGate;
use crate::reload::ConnectionTimeouts;
use crate::request_context::RequestContext;
use crate::request_id::{ANTHROPIC_REQUEST_ID, ANTHROPIC_VERSION, REQUEST_ID, RequestId};
use crate::secure_connection::{ClientStream, secure};
use crate::shutdown::StopSignals;

pub(crate) use self::half_close::ConnectionState;

/// How long a connection that is cut has for its last error event.
const ERROR_EVENT_TIME: Duration = Duration::from_secs(1);

/// Sent with every answer.
const SERVER_HEADER: HeaderValue = HeaderValue::from_static(concat!("hob/", env!("CARGO_PKG_VERSION")));

/// What all connections share.
pub(crate) struct ConnectionParts {
    pub(crate) pipeline: Pipeline,
    pub(crate) timeouts: Arc<ArcSwap<ConnectionTimeouts>>,
    /// `None` serves plain HTTP.
    pub(crate) certificate: Option<Arc<ServerCertificate>>,
}

/// Serves a connection until it ends.
pub(crate) async fn serve(
    socket: UnregisteredStream,
    peer: IpAddr,
    shared: Arc<ConnectionParts>,
    stop: StopSignals,
) {
    let socket = match TcpStream::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!(%error, "a connection cannot be served; Hob closes it"),
    };
    // Otherwise the first token of a stream waits 40 ms for an acknowledgement.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let timeouts = **shared.timeouts.load();
    let socket = match &shared.certificate {
        None => ClientStream::Left(socket),
        // Boxed, so that plain connections do not reserve its memory.
        Some(certificate) => tokio::select! {
            secured = Box::pin(secure(socket, certificate, timeouts.header)) => match secured {
                Some(socket) => ClientStream::Right(Box::new(socket)),
                None => return,
            },
            () = stop.closing.cancelled() => return,
            () = stop.cut.cancelled() => return,
        },
    };
    let state = Arc::new(ConnectionState::default());
    let mut socket = TimeoutStream::new(ClientSocket { socket, state: Arc::clone(&state) });
    socket.set_write_timeout(Some(timeouts.write));

    let service = service_fn(|request: Request<Incoming>| answer(&shared, &state, peer, request));
    let mut builder = http1::Builder::new();
    // The timeout also closes idle connections.
    builder.timer(TokioTimer::new()).header_read_timeout(timeouts.header);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Box::pin(socket)), service));
    let stopped = async {
        PollGate::wait(stop.closing.cancelled()).await;
        None
    };
    let cut = async {
        PollGate::wait(stop.cut.cancelled()).await;
        None
    };
    let mut cut = pin!(cut);
    let mut outcome = tokio::select! {
        // In this order: without a grace period, both signals come at once, and the answer still has to say that it ends.
        biased;
        outcome = connection.as_mut() => Some(outcome),
        none = stopped => none,
        // The server was dropped, so there is nothing to wait for.
        _ = cut.as_mut() => return,
    };
    if outcome.is_none() {
        connection.as_mut().graceful_shutdown();
        outcome = tokio::select! {
            outcome = connection.as_mut() => Some(outcome),
            none = cut => none,
        };
    }
    if outcome.is_none() {
        state.cut();
        outcome = tokio::time::timeout(ERROR_EVENT_TIME, connection).await.ok();
    }
    if let Some(Err(error)) = outcome {
        tracing::debug!(%error, "connection ended with an error");
    }
}

/// Answers a request. The connection state changes before the future is first polled, because hyper reads on in between.
fn answer<'a>(
    shared: &'a ConnectionParts,
    state: &'a Arc<ConnectionState>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response, Infallible>> + use<'a> {
    let is_last = state.begin(&request);
    async move {
        let version = request.version();
        let id = RequestId::of(request.headers());
        let is_anthropic = is_anthropic(&request);
        let mut log_scope = LogScope::of(id.shared());
        let header = id.header();
        let connection = Arc::clone(state);
        let request = request.map(|body| match is_last {
            true => Body::new(LastBody { body, state: Arc::clone(state) }),
            false => Body::new(body),
        });
        let context = RequestContext {
            id,
            peer,
            origin: RequestOrigin::Direct,
            proof: Proof::None,
            connection,
            tally: None,
        };
        let mut answering = pin!(shared.pipeline.answer(request, context));
        let mut gate = PollGate::new();
        let mut response = poll_fn(|context| {
            match gate.poll(context, |context| log_scope.run(|| answering.as_mut().poll(context))) {
                Poll::Pending if state.is_cut() => Poll::Ready(ApiError::shutting_down().into_response()),
                answer => answer,
            }
        })
        .await;
        if version == Version::HTTP_10 {
            // The end of the connection ends a stream of HTTP/1.0, so no header may promise to keep it alive.
            response.headers_mut().remove(header::CONNECTION);
        }
        response.headers_mut().insert(header::SERVER, SERVER_HEADER);
        if is_anthropic {
            response.headers_mut().insert(ANTHROPIC_REQUEST_ID, header.clone());
        }
        response.headers_mut().insert(REQUEST_ID, header);
        Ok(response)
    }
}

/// Whether the client is one of Anthropic's API, which looks for the id of a request under another name.
fn is_anthropic(request: &Request<Incoming>) -> bool {
    ErrorFormat::of_path(request.uri().path()) == ErrorFormat::Anthropic
        || request.headers().contains_key(ANTHROPIC_VERSION)
}
