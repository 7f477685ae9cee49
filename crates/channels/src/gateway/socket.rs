//! The WebSocket: how it is opened, and its errors.

use std::time::Duration;

use hob_net::{install_crypto, root_cause};
use reqwest::header::AUTHORIZATION;
use secrecy::SecretString;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::address::Address;
use super::http::bearer;

pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A longer frame closes the connection: it could not be skipped without being read.
const MAX_READ_BYTES: usize = 16 << 20;

/// Otherwise a small frame waits for an acknowledgement.
const NO_DELAY: bool = true;

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
    let opening = connect_async_with_config(request, Some(config), NO_DELAY);
    match timeout(limit, opening).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(reason(&error)),
        Err(_) => Err(format!("it did not answer within {} s", limit.as_secs_f32())),
    }
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
