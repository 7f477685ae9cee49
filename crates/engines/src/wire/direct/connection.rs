//! One connection: a request goes out, the head of its answer comes in, and then the body as it comes.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::head::{self, Head};
use super::read_timeout::ReadTimeout;
use crate::wire::transport_error::TransportError;

/// What one read takes at most. On the stack, so that a thousand streams that wait hold no buffers.
const READ_BYTES: usize = 16 << 10;

/// A connection to an engine.
pub(super) struct Connection {
    socket: TcpStream,
    read_timeout: ReadTimeout,
    /// What came behind the head, and was not yet asked for.
    ahead: Vec<u8>,
    /// Whether anything came since the latest request.
    is_answered: bool,
    /// Whether the connection was reset: what is sent for a connection that is closed already is turned away like that.
    is_reset: bool,
}

/// How long after its end a connection may be found to be reset. On one machine the two come together, unless it is busy.
const RESET_DELAY: Duration = Duration::from_millis(50);

impl Connection {
    pub(super) fn new(socket: TcpStream, read_timeout: ReadTimeout) -> Self {
        Connection { socket, read_timeout, ahead: Vec::new(), is_answered: false, is_reset: false }
    }

    /// Whether the engine had closed the connection before it read the latest request, which failed. Its machine then turns the
    /// request away with a reset. An engine that reads a request and hangs up ends the connection without one.
    pub(super) async fn has_turned_away(&mut self) -> bool {
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

    /// Whether the engine has left it open and has said nothing that nobody asked.
    pub(super) fn is_usable(&self) -> bool {
        let peeked = SockRef::from(&self.socket).peek(&mut [MaybeUninit::uninit()]);
        self.ahead.is_empty() && peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a request and waits for the head of its answer. An engine that answers before it has read everything is
    /// heard; it gets no more of the request, and its connection is not used again.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<Head, TransportError> {
        self.read_timeout.restart();
        (self.is_answered, self.is_reset) = (false, false);
        let mut unsent = request;
        let mut refused = None;
        let (head, ahead) = poll_fn(|context| {
            while !unsent.is_empty() && refused.is_none() {
                match Pin::new(&mut self.socket).poll_write(context, unsent) {
                    Poll::Ready(Ok(sent)) => unsent = &unsent[sent..],
                    // It may have said why before it closed.
                    Poll::Ready(Err(error)) => {
                        self.is_reset |= is_reset(&error);
                        refused = Some(error);
                    }
                    Poll::Pending => break,
                }
            }
            self.poll_head(context, refused.as_ref())
        })
        .await?;
        // What follows an answer without a body belongs to nobody.
        let in_order =
            unsent.is_empty() && refused.is_none() && (ahead.is_empty() || !head.length.is_reached());
        self.ahead = ahead;
        Ok(Head { lasting: head.lasting && in_order, ..head })
    }

    /// The head and what came with it. Until it is whole its bytes wait in `ahead`.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        refused: Option<&io::Error>,
    ) -> Poll<Result<(Head, Vec<u8>), TransportError>> {
        loop {
            let mut space = [const { MaybeUninit::uninit() }; READ_BYTES];
            let mut read = ReadBuf::uninit(&mut space);
            match self.poll_read(context, &mut read) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(broken)) => return Poll::Ready(Err(because(refused, broken))),
                Poll::Pending => return Poll::Pending,
            }
            if read.filled().is_empty() {
                return Poll::Ready(Err(because(
                    refused,
                    TransportError::MaybeSent("it hung up".to_owned()),
                )));
            }
            self.is_answered = true;
            // Nearly every head comes in one read, which needs no copy.
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

    /// Appends what the engine has sent of the body. At its end `head.length` is reached.
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
            ([], _) => return Poll::Ready(Err(TransportError::MaybeSent("it hung up".to_owned()))),
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

/// What kept us from sending says more than what came of it.
fn because(refused: Option<&io::Error>, broken: TransportError) -> TransportError {
    refused.map_or(broken, |error| TransportError::MaybeSent(error.to_string()))
}

fn take(head: &mut Head, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TransportError> {
    let taken = head.length.take(bytes, out).map_err(|error| TransportError::MaybeSent(error.to_string()))?;
    if taken < bytes.len() {
        // More than was promised. Whatever it is, the next request must not read it as its answer.
        head.lasting = false;
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
            assert!(connection.has_turned_away().await);
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
            assert!(!connection.has_turned_away().await);
        }
    }
}
