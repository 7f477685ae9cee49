//! One connection: sends a request, reads the head of the response, then its body as it arrives.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hob_net::tcp::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::head::{self, Head};
use super::read_timeout::ReadTimeout;
use crate::wire::transport_error::TransportError;

/// The size of one read. The buffer is on the stack, so that waiting streams hold no buffers.
const READ_BYTES: usize = 16 << 10;

/// A connection to an engine.
pub(super) struct Connection {
    socket: TcpStream,
    read_timeout: ReadTimeout,
    /// Bytes after the head that were not read yet.
    ahead: Vec<u8>,
    /// Whether a byte has arrived since the latest request.
    is_answered: bool,
    /// Whether the connection was reset. A request on a connection that the engine had closed causes a reset.
    is_reset: bool,
}

/// How long to wait for a reset after the connection ended. On one machine both arrive together, unless the machine
/// is busy.
const RESET_DELAY: Duration = Duration::from_millis(50);

impl Connection {
    pub(super) fn new(socket: TcpStream, read_timeout: ReadTimeout) -> Self {
        Connection { socket, read_timeout, ahead: Vec::new(), is_answered: false, is_reset: false }
    }

    /// Whether the engine had closed the connection before it read the latest request, which failed: then its machine
    /// answers with a reset. An engine that reads a request and closes the connection causes no reset.
    pub(super) async fn was_reset_unread(&mut self) -> bool {
        let pause = Duration::from_millis(1);
        for _ in 0..RESET_DELAY.as_millis() {
            self.is_reset |= matches!(self.socket.take_error(), Ok(Some(_)));
            if self.is_reset || self.is_answered {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        self.is_reset && !self.is_answered
    }

    /// Whether a byte has arrived since the latest request.
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Whether, as far as the runtime has heard, the connection is open and no unexpected bytes have arrived. Asks the system
    /// only if the runtime has heard something.
    pub(super) fn is_usable(&self) -> bool {
        let read = self.socket.try_read(&mut [0]);
        self.ahead.is_empty() && read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until the runtime has heard of bytes or of the end.
    #[cfg(test)]
    pub(super) async fn heard_something(&self) {
        self.socket.readable().await.unwrap();
    }

    /// Sends a request and waits for the head of the response. If the engine responds before it has read the whole
    /// request, the rest is not sent, and the connection is not reused.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<Head, TransportError> {
        self.read_timeout.restart();
        (self.is_answered, self.is_reset) = (false, false);
        let mut unsent = request;
        let mut write_error = None;
        let (head, ahead) = poll_fn(|context| {
            while !unsent.is_empty() && write_error.is_none() {
                match Pin::new(&mut self.socket).poll_write(context, unsent) {
                    Poll::Ready(Ok(sent)) => unsent = &unsent[sent..],
                    // The engine may have sent a response before it closed the connection.
                    Poll::Ready(Err(error)) => {
                        self.is_reset |= is_reset(&error);
                        write_error = Some(error);
                    }
                    Poll::Pending => break,
                }
            }
            self.poll_head(context, write_error.as_ref())
        })
        .await?;
        // Bytes after a response without a body belong to no response.
        let in_order =
            unsent.is_empty() && write_error.is_none() && (ahead.is_empty() || !head.length.is_reached());
        self.ahead = ahead;
        Ok(Head { reusable: head.reusable && in_order, ..head })
    }

    /// The head, and the bytes after it. An incomplete head is stored in `ahead`.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        write_error: Option<&io::Error>,
    ) -> Poll<Result<(Head, Vec<u8>), TransportError>> {
        loop {
            let mut space = [const { MaybeUninit::uninit() }; READ_BYTES];
            let mut read = ReadBuf::uninit(&mut space);
            match self.poll_read(context, &mut read) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(broken)) => return Poll::Ready(Err(prefer_write_error(write_error, broken))),
                Poll::Pending => return Poll::Pending,
            }
            if read.filled().is_empty() {
                return Poll::Ready(Err(prefer_write_error(
                    write_error,
                    TransportError::MaybeSent("the engine closed the connection".to_owned()),
                )));
            }
            self.is_answered = true;
            // Almost every head arrives in one read, which needs no copy.
            let seen = if self.ahead.is_empty() {
                head::read(read.filled())
                    .map(|head| head.map(|(head, end)| (head, read.filled()[end..].to_vec())))
            } else {
                self.ahead.extend_from_slice(read.filled());
                head::read(&self.ahead).map(|head| head.map(|(head, end)| (head, self.ahead.split_off(end))))
            };
            match seen.map_err(|error| TransportError::MaybeSent(error.to_string()))? {
                Some((head, ahead)) => {
                    self.read_timeout.restart();
                    return Poll::Ready(Ok((head, ahead)));
                }
                None if self.ahead.is_empty() => self.ahead.extend_from_slice(read.filled()),
                None => {}
            }
        }
    }

    /// Appends the part of the body that has arrived. At the end of the body `head.length` is reached.
    pub(super) fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Poll<Result<(), TransportError>> {
        if !self.ahead.is_empty() {
            let ahead = std::mem::take(&mut self.ahead);
            return Poll::Ready(take(head, &ahead, out));
        }
        let mut space = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(self.poll_read(context, &mut read))?;
        self.read_timeout.restart();
        match (read.filled(), &head.length) {
            ([], head::Length::Open) => head.length = head::Length::Known(0),
            ([], _) => {
                return Poll::Ready(Err(TransportError::MaybeSent(
                    "the engine closed the connection".to_owned(),
                )));
            }
            (bytes, _) => return Poll::Ready(take(head, bytes, out)),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        read: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), TransportError>> {
        match Pin::new(&mut self.socket).poll_read(context, read) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => {
                self.is_reset |= is_reset(&error);
                Poll::Ready(Err(TransportError::MaybeSent(error.to_string())))
            }
            Poll::Pending => self.read_timeout.poll_elapsed(context).map(|()| Err(TransportError::TimedOut)),
        }
    }
}

fn is_reset(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

/// The error of the write explains more than the error of the read that follows it.
fn prefer_write_error(write_error: Option<&io::Error>, broken: TransportError) -> TransportError {
    write_error.map_or(broken, |error| TransportError::MaybeSent(error.to_string()))
}

fn take(head: &mut Head, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TransportError> {
    let taken = head.length.take(bytes, out).map_err(|error| TransportError::MaybeSent(error.to_string()))?;
    if taken < bytes.len() {
        // More bytes than announced. The next request must not read them as its response.
        head.reusable = false;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

    /// A connection and its other end.
    async fn connection() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (
            Connection::new(socket, ReadTimeout::new(Duration::from_secs(60))),
            listener.accept().await.unwrap().0,
        )
    }

    #[tokio::test]
    async fn a_request_that_comes_after_the_end_is_turned_away() {
        for _ in 0..20 {
            let (mut connection, other_end) = connection().await;
            drop(other_end);
            assert!(matches!(connection.exchange(REQUEST).await, Err(TransportError::MaybeSent(_))));
            assert!(connection.was_reset_unread().await);
        }
    }

    #[tokio::test]
    async fn a_request_that_was_read_or_answered_in_part_was_not_turned_away() {
        for said in [&b""[..], b"HTTP/1.1 2"] {
            let (mut connection, mut other_end) = connection().await;
            let hang_up = async move {
                assert_eq!(other_end.read(&mut [0; 64]).await.unwrap(), REQUEST.len());
                other_end.write_all(said).await.unwrap();
            };
            let (exchanged, ()) = tokio::join!(connection.exchange(REQUEST), hang_up);
            assert!(matches!(exchanged, Err(TransportError::MaybeSent(_))));
            assert!(!connection.was_reset_unread().await);
        }
    }
}
