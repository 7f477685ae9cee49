//! The addresses of the gateway: its WebSocket as configured, and its HTTP API derived from that.

use url::Url;

use crate::types::ChannelError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub socket: Url,
    /// Without a trailing slash.
    pub http: String,
}

impl Address {
    /// Parses `ws://host:port/ws`. The HTTP API is on the same port, without the trailing `/ws`.
    pub fn parse(text: &str) -> Result<Self, ChannelError> {
        let invalid = |reason: String| ChannelError::Invalid {
            reason: format!("the gateway address '{text}' is not valid: {reason}"),
        };
        let socket = Url::parse(text).map_err(|error| invalid(error.to_string()))?;
        let scheme = match socket.scheme() {
            "ws" => "http",
            "wss" => "https",
            other => {
                return Err(invalid(format!("it must begin with 'ws:' or 'wss:', not '{other}:'")));
            }
        };
        let Some(host) = socket.host_str() else { return Err(invalid("it has no host".to_owned())) };
        let port = socket.port().map(|port| format!(":{port}")).unwrap_or_default();
        let path = socket.path().trim_end_matches('/');
        let path = path.strip_suffix("/ws").unwrap_or(path);
        let http = format!("{scheme}://{host}{port}{path}");
        Ok(Address { socket, http })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_http_api_is_on_the_same_port() {
        for (socket, http) in [
            ("ws://127.0.0.1:18789/ws", "http://127.0.0.1:18789"),
            ("ws://127.0.0.1:18789/ws/", "http://127.0.0.1:18789"),
            ("wss://gateway.example/hob/ws", "https://gateway.example/hob"),
            ("wss://gateway.example", "https://gateway.example"),
            ("ws://[::1]:1/news", "http://[::1]:1/news"),
        ] {
            assert_eq!(Address::parse(socket).unwrap().http, http, "{socket}");
        }
    }

    #[test]
    fn an_address_without_a_socket_is_refused_with_a_reason() {
        for (text, reason) in
            [("http://x", "'ws:' or 'wss:'"), ("nonsense", "relative URL"), ("", "relative")]
        {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
