//! The HTTP response of an engine, from either transport.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use futures::Stream;
use hob_net::retry_after;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};

use super::direct::{DirectBody, DirectResponse};
use super::transport_error::TransportError;

/// A response whose head has arrived.
pub struct Response {
    pub status: StatusCode,
    /// Seconds after which the engine accepts a retry.
    pub retry_after: Option<u64>,
    pub content_type: Option<Cow<'static, str>>,
    body: Body,
}

/// The body.
enum Body {
    Direct(Box<DirectBody>),
    Closed,
    Client(Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>),
}

impl Response {
    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, TransportError>> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Closes the connection, which stops the engine's work.
    pub fn close(&mut self) {
        self.body = Body::Closed;
    }

    /// Appends the next piece of the body; `None` at its end.
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Option<Result<(), TransportError>>> {
        match &mut self.body {
            Body::Direct(body) => body.poll_read(context, out),
            _ => self
                .poll_chunk(context)
                .map(|next| next.map(|piece| piece.map(|bytes| out.extend_from_slice(&bytes)))),
        }
    }

    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportError>>> {
        match &mut self.body {
            Body::Direct(body) => body.poll_chunk(context),
            Body::Closed => Poll::Ready(None),
            Body::Client(body) => body
                .as_mut()
                .poll_next(context)
                .map(|next| next.map(|piece| piece.map_err(TransportError::from))),
        }
    }
}

impl From<DirectResponse> for Response {
    fn from(response: DirectResponse) -> Self {
        let DirectResponse { status, retry_after, content_type, body } = response;
        Response { status, retry_after, content_type, body: Body::Direct(Box::new(body)) }
    }
}

impl From<reqwest::Response> for Response {
    fn from(response: reqwest::Response) -> Self {
        Response {
            status: response.status(),
            retry_after: wait(response.headers()),
            content_type: content_type(response.headers()),
            body: Body::Client(Box::pin(response.bytes_stream())),
        }
    }
}

fn content_type(headers: &HeaderMap) -> Option<Cow<'static, str>> {
    Some(Cow::Owned(headers.get(CONTENT_TYPE)?.to_str().ok()?.to_owned()))
}

fn wait(headers: &HeaderMap) -> Option<u64> {
    retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, SystemTime::now())
}
