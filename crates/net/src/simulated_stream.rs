//! The connections of a simulated network, with the parts of tokio's interface that Hob uses.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Accepts the connections to a simulated host.
pub struct TcpListener {
    listener: turmoil::net::TcpListener,
}

impl TcpListener {
    pub async fn bind(address: impl turmoil::ToSocketAddrs) -> io::Result<Self> {
        Ok(TcpListener { listener: turmoil::net::TcpListener::bind(address).await? })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (socket, peer) = self.listener.accept().await?;
        Ok((TcpStream { socket: Mutex::new(socket) }, peer))
    }
}

/// A connection between simulated hosts.
#[derive(Debug)]
pub struct TcpStream {
    /// Locked only for a look at what has arrived, which changes the socket of the simulation.
    socket: Mutex<turmoil::net::TcpStream>,
}

impl TcpStream {
    pub async fn connect(address: impl turmoil::ToSocketAddrs) -> io::Result<Self> {
        let socket = turmoil::net::TcpStream::connect(address).await?;
        Ok(TcpStream { socket: Mutex::new(socket) })
    }

    /// A simulated host has one runtime, so its connections need no registration.
    pub fn into_std(self) -> io::Result<Self> {
        Ok(self)
    }

    pub fn from_std(stream: Self) -> io::Result<Self> {
        Ok(stream)
    }

    pub fn set_nodelay(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    /// What a read would return. Unlike tokio's, leaves the bytes there: its caller only asks whether there are any.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut socket = self.lock();
        let mut context = Context::from_waker(Waker::noop());
        match socket.poll_peek(&mut context, &mut ReadBuf::new(buffer)) {
            Poll::Ready(peeked) => peeked,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Waits for bytes, and leaves them there.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        poll_fn(|context| self.lock().poll_peek(context, &mut buffer)).await
    }

    /// A simulated reset is the error of the next read or write, so there is never one that waits.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    fn lock(&self) -> MutexGuard<'_, turmoil::net::TcpStream> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn socket(self: Pin<&mut Self>) -> Pin<&mut turmoil::net::TcpStream> {
        Pin::new(self.get_mut().socket.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Without waiting, as with a socket that does not block.
impl io::Write for TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.socket().poll_read(context, buffer)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.socket().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_shutdown(context)
    }
}
