//! The state of one connection: whether it is being cut, and what the end of the client's side means.
//!
//! TCP has one signal for "I have sent everything" and "I am gone". A client that keeps connections alive has no reason to close
//! its side while it waits, so the server takes it as a hang-up and cancels the work. A client that says that a request is its
//! last one (HTTP/1.0, or `Connection: close`) can close its side after it, as `nc -N` does, and is still answered. If it is
//! gone, the first write fails.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::http::{HeaderMap, Request, Version, header};
use bytes::Bytes;
use futures::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a connection and its requests share. One task polls all of them.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    cut: AtomicBool,
    /// The current request is the last, so the end of the client's side is not a hang-up.
    answers_after_end: AtomicBool,
    /// The client's side has ended, and hyper does not know.
    has_ended: AtomicBool,
    /// Waits for a part of the last request's body, which does not come once the client's side has ended.
    body_reader: AtomicWaker,
}

impl ConnectionState {
    /// From now on unfinished answers end with an error. The caller must poll the connection next.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Registers a request. Returns whether it is the last of the connection.
    pub(crate) fn begin<B>(&self, request: &Request<B>) -> bool {
        let is_last = is_last(request.version(), request.headers());
        self.answers_after_end.store(is_last, Ordering::Relaxed);
        is_last
    }
}

fn is_last(version: Version, headers: &HeaderMap) -> bool {
    let has = |wanted: &str| {
        let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    match version {
        Version::HTTP_09 | Version::HTTP_10 => !has("keep-alive"),
        _ => has("close"),
    }
}

/// A socket that hides the end of the client's side while the last request is being answered.
pub(crate) struct ClientSocket<S> {
    pub(crate) socket: S,
    pub(crate) state: Arc<ConnectionState>,
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientSocket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.remaining();
        let read = Pin::new(&mut this.socket).poll_read(context, buffer);
        let has_ended = matches!(read, Poll::Ready(Ok(()))) && buffer.remaining() == before && before > 0;
        if !has_ended || !this.state.answers_after_end.load(Ordering::Relaxed) {
            return read;
        }
        if !this.state.has_ended.swap(true, Ordering::Relaxed) {
            this.state.body_reader.wake();
        }
        Poll::Pending
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientSocket<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}

/// The body of the last request. hyper does not see the end of the socket, so this type reports a truncated body.
pub(crate) struct LastBody {
    pub(crate) body: Incoming,
    pub(crate) state: Arc<ConnectionState>,
}

impl Body for LastBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        this.state.body_reader.register(context.waker());
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Pending if this.state.has_ended.load(Ordering::Relaxed) => {
                let broken =
                    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection closed before its end");
                Poll::Ready(Some(Err(axum::Error::new(broken))))
            }
            frame => frame.map_err(axum::Error::new),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_that_a_request_is_its_last() {
        let last = |version, connection: &str| {
            let mut request = Request::builder().version(version);
            if !connection.is_empty() {
                request = request.header("connection", connection);
            }
            ConnectionState::default().begin(&request.body(()).unwrap())
        };
        assert!(last(Version::HTTP_10, ""));
        assert!(!last(Version::HTTP_10, "Keep-Alive"));
        assert!(!last(Version::HTTP_11, ""));
        assert!(!last(Version::HTTP_11, "keep-alive"));
        assert!(last(Version::HTTP_11, "TE, Close"));
    }
}
