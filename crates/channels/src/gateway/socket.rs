//! The WebSocket: how it is opened, and its errors.

use std::time::Duration;

use hob_net::tcp::TcpStream;
use hob_net::{install_crypto, root_cause};
use reqwest::header::AUTHORIZATION;
use secrecy::SecretString;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::address::Address;
use super::http::bearer;

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A longer frame closes the connection: it could not be skipped without being read.
const MAX_READ_BYTES: usize = 16 << 20;

pub(crate) async fn open(
    address: &Address,
    token: Option<&SecretString>,
    limit: Duration,
) -> Result<Socket, String> {
    install_crypto();
    let mut request = address.socket.as_str().into_client_request().map_err(|error| reason(&error))?;
    if let Some(token) = token {
        request.headers_mut().insert(AUTHORIZATION, bearer(token)?);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_READ_BYTES))
        .max_frame_size(Some(MAX_READ_BYTES))
        .max_write_buffer_size(MAX_READ_BYTES);
    match timeout(limit, connect(request, config)).await {
        Ok(Ok(socket)) => Ok(socket),
        Ok(Err(error)) => Err(reason(&error)),
        Err(_) => Err(format!("it did not answer within {} s", limit.as_secs_f32())),
    }
}

#[cfg(not(simulation))]
async fn connect(request: Request, config: WebSocketConfig) -> Result<Socket, Error> {
    // Otherwise a small frame waits for an acknowledgement.
    let no_delay = true;
    let (socket, _) = tokio_tungstenite::connect_async_with_config(request, Some(config), no_delay).await?;
    Ok(socket)
}

/// The same on a simulated network, which the library cannot use by itself.
#[cfg(simulation)]
async fn connect(request: Request, config: WebSocketConfig) -> Result<Socket, Error> {
    let host = request.uri().host().unwrap_or_default().to_owned();
    let port = request.uri().port_u16().unwrap_or(80);
    let stream = MaybeTlsStream::Plain(TcpStream::connect((host, port)).await?);
    let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await?;
    Ok(socket)
}

/// The error in a few words.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::Http(response) if response.status().is_success() => {
            "it answers, but there is no WebSocket at this address".to_owned()
        }
        Error::Http(response) => format!("it answered {} to the WebSocket handshake", response.status()),
        Error::ConnectionClosed | Error::AlreadyClosed => "it closed the connection".to_owned(),
        other => root_cause(other),
    }
}
