//! The HTTP API of the gateway: sends while no socket is open, and lists the channels.

use std::time::Duration;

use hob_net::{HttpClientOptions, ProxyUse, http_client, response_body, root_cause};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::address::Address;
use super::frames;
use crate::outgoing::{Outgoing, SendFailure};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A gateway may have to call another service before it answers.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The longest error text that is shown.
const SHOWN_CHARS: usize = 200;

/// The HTTP client of the gateway. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Http {
    base: String,
    client: reqwest::Client,
}

impl Http {
    pub fn new(address: &Address, token: Option<&SecretString>) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, bearer(token)?);
        }
        let options = HttpClientOptions {
            headers,
            proxy: ProxyUse::towards(&address.socket),
            connect_timeout: CONNECT_TIMEOUT,
            timeout: Some(TIMEOUT),
            ..HttpClientOptions::default()
        };
        let client = http_client(options).map_err(|error| error.to_string())?;
        Ok(Http { base: address.http.clone(), client })
    }

    /// `POST /send`; `false` if the gateway has no such endpoint.
    pub async fn send(&self, message: &Outgoing) -> Result<bool, SendFailure> {
        let request = self
            .client
            .post(format!("{}/send", self.base))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(frames::write(message));
        let response = request.send().await.map_err(|error| {
            let reason = format!("{} over HTTP: {}", self.base, root_cause(&error));
            // Only before the connection was established is it certain that nothing arrived.
            if error.is_connect() { SendFailure::NotSent(reason) } else { SendFailure::Unknown(reason) }
        })?;
        if is_missing(&response) {
            return Ok(false);
        }
        let status = response.status();
        if status.is_success() {
            return Ok(true);
        }
        let reason = format!("{} answered {status}{}", self.base, said(response).await);
        Err(match status.as_u16() {
            // The gateway did nothing and asks to try again.
            429 | 503 => SendFailure::NotSent(reason),
            // The gateway may have failed after it passed on the message.
            500.. => SendFailure::Unknown(reason),
            _ => SendFailure::Refused(reason),
        })
    }

    /// `GET /channels`; `None` if the gateway has no such endpoint.
    pub async fn channels(&self) -> Result<Option<Vec<String>>, String> {
        let asked = self.client.get(format!("{}/channels", self.base)).send().await;
        let response = asked.map_err(|error| root_cause(&error))?;
        if is_missing(&response) {
            return Ok(None);
        }
        let status = response.status();
        if !status.is_success() {
            return Err(format!("it answered {status}{}", said(response).await));
        }
        names(&body(response).await?).map(Some)
    }
}

/// An array of names, or `{"channels": [...]}`.
fn names(body: &[u8]) -> Result<Vec<String>, String> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| format!("its list of channels is not JSON: {error}"))?;
    let list = value.get("channels").unwrap_or(&value);
    let names = list.as_array().and_then(|names| {
        names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    names.ok_or_else(|| "its list of channels is not a list of names".to_owned())
}

async fn body(response: Response) -> Result<Vec<u8>, String> {
    let body = response_body(response, MAX_ANSWER_BYTES).await.map_err(|error| root_cause(&error))?;
    body.ok_or_else(|| format!("its answer is longer than {} MiB", MAX_ANSWER_BYTES >> 20))
}

/// The text of an error response.
async fn said(response: Response) -> String {
    let body = body(response).await.unwrap_or_default();
    let text: String = String::from_utf8_lossy(&body).trim().chars().take(SHOWN_CHARS).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

/// Some gateways answer with a web page for an unknown endpoint.
fn is_missing(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_page = content_type.is_some_and(|kind| kind.trim_start().starts_with("text/html"));
    is_page || [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&response.status())
}

/// `Bearer TOKEN`, marked as sensitive so that no log shows it.
pub(crate) fn bearer(token: &SecretString) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
        .map_err(|_| "the token contains characters that are not allowed in an HTTP header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_bare_or_wrapped() {
        let expected = Ok(vec!["telegram".to_owned(), "slack".to_owned()]);
        assert_eq!(names(br#"["telegram","slack"]"#), expected);
        assert_eq!(names(br#"{"channels":["telegram","slack"]}"#), expected);
        for wrong in [&b"<html>"[..], b"{}", b"[1]", br#"{"channels":"telegram"}"#] {
            assert!(names(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
