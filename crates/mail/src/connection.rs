//! A connection to a mail server: lines and literals with limits, over TCP or TLS. Knows neither IMAP nor SMTP.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hob_net::{TlsClient, TlsClientSocket, connect_tcp};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::account::MailSecurity;
use crate::error::MailError;

/// Where to connect to, and how.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub host: String,
    pub port: u16,
    pub security: MailSecurity,
    pub authorities: Option<PathBuf>,
    pub timeout: Duration,
}

/// A socket with or without TLS.
enum MailSocket {
    Plain(TcpStream),
    Secure(Box<TlsClientSocket>),
}

impl AsyncRead for MailSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            MailSocket::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            MailSocket::Secure(socket) => Pin::new(socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for MailSocket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            MailSocket::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            MailSocket::Secure(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            MailSocket::Plain(socket) => Pin::new(socket).poll_flush(context),
            MailSocket::Secure(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            MailSocket::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            MailSocket::Secure(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}

/// An open connection.
pub(crate) struct MailConnection {
    socket: BufReader<MailSocket>,
    /// The beginning of a line, kept when a wait for the rest is given up.
    partial: Vec<u8>,
}

impl MailConnection {
    /// Connects, with TLS where it begins with the first byte. Refuses a server on another machine without TLS before anything is sent.
    pub async fn open(endpoint: &Endpoint) -> Result<Self, MailError> {
        let Endpoint { host, port, .. } = endpoint;
        let failed = |source| MailError::Connect { host: host.clone(), port: *port, source };
        let socket = connect_tcp(host, *port, endpoint.timeout).await.map_err(failed)?;
        match endpoint.security {
            MailSecurity::Tls => secure(endpoint, socket).await,
            MailSecurity::StartTls => Ok(Self::over(MailSocket::Plain(socket))),
            MailSecurity::None => {
                if !socket.peer_addr()?.ip().is_loopback() {
                    return Err(MailError::Unprotected { host: host.clone() });
                }
                Ok(Self::over(MailSocket::Plain(socket)))
            }
        }
    }

    fn over(socket: MailSocket) -> Self {
        MailConnection { socket: BufReader::new(socket), partial: Vec::new() }
    }

    /// Makes the handshake of TLS after the server agreed to it. What it sent in plain text before is refused: anyone may have added it.
    pub async fn start_tls(self, endpoint: &Endpoint) -> Result<Self, MailError> {
        if !self.socket.buffer().is_empty() || !self.partial.is_empty() {
            let reason = "there is more text before the secure connection";
            return Err(MailError::Malformed { protocol: "STARTTLS", reason });
        }
        match self.socket.into_inner() {
            MailSocket::Plain(socket) => secure(endpoint, socket).await,
            secured @ MailSocket::Secure(_) => Ok(Self::over(secured)),
        }
    }

    /// The next line without its end. Dropping the future loses nothing.
    pub async fn read_line(&mut self, most: usize) -> Result<Vec<u8>, MailError> {
        loop {
            let available = self.socket.fill_buf().await?;
            if available.is_empty() {
                return Err(MailError::Closed);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |end| end + 1);
            if self.partial.len() + used > most {
                return Err(MailError::TooLong { what: "a line", most });
            }
            self.partial.extend_from_slice(&available[..used]);
            self.socket.consume(used);
            if end.is_some() {
                break;
            }
        }
        let mut line = std::mem::take(&mut self.partial);
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(line)
    }

    /// Exactly so many bytes. Memory grows with what arrives and not with what is announced.
    pub async fn read_bytes(&mut self, count: usize) -> Result<Vec<u8>, MailError> {
        let mut bytes = Vec::new();
        let read = (&mut self.socket).take(count as u64).read_to_end(&mut bytes).await?;
        if read == count { Ok(bytes) } else { Err(MailError::Closed) }
    }

    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), MailError> {
        self.socket.write_all(bytes).await?;
        self.socket.flush().await?;
        Ok(())
    }
}

async fn secure(endpoint: &Endpoint, socket: TcpStream) -> Result<MailConnection, MailError> {
    let failed = |source| MailError::Tls { host: endpoint.host.clone(), source };
    let authorities = endpoint.authorities.clone();
    // Reading the certificates of the system blocks.
    let client = tokio::task::spawn_blocking(move || TlsClient::new(authorities.as_deref()));
    let client = client.await.map_err(|error| failed(io::Error::other(error)))?.map_err(failed)?;
    let handshake = timeout(endpoint.timeout, client.secure(&endpoint.host, socket));
    let socket = handshake.await.map_err(|_| late(endpoint.timeout))?.map_err(failed)?;
    Ok(MailConnection::over(MailSocket::Secure(Box::new(socket))))
}

/// Ends work that takes too long.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, MailError>>,
) -> Result<T, MailError> {
    timeout(limit, work).await.unwrap_or_else(|_| Err(late(limit)))
}

fn late(limit: Duration) -> MailError {
    MailError::Timeout { seconds: limit.as_secs() }
}
