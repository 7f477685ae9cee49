//! A connection to a mail server: lines and literals with limits, over TCP or TLS. Knows neither IMAP nor SMTP.

use std::io;
use std::time::Duration;

use hob_net::{TlsClient, TlsClientSocket, connect_tcp};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::either::Either;

use crate::account::{MailAccount, MailSecurity};
use crate::error::MailError;

/// A socket with or without TLS.
type MailSocket = Either<TcpStream, Box<TlsClientSocket>>;

/// An open connection.
pub(crate) struct MailConnection {
    socket: BufReader<MailSocket>,
    /// The beginning of a line, kept when a wait for the rest is given up.
    partial: Vec<u8>,
}

impl MailConnection {
    /// Connects, with TLS where it begins with the first byte. Refuses a server on another machine without TLS before anything is sent.
    pub async fn open(account: &MailAccount) -> Result<Self, MailError> {
        let MailAccount { host, port, .. } = account;
        let failed = |source| MailError::Connect { host: host.clone(), port: *port, source };
        let socket = connect_tcp(host, *port, account.timeout).await.map_err(failed)?;
        match account.security {
            MailSecurity::Tls => secure(account, socket).await,
            MailSecurity::StartTls => Ok(Self::over(Either::Left(socket))),
            MailSecurity::None => {
                if !socket.peer_addr()?.ip().is_loopback() {
                    return Err(MailError::Unprotected { host: host.clone() });
                }
                Ok(Self::over(Either::Left(socket)))
            }
        }
    }

    fn over(socket: MailSocket) -> Self {
        MailConnection { socket: BufReader::new(socket), partial: Vec::new() }
    }

    /// Makes the handshake of TLS after the server agreed to it. What it sent in plain text before is refused: anyone may have added it.
    pub async fn start_tls(self, account: &MailAccount) -> Result<Self, MailError> {
        if !self.socket.buffer().is_empty() || !self.partial.is_empty() {
            let reason = "there is more text before the secure connection";
            return Err(MailError::Malformed { protocol: "STARTTLS", reason });
        }
        match self.socket.into_inner() {
            Either::Left(socket) => secure(account, socket).await,
            secured @ Either::Right(_) => Ok(Self::over(secured)),
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

async fn secure(account: &MailAccount, socket: TcpStream) -> Result<MailConnection, MailError> {
    let failed = |source| MailError::Tls { host: account.host.clone(), source };
    let authorities = account.authorities.clone();
    // Reading the certificates of the system blocks.
    let client = tokio::task::spawn_blocking(move || TlsClient::new(authorities.as_deref()));
    let client = client.await.map_err(|error| failed(io::Error::other(error)))?.map_err(failed)?;
    let handshake = timeout(account.timeout, client.secure(&account.host, socket));
    let socket = handshake.await.map_err(|_| late(account.timeout))?.map_err(failed)?;
    Ok(MailConnection::over(Either::Right(Box::new(socket))))
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
