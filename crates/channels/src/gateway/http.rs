//! The gateway's HTTP side: sending when the socket is not there, and the list of channels.

use std::time::Duration;

use hob_net::{HttpClientOptions, ProxyUse, http_client, root_cause};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::address::Address;
use super::frames;
use crate::outgoing::{Outgoing, SendFailure};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A gateway may have to talk to a service on the other side of the world before it answers.
const TIMEOUT: Duration = Duration::from_secs(20);

/// As much of an answer as is read.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// As much of a complaint as is shown.
const SHOWN_CHARS: usize = 200;

/// The way there. Clones share its connections.
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

    /// `POST /send`; `false` when the gateway has nothing there.
    pub async fn send(&self, message: &Outgoing) -> Result<bool, SendFailure> {
        let request = self
            .client
            .post(format!("{}/send", self.base))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(frames::write(message));
        let response = request.send().await.map_err(|error| {
            let reason = format!("{} over HTTP: {}", self.base, root_cause(&error));
            // Only before the connection stood is it certain that nothing arrived.
            if error.is_connect() { SendFailure::NotSent(reason) } else { SendFailure::Unknown(reason) }
        })?;
        if has_nothing_there(&response) {
            return Ok(false);
        }
        let status = response.status();
        if status.is_success() {
            return Ok(true);
        }
        let reason = format!("{} answered {status}{}", self.base, said(response).await);
        Err(match status.as_u16() {
            // It says itself that it did nothing and would like to be asked again.
            429 | 503 => SendFailure::NotSent(reason),
            // It may have failed after it had passed the message on.
            500.. => SendFailure::Unknown(reason),
            _ => SendFailure::Refused(reason),
        })
    }

    /// `GET /channels`; `None` when the gateway has nothing there.
    pub async fn channels(&self) -> Result<Option<Vec<String>>, String> {
        let asked = self.client.get(format!("{}/channels", self.base)).send().await;
        let response = asked.map_err(|error| root_cause(&error))?;
        if has_nothing_there(&response) {
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
        serde_json::from_slice(body).map_err(|error| format!("its list of channels is no JSON: {error}"))?;
    let list = value.get("channels").unwrap_or(&value);
    let names = list.as_array().and_then(|names| {
        names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    names.ok_or_else(|| "its list of channels is no list of names".to_owned())
}

async fn body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| root_cause(&error))? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(format!("its answer is longer than {} MiB", MAX_ANSWER_BYTES >> 20));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What a complaint says, where it says anything.
async fn said(response: Response) -> String {
    let body = body(response).await.unwrap_or_default();
    let text: String = String::from_utf8_lossy(&body).trim().chars().take(SHOWN_CHARS).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

/// Some gateways answer with a web page where they have nothing.
fn has_nothing_there(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_page = content_type.is_some_and(|kind| kind.trim_start().starts_with("text/html"));
    is_page || [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&response.status())
}

/// `Bearer TOKEN`, which no log shows.
pub(crate) fn bearer(token: &SecretString) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
        .map_err(|_| "the token has characters that no HTTP header can carry".to_owned())?;
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
