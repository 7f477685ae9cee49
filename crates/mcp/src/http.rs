//! The way to a server over streamable HTTP.

use std::time::Duration;

use hob_dial::{install_crypto, is_loopback};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::{MAX_MESSAGE_BYTES, McpError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub fn transport(
    url: &str,
    headers: &[(String, SecretString)],
) -> Result<StreamableHttpClientTransport<reqwest::Client>, McpError> {
    install_crypto();
    let unusable = |reason: String| McpError::Address { url: url.to_owned(), reason };
    let address = Url::parse(url).map_err(|error| unusable(error.to_string()))?;
    if !matches!(address.scheme(), "http" | "https") {
        return Err(unusable("it must begin with http:// or https://".to_owned()));
    }
    let mut builder = reqwest::Client::builder()
        .default_headers(header_map(headers)?)
        // A redirect could carry the headers' secrets to a stranger.
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true);
    if is_loopback(&address) {
        builder = builder.no_proxy();
    }
    let client = builder.build().map_err(|error| unusable(error.to_string()))?;
    let config = StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE_BYTES);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

fn header_map(headers: &[(String, SecretString)]) -> Result<HeaderMap, McpError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let unusable = || McpError::Header { name: name.clone() };
        let key = HeaderName::try_from(name).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}
