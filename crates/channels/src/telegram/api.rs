//! The Bot API of Telegram, as far as Hob uses it. Knows nothing of conversations.
//!
//! The token is a part of every address, so no error contains an address.

use std::time::Duration;

use hob_net::{HttpClientOptions, ProxyUse, http_client, response_body, root_cause};
use reqwest::header::CONTENT_TYPE;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;
use url::Url;

use crate::received_file::MAX_FILE_BYTES;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for a request that does not wait for messages.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The time for a file.
const FILE_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest answer that is read. A hundred messages of the largest size are far smaller.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Messages that are asked for at once.
const MAX_UPDATES: usize = 50;

/// The longest wait that a server can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// The longest description of an error that is shown.
const SHOWN_CHARS: usize = 200;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TelegramError {
    #[error(
        "Telegram does not accept the token. Get a new one from @BotFather, then run 'hob channel add telegram'"
    )]
    Token,
    #[error(
        "another program receives the messages of this bot ({description}). Stop it, or get a token for a bot of its own"
    )]
    Conflict { description: String },
    #[error("Telegram asks to wait {} s", wait.as_secs())]
    TooManyRequests { wait: Duration },
    #[error("Telegram refuses the request: {description}")]
    Refused { status: u16, description: String },
    /// `is_unsent` if it certainly did not arrive.
    #[error("Telegram cannot be reached: {reason}")]
    Unreachable { reason: String, is_unsent: bool },
    #[error("the answer of Telegram is not understood: {reason}")]
    BadAnswer { reason: String },
}

/// The bot that a token belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TelegramBot {
    pub id: i64,
    /// Without the `@`.
    #[serde(default)]
    pub username: String,
    #[serde(default)]
    pub first_name: String,
}

/// A message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct SentMessage {
    pub message_id: i64,
}

#[derive(Deserialize)]
struct FilePlace {
    file_path: Option<String>,
    file_size: Option<u64>,
}

/// An answer of the API. The result is present if `ok` is true.
#[derive(Deserialize)]
struct Envelope {
    ok: bool,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Option<ErrorParameters>,
}

#[derive(Deserialize)]
struct ErrorParameters {
    retry_after: Option<u64>,
}

/// A client of the Bot API.
pub struct TelegramApi {
    client: reqwest::Client,
    base: String,
    token: SecretString,
}

impl TelegramApi {
    /// `base` is the address of the API without a trailing slash.
    pub fn new(base: &str, token: SecretString) -> Result<Self, String> {
        // Otherwise the token could change which address is asked.
        if !is_token(token.expose_secret()) {
            return Err(
                "the token of a Telegram bot looks like 123456:ABC-DEF. Copy it from @BotFather".to_owned()
            );
        }
        let url =
            Url::parse(base).map_err(|error| format!("the address of the Telegram API is wrong: {error}"))?;
        let options = HttpClientOptions {
            proxy: ProxyUse::towards(&url),
            connect_timeout: CONNECT_TIMEOUT,
            ..HttpClientOptions::default()
        };
        let client = http_client(options).map_err(|error| root_cause(&error.without_url()))?;
        Ok(TelegramApi { client, base: base.trim_end_matches('/').to_owned(), token })
    }

    pub async fn get_me(&self) -> Result<TelegramBot, TelegramError> {
        self.call("getMe", &json!({})).await
    }

    /// The updates from `offset` on, which confirms all before it. Waits up to `wait` for the first one.
    pub async fn get_updates(
        &self,
        offset: Option<i64>,
        wait: Duration,
    ) -> Result<Vec<Value>, TelegramError> {
        let mut body =
            json!({ "timeout": wait.as_secs(), "limit": MAX_UPDATES, "allowed_updates": ["message"] });
        if let Some(offset) = offset {
            body["offset"] = offset.into();
        }
        self.call_within("getUpdates", &body, wait + TIMEOUT).await
    }

    pub(super) async fn send_message(&self, body: &Value) -> Result<SentMessage, TelegramError> {
        self.call("sendMessage", body).await
    }

    /// Replaces the text of a message.
    pub(super) async fn edit_message(&self, body: &Value) -> Result<(), TelegramError> {
        match self.call::<Value>("editMessageText", body).await {
            Ok(_) => Ok(()),
            Err(TelegramError::Refused { description, .. })
                if description.contains("message is not modified") =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Shows that the bot writes, for about five seconds.
    pub(super) async fn send_typing(&self, chat: &Value) -> Result<(), TelegramError> {
        let mut body = chat.clone();
        body["action"] = "typing".into();
        self.call::<Value>("sendChatAction", &body).await.map(drop)
    }

    /// The content of a file that a message names.
    pub(super) async fn download(&self, file_id: &str) -> Result<Vec<u8>, TelegramError> {
        let too_large = || TelegramError::Refused { status: 413, description: "file is too big".to_owned() };
        let place: FilePlace = self.call("getFile", &json!({ "file_id": file_id })).await?;
        if place.file_size.is_some_and(|size| size > MAX_FILE_BYTES as u64) {
            return Err(too_large());
        }
        let path = place.file_path.filter(|path| is_file_path(path));
        let path = path.ok_or_else(|| bad_answer("the file has no path"))?;
        let address = format!("{}/file/bot{}/{path}", self.base, self.token.expose_secret());
        let asked = self.client.get(address).timeout(FILE_TIMEOUT).send().await;
        let response = asked.map_err(unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(TelegramError::Refused { status: status.as_u16(), description: status.to_string() });
        }
        response_body(response, MAX_FILE_BYTES).await.map_err(unreachable)?.ok_or_else(too_large)
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, body: &Value) -> Result<T, TelegramError> {
        self.call_within(method, body, TIMEOUT).await
    }

    async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &Value,
        timeout: Duration,
    ) -> Result<T, TelegramError> {
        let address = format!("{}/bot{}/{method}", self.base, self.token.expose_secret());
        let request = self.client.post(address).timeout(timeout).header(CONTENT_TYPE, "application/json");
        let response = request.body(body.to_string()).send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let body = response_body(response, MAX_ANSWER_BYTES).await.map_err(unreachable)?;
        let body = body.ok_or_else(|| bad_answer("it is too long"))?;
        let envelope: Envelope = match serde_json::from_slice(&body) {
            Ok(envelope) => envelope,
            // An error of a proxy in between.
            Err(_) if status >= 500 => {
                return Err(TelegramError::Unreachable {
                    reason: format!("it answered {status}"),
                    is_unsent: false,
                });
            }
            Err(_) => return Err(bad_answer(&format!("status {status} without JSON"))),
        };
        if !envelope.ok {
            return Err(refusal(status, envelope));
        }
        serde_json::from_value(envelope.result).map_err(|error| bad_answer(&error.to_string()))
    }
}

fn refusal(status: u16, envelope: Envelope) -> TelegramError {
    let description: String = envelope.description.chars().take(SHOWN_CHARS).collect();
    let retry_after = envelope.parameters.and_then(|parameters| parameters.retry_after);
    match status {
        // An unknown token has no methods.
        401 | 404 => TelegramError::Token,
        409 => TelegramError::Conflict { description },
        429 => {
            let wait = Duration::from_secs(retry_after.unwrap_or(1).max(1));
            TelegramError::TooManyRequests { wait: wait.min(LONGEST_WAIT) }
        }
        500.. => TelegramError::Unreachable { reason: description, is_unsent: false },
        _ => TelegramError::Refused { status, description },
    }
}

fn unreachable(error: reqwest::Error) -> TelegramError {
    let is_unsent = error.is_connect();
    TelegramError::Unreachable { reason: root_cause(&error.without_url()), is_unsent }
}

fn bad_answer(reason: &str) -> TelegramError {
    TelegramError::BadAnswer { reason: reason.to_owned() }
}

/// Digits, a colon, and letters.
pub fn is_token(text: &str) -> bool {
    let Some((id, secret)) = text.split_once(':') else { return false };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=20).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_digit())
        && (8..=100).contains(&secret.len())
        && secret.bytes().all(is_letter)
}

/// Whether a path leads to no other place of the server.
fn is_file_path(path: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    !path.starts_with('/') && !path.contains("..") && path.len() < 1_000 && path.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_cannot_lead_to_another_address() {
        assert!(is_token("123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11"));
        for wrong in
            ["", "123456", "abc:ABCDEFGHIJ", "1:a/../../x", "1:ABCDEFGH?x=", "1:ABCDEFGH\n", ":ABCDEFGH"]
        {
            assert!(!is_token(wrong), "{wrong:?}");
        }
        assert!(TelegramApi::new("https://api.telegram.org", "1:x@evil.example/".to_owned().into()).is_err());
    }

    #[test]
    fn a_path_of_a_file_stays_below_its_folder() {
        assert!(is_file_path("photos/file_1.jpg"));
        for wrong in ["../x", "/etc/passwd", "a/../../b", "a?b", "a b", "http://x"] {
            assert!(!is_file_path(wrong), "{wrong}");
        }
    }

    #[test]
    fn errors_have_their_own_meanings() {
        let of = |status, body: Value| refusal(status, serde_json::from_value(body).unwrap());
        assert_eq!(of(401, json!({ "ok": false, "description": "Unauthorized" })), TelegramError::Token);
        let wait =
            json!({ "ok": false, "description": "Too Many Requests", "parameters": { "retry_after": 7 } });
        assert_eq!(of(429, wait), TelegramError::TooManyRequests { wait: Duration::from_secs(7) });
        let forever = json!({ "ok": false, "parameters": { "retry_after": u64::MAX } });
        assert_eq!(of(429, forever), TelegramError::TooManyRequests { wait: LONGEST_WAIT });
        let long = json!({ "ok": false, "description": "x".repeat(10_000) });
        assert!(of(400, long).to_string().len() < 300);
    }
}
