//! The transport to a server over streamable HTTP.

use hob_net::{HttpClientOptions, ProxyUse, http_client};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::McpError;
use crate::http_client::LimitedHttpClient;

pub fn transport(
    url: &str,
    headers: &[(String, SecretString)],
) -> Result<StreamableHttpClientTransport<LimitedHttpClient>, McpError> {
    let unusable = |reason: String| McpError::Address { url: url.to_owned(), reason };
    let address = Url::parse(url).map_err(|error| unusable(error.to_string()))?;
    if !matches!(address.scheme(), "http" | "https") {
        return Err(unusable("it must begin with http:// or https://".to_owned()));
    }
    let options = HttpClientOptions {
        headers: header_map(headers)?,
        proxy: ProxyUse::towards(&address),
        ..HttpClientOptions::default()
    };
    let client = http_client(options).map_err(|error| unusable(error.to_string()))?;
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    Ok(StreamableHttpClientTransport::with_client(LimitedHttpClient(client), config))
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
