//! Protects `rmcp` from an untrusted server: detects the end of a connection at once, reports a message that is too long, and
//! limits the answers that a server does not read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use thiserror::Error;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Answers to requests of a server that may wait until it reads them.
const MAX_UNREAD_ANSWERS: usize = 64;

/// The longest wait for a close, such as the end of an HTTP session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Error)]
pub enum GuardError<E: std::error::Error + 'static> {
    #[error("the connection is closed")]
    Closed,
    #[error(transparent)]
    Transport(E),
}

/// A transport that ends when `down` is cancelled, and cancels `down` when it ends.
pub struct GuardedTransport<T> {
    inner: T,
    down: CancellationToken,
    unread_answers: Arc<Semaphore>,
}

impl<T> GuardedTransport<T> {
    pub fn new(inner: T, down: CancellationToken) -> Self {
        GuardedTransport { inner, down, unread_answers: Arc::new(Semaphore::new(MAX_UNREAD_ANSWERS)) }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for GuardedTransport<T> {
    type Error = GuardError<T::Error>;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(
            message,
            TxJsonRpcMessage::<RoleClient>::Response(_) | TxJsonRpcMessage::<RoleClient>::Error(_)
        );
        let slot = is_answer.then(|| Arc::clone(&self.unread_answers).try_acquire_owned());
        // A server that does not read its answers needs no more of them.
        let is_dropped = matches!(slot, Some(Err(_)));
        let sending = (!is_dropped).then(|| self.inner.send(message));
        let down = self.down.clone();
        async move {
            let _slot = slot;
            let Some(sending) = sending else { return Ok(()) };
            tokio::select! {
                () = down.cancelled() => Err(GuardError::Closed),
                sent = sending => sent.map_err(GuardError::Transport),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = tokio::select! {
            () = self.down.cancelled() => None,
            message = self.inner.receive() => message,
        };
        if message.is_none() {
            self.down.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.down.cancel();
        let closed = timeout(CLOSE_TIMEOUT, self.inner.close()).await;
        closed.unwrap_or(Ok(())).map_err(GuardError::Transport)
    }
}

/// Notifies when a line is longer than `max`. `rmcp` drops such a line, and its caller would wait forever.
pub struct LineLengthWatch<R> {
    inner: R,
    max: usize,
    length: usize,
    too_long: Arc<Notify>,
}

impl<R> LineLengthWatch<R> {
    pub fn new(inner: R, max: usize, too_long: Arc<Notify>) -> Self {
        LineLengthWatch { inner, max, length: 0, too_long }
    }

    fn watch(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let was_short = self.length <= self.max;
            self.length = self.length.saturating_add(piece.len());
            if was_short && self.length > self.max {
                self.too_long.notify_waiters();
            }
            if piece.ends_with(b"\n") {
                self.length = 0;
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLengthWatch<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.watch(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use rmcp::model::{ClientResult, JsonRpcMessage, NumberOrString};
    use tokio::io::AsyncReadExt;

    use super::*;

    /// A server that reads nothing and says nothing.
    struct Deaf;

    impl Transport<RoleClient> for Deaf {
        type Error = io::Error;

        fn send(
            &mut self,
            _message: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
            std::future::pending()
        }

        fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
            std::future::pending()
        }

        fn close(&mut self) -> impl Future<Output = Result<(), io::Error>> + Send {
            std::future::pending()
        }
    }

    fn send(guarded: &mut GuardedTransport<Deaf>) -> BoxFuture<'static, Result<(), GuardError<io::Error>>> {
        guarded.send(JsonRpcMessage::response(ClientResult::empty(()), NumberOrString::Number(1))).boxed()
    }

    #[tokio::test]
    async fn unread_answers_do_not_accumulate() {
        let mut guarded = GuardedTransport::new(Deaf, CancellationToken::new());
        let mut waiting: Vec<_> = (0..MAX_UNREAD_ANSWERS).map(|_| send(&mut guarded)).collect();
        assert!(waiting.iter_mut().all(|sending| sending.now_or_never().is_none()));
        assert!(matches!(send(&mut guarded).now_or_never(), Some(Ok(()))));
        waiting.pop();
        assert!(send(&mut guarded).now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_connection_ends_all_waits() {
        let mut guarded = GuardedTransport::new(Deaf, CancellationToken::new());
        let waiting = send(&mut guarded);
        guarded.close().await.unwrap();
        assert!(matches!(waiting.await, Err(GuardError::Closed)));
        assert!(guarded.receive().await.is_none());
    }

    #[tokio::test]
    async fn only_a_line_that_is_too_long_is_reported() {
        let too_long = Arc::new(Notify::new());
        let mut lines = LineLengthWatch::new(&b"1234\n12\n1234\n"[..], 5, Arc::clone(&too_long));
        let told = too_long.notified();
        lines.read_to_end(&mut Vec::new()).await.unwrap();
        assert!(told.now_or_never().is_none());

        let mut lines = LineLengthWatch::new(&b"1234\n12345\n1\n"[..], 5, Arc::clone(&too_long));
        let told = too_long.notified();
        lines.read_to_end(&mut Vec::new()).await.unwrap();
        assert!(told.now_or_never().is_some());
    }
}
