//! An engine's answer over HTTP, whichever way it came.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use hob_net::root_cause;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::direct::DirectBody;

/// How a connection fails.
#[derive(Debug)]
pub enum Broken {
    /// Nothing came for too long.
    TimedOut,
    /// There was no connection, so nothing of the question went out. In the words of the transport, as below.
    NeverSent(String),
    /// The connection ended when the question, or a part of it, may have gone out.
    Lost(String),
}

/// An answer whose head is there.
pub struct Response {
    pub status: StatusCode,
    /// When an engine that refuses wants to be asked again, in seconds.
    pub retry_after: Option<u64>,
    pub(super) body: Body,
}

/// What follows the head.
pub(super) enum Body {
    Direct(Box<DirectBody>),
    Closed,
    Client(Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>),
}

impl Response {
    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Broken>> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Ends the connection, which tells the engine to stop.
    pub fn close(&mut self) {
        self.body = Body::Closed;
    }

    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        match &mut self.body {
            Body::Direct(body) => body.poll_chunk(context),
            Body::Closed => Poll::Ready(None),
            Body::Client(body) => {
                body.as_mut().poll_next(context).map(|next| next.map(|piece| piece.map_err(Broken::from)))
            }
        }
    }
}

impl From<reqwest::Response> for Response {
    fn from(response: reqwest::Response) -> Self {
        Response {
            status: response.status(),
            retry_after: retry_after(response.headers()),
            body: Body::Client(Box::pin(response.bytes_stream())),
        }
    }
}

impl From<reqwest::Error> for Broken {
    fn from(error: reqwest::Error) -> Self {
        // A connection that nobody takes is not a slow answer.
        if error.is_connect() {
            Broken::NeverSent(root_cause(&error))
        } else if error.is_timeout() {
            Broken::TimedOut
        } else {
            Broken::Lost(root_cause(&error))
        }
    }
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}
